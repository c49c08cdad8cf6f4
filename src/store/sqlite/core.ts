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
  type Reply,
  unavailableFor,
} from '../engine/failure.ts';
import type { Handlers } from '../engine/handlers.ts';
import { createRequests, inHalves, measureTransactions } from '../engine/requests.ts';
import type {
  Command,
  CommandResult,
  Kind,
  Result,
  StoreMetrics,
  StoreOptions,
  StoreRequest,
} from '../store.ts';
import { createIdempotencyKeys, createNonces, createQuotas } from './admission.ts';
import { createHandlers } from './all-handlers.ts';
import { watchCredentials } from './credentials.ts';
import { deploymentOf, openChecked } from './database.ts';
import { type FileWatch, readFileMetrics, watchFiles } from './file-watch.ts';
import { databaseFile } from './location.ts';
import {
  classifyError,
  DatabaseFileReplaced,
  isDamage,
  isMachineFault,
  machineFailure,
} from './sqlite-errors.ts';
import type { SqliteDatabase } from './statement.ts';

/** As `openCore` makes it. */
export type Core = ReturnType<typeof openCore>;

/**
 * Opens the core of the engine: one connection in WAL mode with `synchronous=FULL`, and one transaction for each batch
 * of requests. Throws FolderInUse and DatabaseError.
 */
export function openCore(options: StoreOptions) {
  const opened = openChecked(options);
  try {
    return createCore(options, opened);
  } catch (error) {
    opened.close();
    throw error;
  }
}

function createCore(
  options: StoreOptions,
  { database, close, checkedMs, upgrade }: ReturnType<typeof openChecked>,
) {
  const { $client: client } = database;
  const files = watchFiles(databaseFile(options.dataDir));
  const incidents = createIncidents(classifyError);
  const singly = createRequestsOn(database, incidents);
  const { outbox, changesCredentials } = singly;
  const transactions = createTransactions(client, files, singly);
  const attempt = createBatchExecution(client, files, incidents, transactions, singly.writes);
  const credentials = watchCredentials(database);
  /** Whether the write-ahead log may hold erased texts. */
  let hasErased = false;

  /** Writes the write-ahead log into the database and empties it, unless a reader uses it. Returns whether it is empty. */
  function emptyLog(): boolean {
    const timeoutMs = client.pragma('busy_timeout', { simple: true });
    try {
      // Nobody waits for a reader, such as a backup: the next batch tries again.
      client.pragma('busy_timeout = 0');
      const [result] = client.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
      return result?.busy === 0;
    } catch (error) {
      incidents.meet(error, 'write');
      return false;
    } finally {
      if (client.open) client.pragma(`busy_timeout = ${timeoutMs}`);
    }
  }

  /** Reads outside of requests; undefined if that is not possible. */
  function readable<T>(read: () => T): T | undefined {
    try {
      if (client.open) return read();
    } catch (error) {
      incidents.meet(error, 'read');
      if (!isMachineFault(error) && !isDamage(error)) throw error;
    }
    return undefined;
  }

  return {
    /** The secret of the deployment, 32 bytes. */
    secret: deploymentOf(database).secret,
    /** As `Store.checkedMs`. */
    checkedMs,
    /** As `Store.upgrade`. */
    upgrade,
    /**
     * Executes requests in their order, durably. If the replies get long, it returns those of the first requests only and has
     * not executed the others. If it throws, nobody knows what was stored, and the core must not be used any more.
     */
    executeBatch: async (requests: readonly StoreRequest[]): Promise<readonly Reply[]> => {
      if (requests.some(changesCredentials)) credentials.touch();
      const replies = await attempt(requests);
      hasErased ||= requests.some(({ effect }) => effect?.kind === 'EraseFilings');
      if (hasErased) hasErased = client.open && !emptyLog();
      return replies;
    },
    /**
     * Keys and tokens, if they may have changed since the last call and can be read. If not, those in memory identify callers, and
     * their requests are rejected.
     */
    changedCredentials: () => readable(() => credentials.changed()),
    takeEventNews: outbox.takeNews,
    /** Checks that the files are in their place. Returns what is wrong, for the operator, or undefined. */
    findFault: () => files.look(),
    /** As `Store.storageErrors`; the same object until there is another error. */
    storageErrors: incidents.storageErrors,
    metrics: (): Omit<StoreMetrics, 'requestsInFlight'> => ({
      ...transactions.metrics(),
      nonces: singly.nonces.count(),
      incidents: incidents.counts(),
      files: readFileMetrics(databaseFile(options.dataDir)),
    }),
    close,
  };
}

type Requests = ReturnType<typeof createRequestsOn>;

