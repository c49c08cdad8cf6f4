import { usageThreshold } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData } from '../../domain/violation.ts';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type {
  AdmissionFault,
  Command,
  CommandResult,
  Executed,
  Kind,
  QuotaClaim,
  StoreMetrics,
  StoreOptions,
  StoreRequest,
} from '../store.ts';
import { createHandlers } from './command-handlers.ts';
import { charactersIn } from './costs.ts';
import { watchCredentials } from './credentials.ts';
import { deploymentSecret, openChecked } from './database.ts';
import type { EvidenceLog } from './evidence-log.ts';
import {
  cannotWork,
  createIncidents,
  DatabaseFileReplaced,
  type Failure,
  fateUnknown,
  type Incidents,
  internalError,
  isDamage,
  isMachineFault,
  machineFailure,
  unavailableFor,
} from './failure.ts';
import { type FileWatch, readFileMetrics, watchFiles } from './file-watch.ts';
import type { Handlers } from './handlers.ts';
import { createIdempotencyKeys } from './idempotency.ts';
import { databaseFile } from './location.ts';
import { createNonces } from './nonces.ts';
import type { Outbox } from './outbox.ts';
import { createQuotas } from './quotas.ts';
import type { Database } from './statement.ts';

/** The reply to a request: its result, or why it was not executed. */
export type Reply = Executed | Failed;

/** The reply to a request that was not executed. */
interface Failed {
  readonly failure: Failure;
}

/** Characters in the replies of a batch after which it ends, so that the receiving thread can do other work between. */
const repliedCharactersMax = 500_000;

/** Bounds of the distribution of requests in a transaction. */
const requestBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];

/** As `openCore` makes it. */
export type Core = ReturnType<typeof openCore>;

