import type { Reply } from '../engine/failure.ts';
import type { LeafRow } from '../engine/leaves.ts';
import { measureTransactions, type Requests } from '../engine/requests.ts';
import type { StoreRequest } from '../store.ts';
import type { PostgresAdmission } from './admission.ts';
import type { PostgresHandlers } from './handlers.ts';
import type { Instances } from './instances.ts';
import { type Queries, rowsPerQuery } from './leaf-rows.ts';
import { ConnectionLost, type Line, randomId } from './line.ts';
import { all } from './needed.ts';
import { type NewestEvent, newestEvents } from './outbox.ts';
import { isMachineFault, rejectUnlessMachineFault } from './postgres-errors.ts';
import { migrations } from './upgrade.ts';

/** It is not known whether a transaction was committed. */
export class FateUnknown extends Error {}

/** A transaction ran without the fence, and has to be repeated with it. */
export class FenceNeeded extends Error {}

/** A transaction that has the fence found many leaves of other instances, and has to be repeated when they are read. */
export class FarBehind extends Error {}

/** What a transaction changes in memory, and the function that executes its requests. */
type TransactionParts = Omit<PostgresHandlers, 'all'> &
  Pick<Requests, 'executeSome'> & { readonly admission: PostgresAdmission; readonly instances: Instances };

/** How many leaves and log events are stored. */
interface Sizes {
  readonly leaves: number;
  readonly events: number;
  /** The number of entries of the audit log, with one for each change of credentials. */
  readonly audited: number;
  /** The schema of the oldest version that can use the database. */
  readonly oldestSchema: number;
  /** The lead of the business clock. */
  readonly aheadS: number;
  /** As JSON: the newest events of other instances after those that this instance knows, and null without one. */
  readonly newEvents: string | null;
}

/** A row of leaves after those that this instance knows, with the sizes. If there is none, one with an `id` of null. */
type Found = Sizes & (LeafRow | { readonly id: null });

/** How a transaction runs. */
export interface Mode {
  readonly isWriting: boolean;
  /** Whether it waits for the fence, and then has it until it ends. */
  readonly isFenced: boolean;
  /** Whether it reads many leaves of other instances, while those wait for the fence. */
  readonly readsMany?: boolean;
}

/** A transaction that has begun and reads. */
interface Begun {
  /** Its number, if it writes. */
  readonly id: number | undefined;
  /** Resolves when all that its requests need is read. */
  readonly found: Promise<readonly Found[]>;
}

/** Runs transactions of several requests, and measures those that write. */
export function createTransactions(line: Line, parts: TransactionParts) {
  const { log, outbox, filings, admission } = parts;
  const steps = createSteps(line, parts);
  const { batches, open, executeSome, commit } = steps;
  const beginnings = createBeginnings(line, parts, steps);
  const { joinSession, enter, readAhead } = beginnings;
  const measured = measureTransactions();
  /** Whether the transaction that runs has the fence. */
  let isFenced = true;

  async function transact(
    batch: readonly StoreRequest[],
    mode: Mode,
    storing: (() => void) | undefined,
  ): Promise<readonly Reply[]> {
    try {
      const begun = beginnings.take(batch, mode);
      isFenced = mode.isFenced;
      const found = await begun.found;
      if (isFenced && !mode.readsMany && found.length === rowsPerQuery) throw new FarBehind();
      await open(found);
      const replies = await executeSome(batch);
      if (outbox.isWriting()) requireFence();
      const committing = commit(begun.id);
      if (storing !== undefined && replies.length === batch.length) {
        beginnings.allowNext();
        storing();
      }
      await (mode.isWriting ? measured.commitSeconds.timed(() => committing) : committing);
      for (const part of [log.log, outbox, admission]) part.committed();
      return replies;
    } catch (error) {
      // The ROLLBACK ends the next transaction, too. A lost connection has rolled back already.
      beginnings.drop();
      await line.query('ROLLBACK').catch(rejectUnlessMachineFault);
      for (const part of [log.log, outbox, filings, admission]) part.rolledBack();
      throw error;
    }
  }

  function requireFence(): void {
    if (!isFenced) throw new FenceNeeded();
  }

  return {
    ...{ joinSession, requireFence, enter, readAhead },
    /** The version of the credentials. Another session may be one of a database server that lacks commits. */
    credentialsVersion: (): string => `${steps.audited()} of session ${beginnings.sessions()}`,
    run: (batch: readonly StoreRequest[], mode: Mode, storing?: () => void): Promise<readonly Reply[]> =>
      measured.run(mode.isWriting, () => transact(batch, mode, storing)),
    /** Reads the tree of the log, and what else is kept in memory. */
    load: async (): Promise<void> => {
      await outbox.load();
      await open(await beginnings.take([], { isWriting: false, isFenced: false }).found);
      await log.load();
      await admission.load();
      await batches.load();
      await line.query('COMMIT');
    },
    metrics: measured.metrics,
  };
}

