import { errorOf } from '../../domain/violation.ts';
import type { HotCommands } from '../engine/filings.ts';
import { type Handlers, reads } from '../engine/handlers.ts';
import type { EngineParts } from '../engine/parts.ts';
import type { InstanceCommands } from '../instance-commands.ts';
import type { Kind } from '../store.ts';
import { createAuditHandlers, createAuditLog } from './audit-log.ts';
import { createCallerHandlers } from './caller-handlers.ts';
import { createDeliveryHandlers } from './deliveries.ts';
import { createOrderHandlers } from './escrows.ts';
import { createEventHandlers } from './event-handlers.ts';
import { createEvidenceHandlers } from './evidence-handlers.ts';
import { createListHandler } from './filings.ts';
import { createLogHandlers } from './log-handlers.ts';
import { createMetricHandlers } from './metrics.ts';
import type { Parts } from './parts.ts';
import { createProvenanceRecords } from './provenance.ts';
import { createAccessHandlers, createRegistrationHandlers } from './registrations.ts';
import { createRestorationHandlers } from './restorations.ts';
import { createRetentionHandlers } from './retention.ts';
import { createWebhookHandlers } from './webhook-handlers.ts';
import { createWebhookRows } from './webhooks.ts';

/** The commands whose handlers the engines share. */
type SharedKind = Exclude<Kind, HotCommands | keyof InstanceCommands | 'RewriteNothing'>;

/** Makes the handlers that the engines share. `callers` are the commands that may change credentials. */
export function createSharedHandlers(engine: EngineParts) {
  const { database } = engine;
  const parts: Parts = {
    ...engine,
    recordAudit: createAuditLog(database),
    webhooks: createWebhookRows(database),
    provenance: createProvenanceRecords(engine),
  };
  const callerHandlers = { ...createCallerHandlers(parts), ...createAccessHandlers(parts) };
  const all: Handlers<SharedKind> = {
    ...createListHandler(parts),
    ...createEvidenceHandlers(parts),
    ...createLogHandlers(parts),
    ...createOrderHandlers(parts),
    ...callerHandlers,
    ...createEventHandlers(parts),
    ...createDeliveryHandlers(parts),
    ...createWebhookHandlers(parts),
    ...createAuditHandlers(database),
    ...createMetricHandlers(parts),
    ...createRestorationHandlers(parts),
    ...createRetentionHandlers(parts),
    ...createRegistrationHandlers(parts),
    Reject: reads(({ apiError }) => {
      throw errorOf(apiError);
    }),
  };
  return { all, callers: new Set(Object.keys(callerHandlers)) };
}