/**
 * Opens the synchronous core of the engine: one connection in WAL mode with `synchronous=FULL`, and one transaction for each batch
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
  const incidents = createIncidents();
  const singly = createRequests(database, incidents);
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
    secret: deploymentSecret(database),
    /** As `Store.checkedMs`. */
    checkedMs,
    /** As `Store.upgrade`. */
    upgrade,
    /**
     * Executes requests in their order, durably. If the replies get long, it returns those of the first requests only and has
     * not executed the others. If it throws, nobody knows what was stored, and the core must not be used any more.
     */
    executeBatch: (requests: readonly StoreRequest[]): readonly Reply[] => {
      if (requests.some(changesCredentials)) credentials.touch();
      const replies = attempt(requests);
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

type Requests = ReturnType<typeof createRequests>;

/** Runs transactions of several requests, and measures those that write. */
function createTransactions(
  client: Database['$client'],
  files: FileWatch,
  { nonces, log, outbox, execute }: Requests,
) {
  const beginWriting = client.prepare('BEGIN IMMEDIATE');
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
    if (isWriting) beginWriting.run();
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
  { transact, measured }: ReturnType<typeof createTransactions>,
  writes: Requests['writes'],
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

/** Prepares the execution of single requests, inside the transaction of their batch. */
function createRequests(database: Database, incidents: Incidents) {
  const { all: handlers, callers, log, outbox } = createHandlers(database, incidents);
  const nonces = createNonces(database);
  const quotas = createQuotas(database);
  const idempotencyKeys = createIdempotencyKeys(database, (instructionId) =>
    handlers.FindInstruction.run({ kind: 'FindInstruction', instructionId }),
  );
  const perform = createPerformance(database, incidents, handlers, log, outbox);

  const changes = (kind: Kind): boolean => handlers[kind].isWriting;

  function writes({ admission, continues, effect }: StoreRequest): boolean {
    const isKeeping = admission?.nonce ?? admission?.idempotency ?? admission?.quota?.take ?? continues;
    return Boolean(isKeeping) || (effect !== undefined && changes(effect.kind));
  }

  /** Whether a request may change credentials. */
  function changesCredentials({ effect }: StoreRequest): boolean {
    return effect !== undefined && callers.has(effect.kind) && changes(effect.kind);
  }

  /** Appends a usage.threshold event if a call reaches a threshold of the quota. The event stays even if the command fails. */
  function appendUsageEvent({ callerId, month, limit }: QuotaClaim, calls: number, nowS: number): void {
    const percent = limit && usageThreshold(calls, limit);
    if (!percent) return;
    outbox.add({ type: 'usage.threshold', callerId, atMs: nowS * 1_000, month, percent });
    outbox.keep();
  }

  const countedOf = (quota: QuotaClaim | undefined) => quota && quotas.counted(quota);
  const notAdmitted = (why: AdmissionFault, quota: QuotaClaim | undefined): Reply => ({
    outcome: { kind: 'NOT_ADMITTED', why },
    calls: countedOf(quota),
  });

  /** Admits a request and executes its command. Throws errors that end the batch. */
  function execute({ admission, continues, effect }: StoreRequest): Reply {
    const { nowS = 0, sweepAtS = nowS, nonce, idempotency, quota } = admission ?? {};
    if (nonce !== undefined && !nonces.spend(nonce, nowS, sweepAtS))
      return notAdmitted('NONCE_REUSED', quota);
    const known = idempotency && idempotencyKeys.find(idempotency, sweepAtS);
    if (known?.kind === 'REUSED') return notAdmitted('IDEMPOTENCY_KEY_REUSED', quota);
    // A repetition does not count against the quota, whether its result is known yet or not.
    if (known !== undefined)
      return { outcome: known.outcome, calls: countedOf(quota), claimedBy: known.claimedBy };
    const calls = quota?.take ? quotas.take(quota) : countedOf(quota);
    if (quota?.take) {
      if (calls === undefined) return notAdmitted('QUOTA_EXCEEDED', quota);
      appendUsageEvent(quota, calls, nowS);
    }
    if (effect === undefined) return { outcome: { kind: 'DONE', result: undefined, isReplay: false }, calls };
    const outcome = perform(effect);
    if ('failure' in outcome) return outcome;
    if (idempotency) idempotencyKeys.keep(idempotency, nowS, effect.kind, outcome);
    if (continues) idempotencyKeys.replace(continues, outcome);
    return { outcome, calls };
  }

  return { nonces, log, outbox, writes, changesCredentials, execute };
}

/** Returns the function that executes a command: entirely, or not at all if it is rejected or fails. It throws errors that end the batch. */
function createPerformance(
  { $client: client }: Database,
  incidents: Incidents,
  handlers: Handlers,
  log: EvidenceLog,
  outbox: Outbox,
): (command: Command) => CommandResult | Failed {
  const savepoint = client.prepare('SAVEPOINT effect');
  const release = client.prepare('RELEASE effect');
  const rollBack = client.prepare('ROLLBACK TO effect');

  function run<K extends Kind>(command: Command<K>): CommandResult {
    const handler = handlers[command.kind] as unknown as Handlers[K];
    return { kind: 'DONE', result: handler.run(command), isReplay: false };
  }

  return (command) => {
    const { isWriting, needsSavepoint } = handlers[command.kind];
    const keepsLeaves = isWriting && !needsSavepoint;
    let outcome: CommandResult;
    if (!keepsLeaves) log.write();
    if (needsSavepoint) savepoint.run();
    try {
      outcome = run(command);
      if (needsSavepoint) release.run();
    } catch (error) {
      if (isMachineFault(error) || !client.inTransaction) throw error;
      log.drop();
      outbox.drop();
      if (needsSavepoint) {
        rollBack.run();
        release.run();
      }
      if (!(error instanceof ApiError)) {
        incidents.meet(error, isWriting ? 'write' : 'read');
        return { failure: internalError(error) };
      }
      return { kind: 'REJECTED', apiError: apiErrorData(error), isReplay: false };
    }
    // After the savepoint: if this fails, the batch fails, so no record is left without its leaf.
    if (keepsLeaves) log.keep();
    else log.write();
    outbox.keep();
    return outcome;
  };
}
