import { randomInt } from 'node:crypto';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData } from '../../domain/violation.ts';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import { charactersIn } from '../engine/costs.ts';
import {
  cannotWork,
  createIncidents,
  driverError,
  type Failed,
  fateUnknown,
  type Incidents,
  internalError,
  nothingStored,
  type Reply,
  unavailableFor,
} from '../engine/failure.ts';
import { createRequests } from '../engine/requests.ts';
import type { Command, CommandResult, Kind, Result, StoreMetrics, StoreRequest } from '../store.ts';
import { createAdmission, type PostgresAdmission } from './admission.ts';
import { watchCredentials } from './credentials.ts';
import { createHandlers } from './handlers.ts';
import type { Queries } from './leaf-rows.ts';
import type { Line } from './line.ts';
import { all } from './needed.ts';
import { classifyError, codeOf, isMachineFault, isRepeatable, repeatable } from './postgres-errors.ts';

/** Characters in the replies of a batch after which it ends, so that other work has its turn. */
const repliedCharactersMax = 500_000;

/** How often a transaction is tried that another one was in the way of. */
const triesMax = 4;

/** It is not known whether a transaction was committed. */
class FateUnknown extends Error {}

/** Bounds of the distribution of requests in a transaction. */
const requestBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];

/** As `openCore` makes it. */
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Opens the core of the engine on a connection that nobody else uses: one transaction for each batch of requests. */
export async function openCore(line: Line) {
  const incidents = createIncidents(classifyError);
  const repeated: Record<string, number> = Object.fromEntries(repeatable.map((code) => [code, 0]));
  const { rows } = await line.query<{ secret: Buffer }>('SELECT secret FROM deployment');
  const secret = rows[0]?.secret;
  if (secret === undefined) throw new Error('The database has no deployment row.');
  const handlers = createHandlers(line, secret, incidents);
  const admission = createAdmission(line);
  const perform = createPerformance(line, incidents, handlers, admission);
  const requests = createRequests({
    ...{ handlers: handlers.all, callers: handlers.callers, outbox: handlers.outbox, perform },
    ...admission.parts,
  });
  const transactions = createTransactions(line, { ...handlers, ...requests, admission });
  const credentials = await watchCredentials(line);
  let areCredentialsOld = false;
  await transactions.load();

  /** Executes a batch in one transaction. If that fails, each half of it. Only its first transaction calls `storing`. */
  async function attempt(
    batch: readonly StoreRequest[],
    storing?: () => void,
    tries = 1,
  ): Promise<readonly Reply[]> {
    const isWriting = batch.some(requests.writes);
    try {
      return await transactions.run(batch, isWriting, storing);
    } catch (thrown) {
      const error = driverError(thrown);
      if (error instanceof FateUnknown)
        return batch.map(() => ({ failure: unavailableFor(fateUnknown, error) }));
      if (isRepeatable(error) && tries < triesMax) {
        const code = codeOf(error);
        repeated[code] = (repeated[code] ?? 0) + 1;
        return attempt(batch, undefined, tries + 1);
      }
      if (!isMachineFault(error) && batch.length > 1) return halved(batch);
      incidents.meet(error, isWriting ? 'write' : 'read');
      if (isMachineFault(error)) {
        const failure = unavailableFor(isWriting ? nothingStored : cannotWork, error);
        return batch.map(() => ({ failure }));
      }
      await keepAdmission(batch);
      return batch.map(() => ({ failure: internalError(error) }));
    }
  }

  /** Stores the admission of a request whose command has failed. */
  async function keepAdmission([request]: readonly StoreRequest[]): Promise<void> {
    const { share, admission, effect } = request ?? {};
    if (admission !== undefined && effect !== undefined) await attempt([{ share, admission }]);
  }

  async function halved(batch: readonly StoreRequest[]): Promise<readonly Reply[]> {
    const first = batch.slice(0, Math.ceil(batch.length / 2));
    const replies = await attempt(first);
    if (replies.length < first.length) return replies;
    return [...replies, ...(await attempt(batch.slice(first.length)))];
  }

  return {
    secret,
    /** As that of SQLite. */
    executeBatch: async (batch: readonly StoreRequest[], storing?: () => void): Promise<readonly Reply[]> => {
      const isChanging = batch.some(requests.changesCredentials);
      const replies = await attempt(batch, isChanging ? undefined : storing);
      areCredentialsOld ||= isChanging;
      if (areCredentialsOld) {
        // The batch may have lost its session.
        transactions.joinSession();
        await credentials.read();
        areCredentialsOld = false;
      }
      return replies;
    },
    /** Begins the transaction of the next batch behind the COMMIT that is under way, unless that has failed. */
    readAhead: (batch: readonly StoreRequest[]): void =>
      transactions.readAhead(batch, batch.some(requests.writes)),
    changedCredentials: credentials.changed,
    takeEventNews: handlers.outbox.takeNews,
    storageErrors: incidents.storageErrors,
    metrics: (): Omit<StoreMetrics, 'requestsInFlight'> => {
      const { state, ...connection } = line.metrics();
      return {
        ...transactions.metrics(),
        nonces: admission.countNonces(),
        incidents: incidents.counts(),
        files: state && { databaseBytes: state.bytes, logBytes: undefined, freeBytes: undefined },
        server: { ...connection, repeated, snapshotS: state?.snapshotS },
      };
    },
  };
}