/** Begins transactions, if possible while the COMMIT before is under way. */
function createBeginnings(
  line: Line,
  { instances, log }: TransactionParts,
  { begin, read }: ReturnType<typeof createSteps>,
) {
  /** Gives the next batch its transaction, which was begun already. */
  let next: ((batch: readonly StoreRequest[], mode: Mode) => Begun) | undefined;
  /** Resolves when the next transaction has the fence, if that has read nothing yet. */
  let entered: Promise<void> | undefined;
  /** Whether a COMMIT is under way that has not failed, so that the next transaction is that of the next batch. */
  let mayBeginNext = false;
  let sessions = 0;

  /** Forgets the next transaction. */
  function drop(): void {
    next = entered = undefined;
    mayBeginNext = false;
  }

  /** Uses the session that is there now. */
  function joinSession(): void {
    if (!line.begin()) return;
    sessions += 1;
    drop();
    instances.joinedSession();
    log.joinedSession();
  }

  /** Reads what the requests of a transaction need. Without other instances, it was begun in the same round trip. */
  function readIn(begun: Promise<void>, batch: readonly StoreRequest[], mode: Mode): Begun {
    const { id, found } = read(batch, mode);
    return { id, found: all([begun, found]).then(() => found) };
  }

  const waitsForOthers = ({ isFenced }: Mode): boolean => isFenced && instances.others() > 0;

  /** Begins the next transaction and leaves its reads to its batch. */
  function beginNext(mode: Mode): void {
    const begun = begin(mode);
    begun.catch(() => {});
    entered = begun;
    next = (batch, modeOfBatch) => readIn(begun, batch, modeOfBatch);
  }

  return {
    ...{ drop, joinSession },
    sessions: (): number => sessions,
    /** Call it when only the COMMIT is left. */
    allowNext: (): void => {
      mayBeginNext = true;
    },
    /** The next transaction, if its session is still there, or else a new one. */
    take: (batch: readonly StoreRequest[], mode: Mode): Begun => {
      const taken = line.isInSession() ? next : undefined;
      drop();
      if (taken !== undefined) return taken(batch, mode);
      joinSession();
      return readIn(begin(mode), batch, mode);
    },
    /** Begins the transaction of the next batch. */
    readAhead: (batch: readonly StoreRequest[], mode: Mode): void => {
      if (!mayBeginNext) return;
      if (waitsForOthers(mode)) {
        beginNext(mode);
        return;
      }
      const begun = readIn(begin(mode), batch, mode);
      // The batch awaits it again, unless this transaction is dropped.
      begun.found.catch(() => {});
      next = () => begun;
    },
    /**
     * If other instances take the fence, too, waits for it. Returns whether it has waited: then requests that came meanwhile can share
     * the transaction.
     */
    enter: async (mode: Mode): Promise<boolean> => {
      if (!line.isInSession()) drop();
      if (!waitsForOthers(mode) || line.fault() !== undefined) return false;
      if (next === undefined) {
        joinSession();
        beginNext(mode);
      }
      if (entered === undefined) return false;
      await Promise.allSettled([entered]);
      return true;
    },
  };
}

