import { usageThreshold } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData, errorOf } from '../../domain/violation.ts';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type {
  Command,
  CommandResult,
  Executed,
  Kind,
  QuotaClaim,
  SchemaUpgrade,
  StorageErrors,
  StoreMetrics,
  StoreOptions,
  StoreRequest,
} from '../store.ts';
import { createActHandlers, createAuditLog } from './audit-log.ts';
import { createCallerHandlers } from './callers.ts';
import { charactersIn } from './characters.ts';
import type { Database } from './connection.ts';
import { type Credentials, watchCredentials } from './credentials.ts';
import { refuseDamaged, wasCutOff } from './damage.ts';
import { openDatabase, servingBusyTimeoutMs, busyTimeoutMs as waitingBusyTimeoutMs } from './database.ts';
import { createDeliveryHandlers } from './deliveries.ts';
import { deploymentSecret } from './deployment-secret.ts';
import { createEventHandlers, createEventReads } from './events.ts';
import { createEvidenceHandlers } from './evidence.ts';
import { createEvidenceLog } from './evidence-log.ts';
import {
  cannotWork,
  DatabaseFileReplaced,
  type Failure,
  fateUnknown,
  internalError,
  isBusy,
  isDamage,
  isMachineFault,
  machineFailure,
  unavailableFor,
} from './failure.ts';
import { readFileMetrics } from './file-metrics.ts';
import { watchFiles } from './file-watch.ts';
import { createFilingHandlers } from './filings.ts';
import { type Handlers, reads, writesAtOnce } from './handlers.ts';
import { createIdempotencyKeys } from './idempotency.ts';
import { createIncidents, type Incidents } from './incidents.ts';
import { createLeaves } from './leaves.ts';
import { databaseFile } from './location.ts';
import { createLogHandlers } from './log.ts';
import { createMetricHandlers } from './metrics.ts';
import { createNonces } from './nonces.ts';
import { createOrderHandlers } from './order-handlers.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createQuotas } from './quotas.ts';
import { createRecordCheck } from './record-check.ts';
import { createRestorationHandlers } from './restorations.ts';
import { createRetentionHandlers } from './retention.ts';
import { rejectServed, type ServingLock, takeServingLock } from './serving-lock.ts';
import { createTrustedClock } from './trusted-clock.ts';
import { createWebhookHandlers } from './webhook-handlers.ts';
import { createWebhookRows } from './webhooks.ts';

/** What became of a unit: executed, or why not. */
export type Reply = Executed | Failed;

/** The reply to a unit that was not executed. */
interface Failed {
  readonly failure: Failure;
}

/** The synchronous core of the engine: one connection, and one transaction for each batch of units. */
export interface Core {
  /** The secret of the deployment, 32 bytes. */
  readonly secret: Uint8Array;
  /** As `Store.checkedMs`. */
  readonly checkedMs: number | undefined;
  /** As `Store.upgrade`. */
  readonly upgrade: SchemaUpgrade | undefined;
  /**
   * Carries out units in their order. When it returns, all that the replies tell is on disk. Where the replies are long,
   * they are those of the first units alone, and nothing was done for the others. What it throws leaves open what was
   * stored: the connection is of no use then.
   */
  executeBatch(units: readonly StoreRequest[]): readonly Reply[];
  /** Keys and tokens, if they may have changed since they were last asked for and can be read. */
  changedCredentials(): Credentials | undefined;
  /** As `Outbox.takeNews`; undefined as well where it cannot be read. */
  takeEventNews(looks: boolean): ReturnType<Outbox['takeNews']>;
  /** Makes this process the one that takes calls. Throws DatabaseError. */
  beginServing(): void;
  /** Looks whether the files are in their place: what is wrong, in words for the operator, or undefined. */
  findFault(): string | undefined;
  /** As `Store.storageErrors`; the same object until there is another error. */
  storageErrors(): StorageErrors;
  metrics(): CoreMetrics;
  close(): void;
}

/** What the core knows of what an operator watches. */
export type CoreMetrics = Omit<StoreMetrics, 'unitsInFlight'>;

/** Characters in the replies of a batch behind which it ends, so that whoever hears them can do other things between. */
const repliedCharactersMax = 500_000;

/** Bounds of the number of units that share a transaction. */
const unitBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000];

