import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type { SchemaUpgrade, StorageErrors, StoreMetrics, StoreOptions, StoreRequest } from '../store.ts';
import { createCallTransaction, type Reply } from './call-transaction.ts';
import type { Database } from './connection.ts';
import { charactersIn } from './costs.ts';
import { type Credentials, watchCredentials } from './credentials.ts';
import { rejectDamaged, wasCutOff } from './damage.ts';
import { openDatabase, servingBusyTimeoutMs, busyTimeoutMs as waitingBusyTimeoutMs } from './database.ts';
import { deploymentSecret } from './deployment-secret.ts';
import {
  cannotWork,
  createIncidents,
  DatabaseFileReplaced,
  fateUnknown,
  type Incidents,
  internalError,
  isBusy,
  isDamage,
  isMachineFault,
  machineFailure,
  unavailableFor,
} from './failure.ts';
import { type FileWatch, readFileMetrics, watchFiles } from './file-watch.ts';
import { databaseFile } from './location.ts';
import type { Outbox } from './outbox.ts';
import { rejectServed, type ServingLock, takeServingLock } from './serving-lock.ts';
import { schemaOf } from './upgrade.ts';

/** The synchronous core of the engine: one connection, and one transaction for each batch of requests. */
export interface Core {
  /** The secret of the deployment, 32 bytes. */
  readonly secret: Uint8Array;
  /** As `Store.checkedMs`. */
  readonly checkedMs: number | undefined;
  /** As `Store.upgrade`. */
  readonly upgrade: SchemaUpgrade | undefined;
  /**
   * Executes requests in their order, durably. If the replies get long, it returns those of the first requests only and has
   * not executed the others. If it throws, nobody knows what was stored, and the core must not be used any more.
   */
  executeBatch(requests: readonly StoreRequest[]): readonly Reply[];
  /** Keys and tokens, if they may have changed since the last call and can be read. */
  changedCredentials(): Credentials | undefined;
  /** As `Outbox.takeNews`; undefined as well if it cannot be read. */
  takeEventNews(looks: boolean): ReturnType<Outbox['takeNews']>;
  /** Takes the serving lock. Throws DatabaseError if another process has it. */
  beginServing(): void;
  /** Checks that the files are in their place. Returns what is wrong, for the operator, or undefined. */
  findFault(): string | undefined;
  /** As `Store.storageErrors`; the same object until there is another error. */
  storageErrors(): StorageErrors;
  metrics(): CoreMetrics;
  close(): void;
}

/** The metrics of the core. */
export type CoreMetrics = Omit<StoreMetrics, 'requestsInFlight'>;

/** Characters in the replies of a batch after which it ends, so that the receiving thread can do other work between. */
const repliedCharactersMax = 500_000;

/** Bounds of the distribution of requests in a transaction. */
const requestBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];

/** Opens the core: WAL with `synchronous=FULL`. Throws DatabaseError. */
export function openCore(options: StoreOptions): Core {
  // Before the database is checked, which may take minutes.
  if (options.serving || options.opening === 'NEW') rejectServed(options.dataDir);
  let lock: ServingLock | undefined;
  const { database, checkedMs, upgrade } = openChecked(options);
  const { $client: client } = database;
  const files = watchFiles(databaseFile(options.dataDir));
  const incidents = createIncidents();
  const transaction = createCallTransaction(database, incidents);
  const { nonces, outbox, changesCredentials } = transaction;
  const busyTimeoutMs = options.serving ? servingBusyTimeoutMs : waitingBusyTimeoutMs;
  const transactions = createTransactions(client, busyTimeoutMs, files, transaction);
  const attempt = createBatchExecution(client, files, incidents, { ...transactions, ...transaction });
  const credentials = watchCredentials(database);

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
    secret: deploymentSecret(database),
    checkedMs,
    upgrade,
    executeBatch: (requests) => {
      if (requests.some(changesCredentials)) credentials.touch();
      return attempt(requests);
    },
    // If they cannot be read, those in memory identify callers, and their requests are rejected.
    changedCredentials: () => readable(() => credentials.changed()),
    takeEventNews: (looks) => readable(() => outbox.takeNews(looks)),
    beginServing: () => {
      lock ??= takeServingLock(options.dataDir);
      nonces.refresh();
    },
    findFault: () => files.look(),
    storageErrors: incidents.storageErrors,
    metrics: () => ({
      ...transactions.metrics(),
      nonces: nonces.count(),
      incidents: incidents.counts(),
      files: readFileMetrics(databaseFile(options.dataDir)),
    }),
    close: () => {
      client.close();
      lock?.release();
    },
  };
}

type Transaction = ReturnType<typeof createCallTransaction>;

