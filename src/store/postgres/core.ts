import type { Environment } from '../../domain/caller.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData } from '../../domain/violation.ts';
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
import { createRequests, inHalves } from '../engine/requests.ts';
import type { Command, CommandResult, Kind, Result, StoreMetrics, StoreRequest } from '../store.ts';
import { createAdmission, type PostgresAdmission } from './admission.ts';
import { watchCredentials } from './credentials.ts';
import { createHandlers, type PostgresHandlers } from './handlers.ts';
import type { Queries } from './leaf-rows.ts';
import type { Line } from './line.ts';
import { all } from './needed.ts';
import { classifyError, codeOf, isMachineFault, isRepeatable, repeatable } from './postgres-errors.ts';
import { createTransactions, FateUnknown } from './transactions.ts';

/** How often a transaction is tried that another one was in the way of. */
const triesMax = 4;

/** As `openCore` makes it. */
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Opens the core of the engine on a connection that nobody else uses: one transaction for each batch of requests. */
export async function openCore(line: Line) {
  const incidents = createIncidents(classifyError);
  const repeated: Record<string, number> = Object.fromEntries(repeatable.map((code) => [code, 0]));
  const { rows } = await line.query<{ secret: Buffer; environment: Environment }>(
    'SELECT secret, environment FROM deployment',
  );
  const [deployment] = rows;
  if (deployment === undefined) throw new Error('The database has no deployment row.');
  const handlers = createHandlers(line, deployment, incidents);
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
      if (!isMachineFault(error) && batch.length > 1) return inHalves(batch, attempt);
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

  return {
    secret: deployment.secret,
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
    /** Begins the transaction of the next batch while the COMMIT before it is under way, unless that has failed. */
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

/** Returns the function that executes a command. It throws errors that end the batch. */
function createPerformance(
  queries: Queries,
  incidents: Incidents,
  { all: handlers, log, filings, times, outbox }: PostgresHandlers,
  admission: Pick<PostgresAdmission, 'flushCalls'>,
): (command: Command) => CommandResult | Failed | Promise<CommandResult | Failed> {
  const isHot = ({ kind }: Command): boolean =>
    kind === 'FileArtwork' || kind === 'GetFiling' || kind === 'GetProvenance';

  function run<K extends Kind>(command: Command<K>): Result<K> | Promise<Result<K>> {
    return (handlers[command.kind] as unknown as PostgresHandlers['all'][K]).run(command);
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