type Handlers = ReturnType<typeof createHandlers>;

/** What a transaction changes in memory, and the functions that execute its requests. */
type TransactionParts = Omit<Handlers, 'all'> & {
  readonly admission: PostgresAdmission;
  readonly execute: (request: StoreRequest) => Reply | Promise<Reply>;
};

/** How many leaves and log events are stored. */
interface Sizes {
  readonly leaves: number;
  readonly events: number;
}

/** A transaction that has begun. */
interface Begun {
  /** Its number, if it writes. */
  readonly id: number | undefined;
  /** Resolves when all that its requests need is read. */
  readonly read: Promise<Sizes | undefined>;
}

/** Runs transactions of several requests, and measures those that write. */
function createTransactions(line: Line, parts: TransactionParts) {
  const { log, outbox, filings, admission } = parts;
  const { batches, begin, open, executeSome, commit } = createSteps(line, parts);
  const transactionRequests = createDistribution(requestBounds);
  const transactionSeconds = createDistribution(durationBoundsS);
  const commitSeconds = createDistribution(durationBoundsS);
  /** The transaction of the next batch, if it was begun behind the COMMIT of the one before. */
  let ahead: Begun | undefined;
  /** Whether a COMMIT is under way that has not failed, so that the transaction behind it is that of the next batch. */
  let mayReadAhead = false;

  /** Uses the session that is there now. */
  function joinSession(): void {
    if (line.begin()) admission.forget();
  }

  /** The transaction that was begun ahead, if its session is still there, or else a new one. */
  function takeBegun(batch: readonly StoreRequest[], isWriting: boolean): Begun {
    const begun = ahead;
    ahead = undefined;
    mayReadAhead = false;
    if (begun !== undefined && line.isInSession()) return begun;
    joinSession();
    return begin(batch, isWriting);
  }

  async function transact(
    batch: readonly StoreRequest[],
    isWriting: boolean,
    storing: (() => void) | undefined,
  ): Promise<readonly Reply[]> {
    try {
      const { id, read } = takeBegun(batch, isWriting);
      open(await read);
      const replies = await executeSome(batch);
      const committing = commit(id);
      if (storing !== undefined && replies.length === batch.length) {
        mayReadAhead = true;
        storing();
      }
      await (isWriting ? commitSeconds.timed(() => committing) : committing);
      for (const part of [log.log, outbox, admission]) part.committed();
      return replies;
    } catch (error) {
      // This ends the transaction that was begun ahead, too. A lost connection has rolled back already.
      ahead = undefined;
      mayReadAhead = false;
      await line.query('ROLLBACK').catch(rejectUnlessMachineFault);
      for (const part of [log.log, outbox, filings, admission]) part.rolledBack();
      throw error;
    }
  }

  return {
    joinSession,
    run: async (
      batch: readonly StoreRequest[],
      isWriting: boolean,
      storing?: () => void,
    ): Promise<readonly Reply[]> => {
      if (!isWriting) return transact(batch, false, storing);
      const replies = await transactionSeconds.timed(() => transact(batch, true, storing));
      transactionRequests.add(replies.length);
      return replies;
    },
    readAhead: (batch: readonly StoreRequest[], isWriting: boolean): void => {
      if (!mayReadAhead) return;
      ahead = begin(batch, isWriting);
      // The batch awaits `read` again, unless this transaction is dropped.
      ahead.read.catch(() => {});
    },
    /** Reads the tree of the log, and what else is kept in memory. */
    load: async (): Promise<void> => {
      joinSession();
      open(await begin([], false).read);
      await log.load();
      await admission.load();
      await batches.load();
      await line.query('COMMIT');
    },
    metrics: () => ({
      transactionRequests: transactionRequests.data(),
      transactionSeconds: transactionSeconds.data(),
      commitSeconds: commitSeconds.data(),
    }),
  };
}