/** Runs transactions of several requests, and measures those that write. */
function createTransactions(
  client: Database['$client'],
  busyTimeoutMs: number,
  files: FileWatch,
  { nonces, log, outbox, execute }: Transaction,
) {
  const beginWriting = createBeginning(client, busyTimeoutMs);
  const beginReading = client.prepare('BEGIN');
  const commit = client.prepare('COMMIT');
  const transactionRequests = createDistribution(requestBounds);
  const transactionSeconds = createDistribution(durationBoundsS);
  const commitSeconds = createDistribution(durationBoundsS);

  /** Executes requests until their replies are long. */
  function executeSome(requests: readonly StoreRequest[]): readonly Reply[] {
    const replies: Reply[] = [];
    let characters = 0;
    for (const request of requests) {
      const reply = execute(request);
      replies.push(reply);
      characters += charactersIn(reply);
      if (characters > repliedCharactersMax) break;
    }
    return replies;
  }

  function transact(requests: readonly StoreRequest[], isWriting: boolean): readonly Reply[] {
    if (isWriting) beginWriting();
    else beginReading.run();
    try {
      const replies = executeSome(requests);
      if (isWriting) {
        nonces.write();
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
      log.rolledBack();
      outbox.rolledBack();
      throw error;
    }
  }

  /** A transaction that writes. */
  function measured(requests: readonly StoreRequest[]): readonly Reply[] {
    const replies = transactionSeconds.time(() => transact(requests, true));
    transactionRequests.add(replies.length);
    return replies;
  }

  /** Throws if the files are not in their place. */
  function rejectReplacedFile(): void {
    const fault = files.look();
    if (fault !== undefined) throw new DatabaseFileReplaced(fault);
  }

  return {
    transact,
    measured,
    metrics: () => ({
      transactionRequests: transactionRequests.data(),
      transactionSeconds: transactionSeconds.data(),
      commitSeconds: commitSeconds.data(),
    }),
  };
}

/** Returns the function that executes a batch. */
function createBatchExecution(
  client: Database['$client'],
  files: FileWatch,
  incidents: Incidents,
  { transact, measured, writes }: ReturnType<typeof createTransactions> & Transaction,
) {
  /** Executes a batch in one transaction. If that fails, requests that only read are executed nevertheless. */
  function attempt(requests: readonly StoreRequest[]): readonly Reply[] {
    const fault = client.open ? files.found() : 'the store is closed';
    if (fault !== undefined) return requests.map(() => ({ failure: unavailableFor(cannotWork, fault) }));
    const isWriting = requests.some(writes);
    try {
      const replies = isWriting ? measured(requests) : transact(requests, false);
      // If the file was moved during the commit, the write may be in it, and is there again once the file is back.
      const replaced = isWriting ? files.look() : undefined;
      return replaced === undefined
        ? replies
        : requests.map(() => ({ failure: unavailableFor(fateUnknown, replaced) }));
    } catch (error) {
      if (!isMachineFault(error) && requests.length > 1) return halved(requests);
      incidents.meet(error, isWriting ? 'write' : 'read');
      if (!isMachineFault(error)) return [{ failure: internalError(error) }];
      const failure = machineFailure(error, isWriting);
      return requests.flatMap((request) =>
        isWriting && !writes(request) ? attempt([request]) : [{ failure }],
      );
    }
  }

  /** Executes each half in its own transaction, recursively, so that a request that fails does not fail the others. */
  function halved(requests: readonly StoreRequest[]): readonly Reply[] {
    const first = requests.slice(0, Math.ceil(requests.length / 2));
    const replies = attempt(first);
    return replies.length < first.length ? replies : [...replies, ...attempt(requests.slice(first.length))];
  }

  return attempt;
}

/**
 * Returns a function that begins a transaction that writes. After one timeout because another process holds the write lock,
 * it fails at once until that process releases the lock.
 */
function createBeginning(client: Database['$client'], busyTimeoutMs: number): () => void {
  const begin = client.prepare('BEGIN IMMEDIATE');
  /** Whether the last attempt found the write lock held. */
  let isHeld = false;
  const waitFor = (timeoutMs: number) => client.pragma(`busy_timeout = ${timeoutMs}`);
  waitFor(busyTimeoutMs);
  return () => {
    try {
      begin.run();
    } catch (error) {
      if (!isHeld && isBusy(error)) {
        isHeld = true;
        waitFor(0);
      }
      throw error;
    }
    if (!isHeld) return;
    isHeld = false;
    waitFor(busyTimeoutMs);
  };
}

/** Opens the database, and checks it if the last process that served it did not close it. */
function openChecked(options: StoreOptions) {
  const isCutOff = options.serving === true && wasCutOff(options);
  let checkedMs: number | undefined;
  let fromSchema: number | undefined;
  const database = openDatabase(options, {}, (client) => {
    fromSchema = schemaOf(client);
    if (isCutOff) checkedMs = rejectDamaged(client);
  });
  const toSchema = schemaOf(database.$client);
  const upgrade: SchemaUpgrade | undefined =
    fromSchema === undefined || fromSchema === toSchema ? undefined : { fromSchema, toSchema };
  return { database, checkedMs, upgrade };
}