/** The steps of a transaction. */
function createSteps(line: Line, parts: TransactionParts) {
  const { log, times, outbox, filings, admission, instances, executeSome } = parts;
  const batches = createBatches(line);
  let audited = 0;
  return {
    audited: () => audited,
    batches,
    /** Begins a transaction. */
    begin: ({ isFenced }: Mode): Promise<void> =>
      all([
        ...instances.endStopped(),
        line.query('BEGIN'),
        line.query(keepSchema),
        ...(isFenced ? [line.query(takeFence)] : []),
      ]),
    /** Reads what its requests need. */
    read: (batch: readonly StoreRequest[], { isWriting }: Mode): Begun => {
      filings.begin();
      admission.end();
      const admissions = batch.flatMap((request) => request.admission ?? []);
      const commands = batch.flatMap(({ effect }) => effect ?? []);
      const [id, inserted] = isWriting ? batches.insert() : [undefined, []];
      // The filings before the log, which then has their leaves.
      const read = [...admission.read(admissions), ...filings.read(commands)];
      // As this instance knows them once the COMMIT under way has ended.
      const values = [log.firstUnread(), rowsPerQuery, outbox.position()];
      const found = line.query<Found>({ ...selectNew, values });
      const sent = all([...inserted, ...read, found, ...instances.sign()]);
      return { id, found: sent.then(async () => (await found).rows) };
    },
    /** Opens a transaction that has begun, after the one before has ended. */
    open: async (found: readonly Found[]): Promise<void> => {
      const [sizes] = found;
      if (sizes === undefined) throw new Error('PostgreSQL returned no row.');
      if (sizes.oldestSchema > migrations.length) {
        const tooOld = new ConnectionLost('the database was upgraded, and needs a later version of artseal');
        line.lose(tooOld);
        throw tooOld;
      }
      const events: readonly NewestEvent[] = JSON.parse(sizes.newEvents ?? '[]');
      if (sizes.audited < audited)
        throw log.damaged(`its audit log had ${audited} entries, and has ${sizes.audited}`);
      audited = sizes.audited;
      times.forget(sizes.aheadS);
      outbox.begin(events);
      for (const { callerId, year, count } of events) filings.counted(callerId, year, count);
      const leaves = found.filter((row) => row.id !== null);
      await log.begin(sizes.leaves, sizes.events, leaves);
      instances.mayLead();
    },
    /** Executes requests until their replies are long, and reads what their events need. */
    executeSome: async (batch: readonly StoreRequest[]): Promise<readonly Reply[]> => {
      const replies = await executeSome(batch);
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
 * Numbers the transactions that write. Each leaves a row, which shows after a lost connection whether it was committed. The number of
 * PostgreSQL's own transactions cannot: after a crash it is given out again.
 */
function createBatches(queries: Queries) {
  let newest = randomId();
  return {
    /** Returns the number of a transaction that begins. */
    insert: (): [number, Promise<unknown>[]] => {
      newest += 1;
      const inserted = queries.query({ ...insertBatch, values: [newest] });
      const isDue = newest % batchesKept === 0;
      const range = [newest - 10 * batchesKept, newest];
      return [newest, isDue ? [inserted, queries.query(deleteBatches, range)] : [inserted]];
    },
    /** Removes those of processes that are gone. */
    load: () => queries.query(`DELETE FROM batch WHERE at < now() - interval '1 hour'`),
  };
}

const insertBatch = { name: 'insert batch', text: 'INSERT INTO batch (id) VALUES ($1)' };

/** Of all rows before, those deleted long ago would be searched as long as somebody has an old snapshot. */
const deleteBatches = 'DELETE FROM batch WHERE id >= $1 AND id < $2';

/** Held until the transaction ends, so that an upgrade waits: the two would lock tables in different orders. */
const keepSchema = {
  name: 'keep schema',
  text: `SELECT pg_advisory_xact_lock_shared(hashtextextended('artseal migrations', 0))`,
};

/** Held until the transaction ends. Only tests change it. */
export const takeFence = {
  name: 'fence',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('artseal fence', 0))`,
};

const selectNew = {
  name: 'select new',
  text: `SELECT (SELECT coalesce(max(id) + 1, 0) FROM log_leaf) AS leaves,
    (SELECT coalesce(max(sequence), 0) FROM log_event) AS events,
    (SELECT coalesce(max(id), 0) FROM audit_entry) AS audited,
    (SELECT schema FROM oldest_version WHERE id = 1) AS "oldestSchema",
    (SELECT clock_ahead_s FROM deployment) AS "aheadS",
    (SELECT json_agg(newest) FROM (${newestEvents('$3')}) AS newest) AS "newEvents",
    leaf.id, leaf.first, leaf.data, leaf.hashes
  FROM (VALUES (1)) AS once LEFT JOIN (
    SELECT id, first, data, hashes FROM log_leaf WHERE id >= $1 ORDER BY id LIMIT $2
  ) AS leaf ON true ORDER BY leaf.id`,
};