/** Runs transactions of several requests, and measures those that write. */
function createTransactions(
  client: SqliteDatabase['$client'],
  files: FileWatch,
  { nonces, quotas, log, outbox, executeSome }: Requests,
) {
  const beginWriting = client.prepare('BEGIN IMMEDIATE');
  const beginReading = client.prepare('BEGIN');
  const commit = client.prepare('COMMIT');
  const { run, commitSeconds, metrics } = measureTransactions();

  async function transact(requests: readonly StoreRequest[], isWriting: boolean): Promise<readonly Reply[]> {
    if (isWriting) beginWriting.run();
    else beginReading.run();
    try {
      const replies = await executeSome(requests);
      if (isWriting) {
        nonces.write();
        quotas.write();
        log.write();
        outbox.write();
        rejectReplacedFile();
        commitSeconds.time(() => commit.run());
      } else {
        commit.run();
      }
      nonces.committed();
      log.committed();
      outbox.committed();
      return replies;
    } catch (error) {
      if (client.inTransaction) client.exec('ROLLBACK');
      nonces.rolledBack();
      quotas.rolledBack();
      log.rolledBack();
      outbox.rolledBack();
      throw error;
    }
  }

  /** Throws if the files are not in their place. */
  function rejectReplacedFile(): void {
    const fault = files.look();
    if (fault !== undefined) throw new DatabaseFileReplaced(fault);
  }

  return {
    transact: (requests: readonly StoreRequest[], isWriting: boolean) =>
      run(isWriting, () => transact(requests, isWriting)),
    metrics,
  };
}

/** Returns the function that executes a batch. */
function createBatchExecution(
  client: SqliteDatabase['$client'],
  files: FileWatch,
  incidents: Incidents,
  { transact }: ReturnType<typeof createTransactions>,
  writes: Requests['writes'],
) {
  /** Executes a batch in one transaction. If that fails, requests that only read are executed nevertheless. */
  async function attempt(requests: readonly StoreRequest[]): Promise<readonly Reply[]> {
    const fault = client.open ? files.found() : 'the store is closed';
    if (fault !== undefined) return requests.map(() => ({ failure: unavailableFor(cannotWork, fault) }));
    const isWriting = requests.some(writes);
    try {
      const replies = await transact(requests, isWriting);
      // If the file was moved during the commit, the write may be in it, and is there again once the file is back.
      const replaced = isWriting ? files.look() : undefined;
      return replaced === undefined
        ? replies
        : requests.map(() => ({ failure: unavailableFor(fateUnknown, replaced) }));
    } catch (thrown) {
      const error = driverError(thrown);
      if (!isMachineFault(error) && requests.length > 1) return inHalves(requests, attempt);
      incidents.meet(error, isWriting ? 'write' : 'read');
      if (!isMachineFault(error)) return [{ failure: internalError(error) }];
      const failure = machineFailure(error, isWriting);
      const replies: Reply[] = [];
      for (const request of requests)
        replies.push(...(isWriting && !writes(request) ? await attempt([request]) : [{ failure }]));
      return replies;
    }
  }

  return attempt;
}

/** Prepares the execution of single requests on a database. */
function createRequestsOn(database: SqliteDatabase, incidents: Incidents) {
  const handlers = createHandlers(database, incidents);
  const { all, callers, log, outbox } = handlers;
  const nonces = createNonces(database);
  const quotas = createQuotas(database);
  const requests = createRequests({
    ...{ handlers: all, callers, quotas, outbox },
    perform: createPerformance(database, incidents, handlers, quotas),
    spendNonce: nonces.spend,
    keys: createIdempotencyKeys(database),
  });
  return { ...requests, nonces, quotas, log, outbox };
}

/** Returns the function that executes a command: entirely, or not at all if it is rejected or fails. It throws errors that end the batch. */
function createPerformance(
  { $client: client }: SqliteDatabase,
  incidents: Incidents,
  { all: handlers, hot, log, outbox }: ReturnType<typeof createHandlers>,
  quotas: Pick<ReturnType<typeof createQuotas>, 'write'>,
): (command: Command) => CommandResult | Failed | Promise<CommandResult | Failed> {
  const savepoint = client.prepare('SAVEPOINT effect');
  const release = client.prepare('RELEASE effect');
  const rollBack = client.prepare('ROLLBACK TO effect');

  function run<K extends Kind>(command: Command<K>): Result<K> | Promise<Result<K>> {
    return (handlers[command.kind] as unknown as Handlers[K]).run(command);
  }

  function done({ kind }: Command, result: Result): CommandResult {
    const { isWriting, needsSavepoint } = handlers[kind];
    if (needsSavepoint) release.run();
    // After the savepoint: if this fails, the batch fails, so no record is left without its leaf.
    if (isWriting && !needsSavepoint) log.keep();
    else log.write();
    outbox.keep();
    return { kind: 'DONE', result, isReplay: false };
  }

  function failed({ kind }: Command, thrown: unknown): CommandResult | Failed {
    const error = driverError(thrown);
    const { isWriting, needsSavepoint } = handlers[kind];
    if (isMachineFault(error) || !client.inTransaction) throw error;
    log.drop();
    outbox.drop();
    if (needsSavepoint) {
      rollBack.run();
      release.run();
    }
    if (error instanceof ApiError)
      return { kind: 'REJECTED', apiError: apiErrorData(error), isReplay: false };
    incidents.meet(error, isWriting ? 'write' : 'read');
    return { failure: internalError(error) };
  }

  return (command) => {
    const { isWriting, needsSavepoint } = handlers[command.kind];
    // Hot commands read no counts.
    if (!(command.kind in hot)) quotas.write();
    if (!isWriting || needsSavepoint) log.write();
    if (needsSavepoint) savepoint.run();
    let result: Result | Promise<Result>;
    try {
      result = run(command);
    } catch (error) {
      return failed(command, error);
    }
    if (!(result instanceof Promise)) return done(command, result);
    return result.then(
      (value) => done(command, value),
      (error) => failed(command, error),
    );
  };
}
