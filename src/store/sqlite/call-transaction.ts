import { usageThreshold } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { apiErrorData, errorOf } from '../../domain/violation.ts';
import type { Command, CommandResult, Executed, Kind, QuotaClaim, StoreRequest } from '../store.ts';
import { createAuditHandlers, createAuditLog } from './audit-log.ts';
import { createCallerHandlers } from './caller-handlers.ts';
import type { Database } from './connection.ts';
import { createDeliveryHandlers } from './deliveries.ts';
import { createEventHandlers, createEventReads } from './events.ts';
import { createEvidenceHandlers } from './evidence-handlers.ts';
import { createEvidenceLog, type EvidenceLog } from './evidence-log.ts';
import { type Failure, type Incidents, internalError, isMachineFault } from './failure.ts';
import { createFilingHandlers } from './filings.ts';
import { type Handlers, reads, writesLast } from './handlers.ts';
import { createIdempotencyKeys } from './idempotency.ts';
import { createLeaves, type Leaves } from './leaves.ts';
import { createLogHandlers } from './log-handlers.ts';
import { createMetricHandlers } from './metrics.ts';
import { createNonces } from './nonces.ts';
import { createOrderHandlers } from './order-handlers.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createQuotas } from './quotas.ts';
import { createRecordCheck } from './record-check.ts';
import { createRestorationHandlers } from './restorations.ts';
import { createRetentionHandlers } from './retention.ts';
import { createTrustedClock, type TrustedClock } from './trusted-clock.ts';
import { createWebhookHandlers } from './webhook-handlers.ts';
import { createWebhookRows } from './webhooks.ts';

/** The reply to a request: its result, or why it was not executed. */
export type Reply = Executed | Failed;

/** The reply to a request that was not executed. */
interface Failed {
  readonly failure: Failure;
}

/** Prepares the execution of single requests, inside the transaction of their batch. */
export function createCallTransaction(database: Database, incidents: Incidents) {
  const { $client: client } = database;
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves, incidents);
  const clock = createTrustedClock(database, log);
  const outbox = createOutbox(database, clock);
  const { all: handlers, callers } = createHandlers(database, { log, leaves, clock, outbox, incidents });
  const nonces = createNonces(database);
  const quotas = createQuotas(database);
  const idempotencyKeys = createIdempotencyKeys(database, (instructionId) =>
    handlers.FindInstruction.run({ kind: 'FindInstruction', instructionId }),
  );
  const perform = createPerformance(client, handlers, { log, outbox, incidents });

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

  /** Admits a request and executes its command. Throws errors that end the batch. */
  function execute({ admission, continues, effect }: StoreRequest): Reply {
    const { nowS = 0, sweepAtS = nowS, nonce, idempotency, quota } = admission ?? {};
    const counted = () => quota && quotas.counted(quota);
    if (nonce !== undefined && !nonces.spend(nonce, nowS, sweepAtS)) {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'NONCE_REUSED' }, calls: counted() };
    }
    const known = idempotency && idempotencyKeys.find(idempotency, sweepAtS);
    if (known?.kind === 'REUSED') {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'IDEMPOTENCY_KEY_REUSED' }, calls: counted() };
    }
    // A repetition does not count against the quota, whether its result is known yet or not.
    if (known !== undefined) return { outcome: known.outcome, calls: counted(), claimedBy: known.claimedBy };
    const calls = quota?.take ? quotas.take(quota) : counted();
    if (quota?.take && calls !== undefined) appendUsageEvent(quota, calls, nowS);
    if (quota?.take && calls === undefined) {
      return { outcome: { kind: 'NOT_ADMITTED', why: 'QUOTA_EXCEEDED' }, calls: counted() };
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

  return { nonces, log, outbox, writes, changesCredentials, execute };
}

/** Returns the function that executes a command: entirely, or not at all if it is rejected or fails. It throws errors that end the batch. */
function createPerformance(
  client: Database['$client'],
  handlers: Handlers,
  { log, outbox, incidents }: Pick<HandlerParts, 'log' | 'outbox' | 'incidents'>,
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

/** The parts that handlers share. */
interface HandlerParts {
  readonly log: EvidenceLog;
  readonly leaves: Leaves;
  readonly clock: TrustedClock;
  readonly outbox: Outbox;
  readonly incidents: Incidents;
}

/** Makes the handlers of all commands. */
function createHandlers(
  database: Database,
  { log, leaves, clock, outbox, incidents }: HandlerParts,
): { readonly all: Handlers; readonly callers: ReadonlySet<Kind> } {
  const { $client: client } = database;
  const recordAudit = createAuditLog(database);
  const events = createEventReads(database);
  const webhooks = createWebhookRows(database);
  const check = createRecordCheck(log, leaves, incidents);
  const callerHandlers = createCallerHandlers(database, recordAudit, outbox);
  const all: Handlers = {
    ...createFilingHandlers({ database, log, outbox, clock, incidents, check }),
    ...createEvidenceHandlers(database, log, leaves, clock, recordAudit, check, incidents),
    ...createLogHandlers(database, recordAudit, log),
    ...createOrderHandlers(database, recordAudit, log, outbox, check),
    ...callerHandlers,
    ...createEventHandlers(database, events, outbox),
    ...createDeliveryHandlers(database, webhooks, events, outbox, clock),
    ...createWebhookHandlers(database, webhooks, events, recordAudit, outbox),
    ...createAuditHandlers(database),
    ...createMetricHandlers(database, events),
    ...createRestorationHandlers(database, log),
    ...createRetentionHandlers(database, recordAudit, log, clock, check),
    Reject: reads(({ apiError }) => {
      throw errorOf(apiError);
    }),
    // Setting the schema version writes the first page even if it stays the same. A row that stays the same is not written.
    RewriteNothing: writesLast(() => {
      client.pragma(`user_version = ${client.pragma('user_version', { simple: true })}`);
      return undefined;
    }),
  };
  return { all, callers: new Set(Object.keys(callerHandlers) as Kind[]) };
}