function rejectUnlessMachineFault(error: unknown): void {
  if (!isMachineFault(error)) throw error;
}

/** The steps of a transaction. */
function createSteps(line: Line, { log, times, outbox, filings, admission, execute }: TransactionParts) {
  const batches = createBatches(line);
  return {
    batches,
    /** Begins a transaction, and reads what its requests need, in one round trip. */
    begin: (batch: readonly StoreRequest[], isWriting: boolean): Begun => {
      filings.begin();
      times.forget();
      admission.end();
      const admissions = batch.flatMap((request) => request.admission ?? []);
      const commands = batch.flatMap(({ effect }) => effect ?? []);
      const begun = line.query('BEGIN');
      const sizes = line.query<Sizes>(selectSizes);
      const [id, inserted] = isWriting ? batches.insert() : [undefined, []];
      const sent = [begun, sizes, ...inserted, ...admission.read(admissions), ...filings.read(commands)];
      return { id, read: all(sent).then(async () => (await sizes).rows[0]) };
    },
    /** Opens a transaction that has begun, after the one before has ended. */
    open: ({ leaves, events }: Sizes = { leaves: 0, events: 0 }): void => log.begin(leaves, events),
    /** Executes requests until their replies are long, and reads what their events need. */
    executeSome: async (batch: readonly StoreRequest[]): Promise<Reply[]> => {
      const replies: Reply[] = [];
      let characters = 0;
      for (const request of batch) {
        const executing = execute(request);
        const reply = executing instanceof Promise ? await executing : executing;
        replies.push(reply);
        characters += charactersIn(reply);
        if (characters > repliedCharactersMax) break;
      }
      log.log.write();
      await outbox.prepare();
      return replies;
    },
    /**
     * Sends all that is not stored yet and commits, in one round trip: if a statement fails, PostgreSQL rolls back. If the
     * connection is lost meanwhile, asks the database which it was.
     */
    commit: async (id: number | undefined): Promise<void> => {
      const sent = [...filings.flush(), ...log.flush(), ...outbox.flush(), ...admission.flush()];
      const committed = line.query('COMMIT');
      try {
        await all([...sent, committed]);
        const { command } = await committed;
        if (command !== 'COMMIT') throw new Error(`PostgreSQL answered ${command} to COMMIT.`);
      } catch (error) {
        const [answer] = await Promise.allSettled([committed]);
        // After a statement that failed, PostgreSQL answers ROLLBACK.
        const isRolledBack = answer.status === 'fulfilled' && answer.value.command !== 'COMMIT';
        if (id === undefined || isRolledBack || !isMachineFault(error)) throw error;
        const isCommitted = await line.wasCommitted(id);
        if (isCommitted === true) return;
        if (isCommitted === false) throw error;
        // What this process remembers may not be what is stored.
        const unknown = new FateUnknown(error.message);
        line.lose(unknown);
        throw unknown;
      }
    },
  };
}