/** Opens the core: WAL with `synchronous=FULL`. Throws DatabaseError. */
export function openCore(options: StoreOptions): Core {
  // Before the database is checked, which may take minutes.
  if (options.serving) rejectServed(options.dataDir);
  let lock: ServingLock | undefined;
  const { database, checkedMs, upgrade } = openChecked(options);
  const { $client: client } = database;
  const busyTimeoutMs = options.serving ? servingBusyTimeoutMs : waitingBusyTimeoutMs;
  const files = watchFiles(databaseFile(options.dataDir));
  const incidents = createIncidents();
  const { nonces, log, outbox, writes, governs, carryOut } = createCallTransaction(database, incidents);
  const credentials = watchCredentials(database);
  const beginWriting = createBeginning(client, busyTimeoutMs);
  const beginReading = client.prepare('BEGIN');
  const commit = client.prepare('COMMIT');
  const transactionUnits = createDistribution(unitBounds);
  const transactionSeconds = createDistribution(durationBoundsS);
  const commitSeconds = createDistribution(durationBoundsS);

  /** Carries out units until their replies are long. */
  function carryOutSome(units: readonly StoreRequest[]): readonly Reply[] {
    const replies: Reply[] = [];
    let characters = 0;
    for (const unit of units) {
      const reply = carryOut(unit);
      replies.push(reply);
      characters += charactersIn(reply);
      if (characters > repliedCharactersMax) break;
    }
    return replies;
  }

  function transact(units: readonly StoreRequest[], isWriting: boolean): readonly Reply[] {
    if (isWriting) beginWriting();
    else beginReading.run();
    try {
      const replies = carryOutSome(units);
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
  function measured(units: readonly StoreRequest[]): readonly Reply[] {
    const replies = transactionSeconds.time(() => transact(units, true));
    transactionUnits.add(replies.length);
    return replies;
  }

  /** Throws if the files are not in their place. */
  function rejectReplacedFile(): void {
    const fault = files.look();
    if (fault !== undefined) throw new DatabaseFileReplaced(fault);
  }

  /** Carries out a batch in one transaction. If that fails, what only reads is answered nevertheless. */
  function attempt(units: readonly StoreRequest[]): readonly Reply[] {
    const fault = client.open ? files.found() : 'the store is closed';
    if (fault !== undefined) return units.map(() => ({ failure: unavailableFor(cannotWork, fault) }));
    const isWriting = units.some(writes);
    try {
      const replies = isWriting ? measured(units) : transact(units, false);
      // What went into files that are not in their place any more is there once they are back, if they ever are.
      const displaced = isWriting ? files.look() : undefined;
      return displaced === undefined
        ? replies
        : units.map(() => ({ failure: unavailableFor(fateUnknown, displaced) }));
    } catch (error) {
      if (!isMachineFault(error) && units.length > 1) return halved(units);
      incidents.meet(error, isWriting ? 'write' : 'read');
      if (!isMachineFault(error)) return [{ failure: internalError(error) }];
      const failure = machineFailure(error, isWriting);
      return units.flatMap((unit) => (isWriting && !writes(unit) ? attempt([unit]) : [{ failure }]));
    }
  }

  /** Each half in a transaction of its own, and so on: what is wrong with one unit is no fault of the others. */
  function halved(units: readonly StoreRequest[]): readonly Reply[] {
    const first = units.slice(0, Math.ceil(units.length / 2));
    const replies = attempt(first);
    return replies.length < first.length ? replies : [...replies, ...attempt(units.slice(first.length))];
  }

  /** What is read outside of units; undefined where it cannot be read. */
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
    executeBatch: (units) => {
      if (units.some(governs)) credentials.touch();
      return attempt(units);
    },
    // Those in memory go on to identify callers, whose units are then refused.
    changedCredentials: () => readable(() => credentials.changed()),
    takeEventNews: (looks) => readable(() => outbox.takeNews(looks)),
    beginServing: () => {
      lock ??= takeServingLock(options.dataDir);
      nonces.refresh();
    },
    findFault: () => files.look(),
    storageErrors: incidents.storageErrors,
    metrics: () => ({
      transactionUnits: transactionUnits.data(),
      transactionSeconds: transactionSeconds.data(),
      commitSeconds: commitSeconds.data(),
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

/** What carries out single units, inside the transaction of their batch. */
function createCallTransaction(database: Database, incidents: Incidents) {
  const { $client: client } = database;
  const recordAudit = createAuditLog(database);
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves, incidents);
  const dated = createTrustedClock(database, log);
  const outbox = createOutbox(database, dated);
  const events = createEventReads(database);
  const webhooks = createWebhookRows(database);
  const check = createRecordCheck(log, leaves, incidents);
  const callerHandlers = createCallerHandlers(database, recordAudit, outbox);
  const handlers: Handlers = {
    ...createFilingHandlers(database, log, outbox, dated, incidents, check),
    ...createEvidenceHandlers(database, log, leaves, dated, recordAudit, check, incidents),
    ...createLogHandlers(database, recordAudit, log),
    ...createOrderHandlers(database, recordAudit, log, outbox, check),
    ...callerHandlers,
    ...createEventHandlers(database, events, outbox),
    ...createDeliveryHandlers(database, webhooks, events, outbox, dated),
    ...createWebhookHandlers(database, webhooks, events, recordAudit, outbox),
    ...createActHandlers(database),
    ...createMetricHandlers(database, events),
    ...createRestorationHandlers(database, log),
    ...createRetentionHandlers(database, recordAudit, log, dated, check),
    Refuse: reads(({ apiError }) => {
      throw errorOf(apiError);
    }),
    // To set the version of the schema is to write the first page, whatever it was; rows that stay the same are not written.
    RewriteNothing: writesAtOnce(() => {
      client.pragma(`user_version = ${client.pragma('user_version', { simple: true })}`);
      return undefined;
    }),
  };
  const nonces = createNonces(database);
  const quotas = createQuotas(database);
  const idempotencyKeys = createIdempotencyKeys(database, (instructionId) =>
    handlers.FindInstruction.run({ kind: 'FindInstruction', instructionId }),
  );
  const savepoint = client.prepare('SAVEPOINT effect');
  const release = client.prepare('RELEASE effect');
  const rollBack = client.prepare('ROLLBACK TO effect');

  const changes = (kind: Kind): boolean => handlers[kind].access !== 'READ';

  function writes({ admission, continues, effect }: StoreRequest): boolean {
    const isKeeping = admission?.nonce ?? admission?.idempotency ?? admission?.quota?.take ?? continues;
    return Boolean(isKeeping) || (effect !== undefined && changes(effect.kind));
  }

  /** Whether a unit may change credentials. */
  function governs({ effect }: StoreRequest): boolean {
    return effect !== undefined && effect.kind in callerHandlers && changes(effect.kind);
  }

  function run<K extends Kind>(command: Command<K>): CommandResult {
    const handler = handlers[command.kind] as unknown as Handlers[K];
    return { kind: 'DONE', result: handler.run(command), isReplay: false };
  }

  /** Carries an effect out: entirely, or, when it is refused or fails, not at all. Throws what ends its batch. */
  function perform(command: Command): CommandResult | Failed {
    const { access } = handlers[command.kind];
    const isSaved = access === 'WRITE';
    const isAtOnce = access === 'SINGLE_WRITE';
    let outcome: CommandResult;
    if (!isAtOnce) log.write();
    if (isSaved) savepoint.run();
    try {
      outcome = run(command);
      if (isSaved) release.run();
    } catch (error) {
      if (isMachineFault(error) || !client.inTransaction) throw error;
      log.drop();
      outbox.drop();
      if (isSaved) {
        rollBack.run();
        release.run();
      }
      if (!(error instanceof ApiError)) {
        incidents.meet(error, isSaved || isAtOnce ? 'write' : 'read');
        return { failure: internalError(error) };
      }
      return { kind: 'REFUSED', apiError: apiErrorData(error), isReplay: false };
    }
    // Outside of what is undone by itself: a record without its leaf must not be left, whatever fails here.
    if (isAtOnce) log.keep();
    else log.write();
    outbox.keep();
    return outcome;
  }

  /** Tells a platform that a call used up a part of its quota; that stays, whatever becomes of the effect. */
  function tellUsage({ callerId, month, limit }: QuotaClaim, calls: number, nowS: number): void {
    const percent = limit && usageThreshold(calls, limit);
    if (!percent) return;
    outbox.tell({ type: 'usage.threshold', callerId, atMs: nowS * 1_000, month, percent });
    outbox.keep();
  }

  /** Lets a unit in and carries it out. Throws what ends its batch. */
  function carryOut({ admission, continues, effect }: StoreRequest): Reply {
    const { nowS = 0, sweepAtS = nowS, nonce, idempotency, quota } = admission ?? {};
    const told = () => quota && quotas.counted(quota);
    if (nonce !== undefined && !nonces.spend(nonce, nowS, sweepAtS)) {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'NONCE_REUSED' }, calls: told() };
    }
    const known = idempotency && idempotencyKeys.find(idempotency, sweepAtS);
    if (known?.kind === 'REUSED') {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'IDEMPOTENCY_KEY_REUSED' }, calls: told() };
    }
    // A repetition is not counted, whether its answer is known yet or not.
    if (known !== undefined) return { outcome: known.outcome, calls: told(), claimedBy: known.claimedBy };
    const calls = quota?.take ? quotas.take(quota) : told();
    if (quota?.take && calls !== undefined) tellUsage(quota, calls, nowS);
    if (quota?.take && calls === undefined) {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'QUOTA_EXCEEDED' }, calls: told() };
    }
    if (effect === undefined) {
      return { outcome: { kind: 'DONE', result: undefined, isReplay: false }, calls };
    }
    const outcome = perform(effect);
    if ('failure' in outcome) return outcome;
    if (idempotency) idempotencyKeys.keep(idempotency, nowS, effect.kind, outcome);
    if (continues) idempotencyKeys.replace(continues, outcome);
    return { outcome, calls };
  }

  return { nonces, log, outbox, writes, governs, carryOut };
}

/**
 * What begins a transaction that writes. Once another process was waited for in vain, it is not waited for again as long
 * as it holds on.
 */
function createBeginning(client: Database['$client'], busyTimeoutMs: number): () => void {
  const begin = client.prepare('BEGIN IMMEDIATE');
  /** Whether another process was found to hold the write lock. */
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

/** Opens the database. Checks it if the process that served it last did not close it. */
function openChecked(options: StoreOptions) {
  let checkedMs: number | undefined;
  let upgrade: SchemaUpgrade | undefined;
  const check = (client: Database['$client']) => {
    checkedMs = refuseDamaged(client);
  };
  const onUpgrade = (upgraded: SchemaUpgrade) => {
    upgrade = upgraded;
  };
  const isCutOff = options.serving === true && wasCutOff(options);
  const database = openDatabase(options, { onUpgrade }, isCutOff ? check : undefined);
  return { database, checkedMs, upgrade };
}
