import type { Environment } from '../../domain/caller.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData } from '../../domain/violation.ts';
import type { Send } from '../engine/batcher.ts';
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
import { createInstances } from './instances.ts';
import type { Queries } from './leaf-rows.ts';
import type { Line } from './line.ts';
import { all } from './needed.ts';
import {
  abortedTransaction,
  classifyError,
  codeOf,
  isLostSession,
  isMachineFault,
  isRepeatable,
  repeatable,
} from './postgres-errors.ts';
import { createTransactions, FarBehind, FateUnknown, FenceNeeded, type Mode } from './transactions.ts';

/** How often a transaction is tried that another one was in the way of. */
const triesMax = 4;

/** As `openCore` makes it. */
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Opens the core of the engine on a connection that nobody else uses: one transaction for each batch of requests. */
export async function openCore(line: Line, instanceId: number) {
  const incidents = createIncidents(classifyError);
  const { rows } = await line.query<{ secret: Buffer; environment: Environment }>(
    'SELECT secret, environment FROM deployment',
  );
  const [deployment] = rows;
  if (deployment === undefined) throw new Error('The database has no deployment row.');
  const fenced = {
    ...incidents,
    /** Without the fence, what looks like damage may be what another instance wrote between two reads: repeat with the fence. */
    count: (what: Parameters<Incidents['count']>[0]) => {
      transactions.requireFence();
      incidents.count(what);
    },
  };
  const instances = createInstances(line, instanceId);
  const handlers = createHandlers(line, deployment, fenced, instances.handlers);
  const admission = createAdmission(line);
  const perform = createPerformance(line, incidents, handlers, admission);
  const requests = createRequests({
    ...{ handlers: handlers.all, callers: handlers.callers, outbox: handlers.outbox, perform },
    ...admission.parts,
  });
  const transactions = createTransactions(line, { ...handlers, ...requests, admission, instances });
  await transactions.load();
  const attempts = createAttempts({ line, incidents, requests, transactions });
  const credentials = await watchCredentials(line, transactions.credentialsVersion());

  async function readCredentials(): Promise<void> {
    transactions.joinSession();
    await credentials.read(transactions.credentialsVersion());
  }

  const isLeading = () => line.isInSession() && instances.isLeading();

  return {
    secret: deployment.secret,
    ...{ instances, isLeading },
    executeBatch: (async (first, storing, extended) => {
      const hasWaited = await transactions.enter(attempts.modeOf(first));
      const batch = hasWaited ? extended() : first;
      const isChanging = batch.some(requests.changesCredentials);
      const replies = await attempts.run(batch, isChanging ? undefined : storing);
      if (isChanging || !credentials.areOf(transactions.credentialsVersion())) {
        await readCredentials().catch((thrown) => {
          const error = driverError(thrown);
          // The session was lost, or the transaction of the next batch has failed. That batch then reads the credentials.
          if (!isMachineFault(error) && codeOf(error) !== abortedTransaction) line.lose(error as Error);
        });
      }
      return replies;
    }) satisfies Send,
    /** Begins the transaction of the next batch while the COMMIT before it is under way, unless that has failed. */
    readAhead: (batch: readonly StoreRequest[]): void =>
      transactions.readAhead(batch, attempts.modeOf(batch)),
    changedCredentials: credentials.changed,
    takeEventNews: handlers.outbox.takeNews,
    storageErrors: incidents.storageErrors,
    metrics: (): Omit<StoreMetrics, 'requestsInFlight'> => {
      const { state, ...connection } = line.metrics();
      return {
        ...transactions.metrics(),
        // This instance does not see those that others spend.
        nonces: instances.others() > 0 ? (state?.nonces ?? 0) : admission.countNonces(),
        incidents: incidents.counts(),
        files: state && { databaseBytes: state.bytes, logBytes: undefined, freeBytes: undefined },
        server: {
          ...{ ...connection, repeated: attempts.repeated, snapshotS: state?.snapshotS },
          ...{
            instances: instances.others() + 1,
            isLeading: isLeading(),
          },
        },
      };
    },
  };
}

/** Executes batches, again if another transaction was in the way. */
function createAttempts({
  line,
  incidents,
  requests,
  transactions,
}: {
  readonly line: Line;
  readonly incidents: Incidents;
  readonly requests: ReturnType<typeof createRequests>;
  readonly transactions: ReturnType<typeof createTransactions>;
}) {
  const repeated: Record<string, number> = Object.fromEntries(repeatable.map((code) => [code, 0]));

  /** Whether the next requests have waited for a session, too. */
  let isNextLate = false;

  const modeOf = (batch: readonly StoreRequest[]) => ({
    isWriting: batch.some(requests.writes),
    isFenced: batch.some(needsFence),
  });

  /** Executes a batch in one transaction. If that fails, each half of it. Only its first transaction calls `storing`. */
  async function attempt(
    batch: readonly StoreRequest[],
    storing?: () => void,
    tries = 1,
    mode: Mode = modeOf(batch),
  ): Promise<readonly Reply[]> {
    const { isWriting } = mode;
    try {
      return await transactions.run(batch, mode, storing);
    } catch (thrown) {
      const error = driverError(thrown);
      if (error instanceof FenceNeeded) return attempt(batch, undefined, tries, { ...mode, isFenced: true });
      if (error instanceof FarBehind) {
        await attempt([], undefined, tries, { isWriting: false, isFenced: false, readsMany: true });
        return attempt(batch.map(late), undefined, tries, { ...mode, readsMany: true });
      }
      if (error instanceof FateUnknown)
        return batch.map(() => ({ failure: unavailableFor(fateUnknown, error) }));
      if (isRepeatable(error) && tries < triesMax) {
        const code = codeOf(error);
        repeated[code] = (repeated[code] ?? 0) + 1;
        return attempt(batch, undefined, tries + 1, mode);
      }
      if (isLostSession(error)) isNextLate = true;
      if (tries < triesMax && isLostSession(error) && (await line.hasNextSession()))
        return attempt(batch.map(late), undefined, tries + 1, mode);
      if (!isMachineFault(error) && batch.length > 1) return inHalves(batch, (some) => attempt(some));
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
    repeated,
    modeOf,
    run: (batch: readonly StoreRequest[], storing?: () => void) => {
      const sent = isNextLate ? batch.map(late) : batch;
      isNextLate = false;
      return attempt(sent, storing);
    },
  };
}

/** A request that waited while other instances may have filed. */
function late(request: StoreRequest): StoreRequest {
  const { effect } = request;
  return effect?.kind === 'FileArtwork' ? { ...request, effect: { ...effect, isLate: true } } : request;
}

const isHotRead = ({ kind }: Command): boolean => kind === 'GetFiling' || kind === 'GetProvenance';

/** Whether a request reads or changes more than its nonce, its quota and one filing. */
const needsFence = ({ admission, continues, effect }: StoreRequest): boolean =>
  admission?.idempotency !== undefined ||
  continues !== undefined ||
  (effect !== undefined && !isHotRead(effect));

/** Returns the function that executes a command. It throws errors that end the batch. */
function createPerformance(
  queries: Queries,
  incidents: Incidents,
  { all: handlers, log, filings, times, outbox }: PostgresHandlers,
  admission: Pick<PostgresAdmission, 'flushCalls'>,
): (command: Command) => CommandResult | Failed | Promise<CommandResult | Failed> {
  const isHot = (command: Command): boolean => command.kind === 'FileArtwork' || isHotRead(command);

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