/** Batches that are kept for a COMMIT in doubt. */
const batchesKept = 100;

/**
 * Numbers the transactions that write. Each leaves a row, which tells after a lost connection whether it was committed. The number of
 * PostgreSQL's own transactions cannot: after a crash it is given out again.
 */
function createBatches(queries: Queries) {
  let newest = randomInt(2 ** 47);
  return {
    /** Returns the number of a transaction that begins. */
    insert: (): [number, Promise<unknown>[]] => {
      newest += 1;
      const inserted = queries.query({ ...insertBatch, values: [newest] });
      const isDue = newest % batchesKept === 0;
      const range = [newest - 10 * batchesKept, newest];
      return [newest, isDue ? [inserted, queries.query(deleteBatches, range)] : [inserted]];
    },
    /** Removes those of earlier processes. */
    load: () => queries.query('DELETE FROM batch'),
  };
}

const insertBatch = { name: 'insert batch', text: 'INSERT INTO batch (id) VALUES ($1)' };

/** Of all rows before, those deleted long ago would be searched as long as somebody has an old snapshot. */
const deleteBatches = 'DELETE FROM batch WHERE id >= $1 AND id < $2';

const selectSizes = {
  name: 'select sizes',
  text: `SELECT (SELECT coalesce(max(id) + 1, 0) FROM log_leaf) AS leaves,
    (SELECT coalesce(max(sequence), 0) FROM log_event) AS events`,
};

/** Returns the function that executes a command. It throws errors that end the batch. */
function createPerformance(
  queries: Queries,
  incidents: Incidents,
  { all: handlers, log, filings, times, outbox }: Handlers,
  admission: Pick<PostgresAdmission, 'flushCalls'>,
): (command: Command) => CommandResult | Failed | Promise<CommandResult | Failed> {
  const isHot = ({ kind }: Command): boolean =>
    kind === 'FileArtwork' || kind === 'GetFiling' || kind === 'GetProvenance';

  function run<K extends Kind>(command: Command<K>): Result<K> | Promise<Result<K>> {
    return (handlers[command.kind] as unknown as Handlers['all'][K]).run(command);
  }

  function done(result: Result): CommandResult {
    outbox.keep();
    return { kind: 'DONE', result, isReplay: false };
  }

  function failed({ kind }: Command, thrown: unknown): CommandResult | Failed {
    const error = driverError(thrown);
    log.log.drop();
    outbox.drop();
    if (error instanceof ApiError)
      return { kind: 'REJECTED', apiError: apiErrorData(error), isReplay: false };
    incidents.meet(error, handlers[kind].isWriting ? 'write' : 'read');
    return { failure: internalError(error) };
  }

  /** Commands that most calls make change nothing until their rows are sent with those of the batch. */
  function performHot(command: Command): CommandResult | Failed | Promise<CommandResult | Failed> {
    const succeeded = (result: Result) => {
      log.log.keep();
      return done(result);
    };
    const rejected = (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return failed(command, error);
    };
    let result: Result | Promise<Result>;
    try {
      result = run(command);
    } catch (error) {
      return rejected(error);
    }
    return result instanceof Promise ? result.then(succeeded, rejected) : succeeded(result);
  }

  async function performCold(command: Command): Promise<CommandResult | Failed> {
    const { isWriting } = handlers[command.kind];
    log.log.write();
    times.forget();
    await all([
      ...filings.flush(),
      ...log.flush(),
      ...admission.flushCalls(),
      queries.query('SAVEPOINT effect'),
    ]);
    try {
      const result = await run(command);
      log.log.write();
      await all([...log.flush(), queries.query('RELEASE SAVEPOINT effect')]);
      if (isWriting) filings.forget();
      return done(result);
    } catch (error) {
      if (isMachineFault(driverError(error))) throw error;
      await queries.query('ROLLBACK TO SAVEPOINT effect');
      return failed(command, error);
    }
  }

  return (command) => (isHot(command) ? performHot(command) : performCold(command));
}
