import { errorOf } from '../../domain/violation.ts';
import { createAuditHandlers, createAuditLog } from './audit-log.ts';
import { createCallerHandlers } from './caller-handlers.ts';
import { createDeliveryHandlers } from './deliveries.ts';
import { createOrderHandlers } from './escrows.ts';
import { createEventHandlers, createEventReads } from './events.ts';
import { createEvidenceHandlers } from './evidence-handlers.ts';
import { createEvidenceLog } from './evidence-log.ts';
import type { Incidents } from './failure.ts';
import { createFilingHandlers } from './filings.ts';
import { type Handlers, reads, writesLast } from './handlers.ts';
import { createLeaves } from './leaves.ts';
import { createLogHandlers } from './log-handlers.ts';
import { createMetricHandlers } from './metrics.ts';
import { createOutbox } from './outbox.ts';
import type { Parts } from './parts.ts';
import { createProvenanceRecords } from './provenance.ts';
import { createRecordCheck } from './record-check.ts';
import { createRestorationHandlers } from './restorations.ts';
import { createRetentionHandlers } from './retention.ts';
import type { Database } from './statement.ts';
import { createTrustedClock } from './trusted-clock.ts';
import { createWebhookHandlers } from './webhook-handlers.ts';
import { createWebhookRows } from './webhooks.ts';

/** Makes the handlers of all commands, and what they share with the transaction that they run in. */
export function createHandlers(database: Database, incidents: Incidents) {
  const { $client: client } = database;
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves, incidents);
  const clock = createTrustedClock(database, log);
  const outbox = createOutbox(database, clock);
  const recordAudit = createAuditLog(database);
  const events = createEventReads(database);
  const webhooks = createWebhookRows(database);
  const check = createRecordCheck(log, leaves, incidents);
  const provenance = createProvenanceRecords(database, log, outbox, check);
  const shared = { database, incidents, leaves, log, clock, outbox, recordAudit, events };
  const parts: Parts = { ...shared, webhooks, check, provenance };
  const callerHandlers = createCallerHandlers(parts);
  const all: Handlers = {
    ...createFilingHandlers(parts),
    ...createEvidenceHandlers(parts),
    ...createLogHandlers(parts),
    ...createOrderHandlers(parts),
    ...callerHandlers,
    ...createEventHandlers(database, events, outbox),
    ...createDeliveryHandlers(parts),
    ...createWebhookHandlers(parts),
    ...createAuditHandlers(database),
    ...createMetricHandlers(parts),
    ...createRestorationHandlers(parts),
    ...createRetentionHandlers(parts),
    Reject: reads(({ apiError }) => {
      throw errorOf(apiError);
    }),
    // Setting the schema version writes the first page even if it stays the same. A row that stays the same is not written.
    RewriteNothing: writesLast(() => {
      client.pragma(`user_version = ${client.pragma('user_version', { simple: true })}`);
      return undefined;
    }),
  };
  return { all, callers: new Set(Object.keys(callerHandlers)), log, outbox };
}
