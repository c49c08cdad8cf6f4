import { describe } from 'node:test';
import { admissionPromises } from './promises/admission.ts';
import { auditPromises } from './promises/audit-log.ts';
import { batchPromises } from './promises/batches.ts';
import { callerPromises } from './promises/callers.ts';
import { decisionPromises } from './promises/decisions.ts';
import { deliveryPromises } from './promises/deliveries.ts';
import { durabilityPromises } from './promises/durability.ts';
import { escrowPromises } from './promises/escrows.ts';
import { eventPromises } from './promises/events.ts';
import { evidencePromises } from './promises/evidence.ts';
import { filingPromises } from './promises/filings.ts';
import type { StoreEngine } from './promises/fixtures.ts';
import { idempotencyPromises } from './promises/idempotency.ts';
import { keyAndTokenPromises } from './promises/keys-and-tokens.ts';
import { knownCredentialPromises } from './promises/known-credentials.ts';
import { logPromises } from './promises/log.ts';
import { metricPromises } from './promises/metrics.ts';
import { notificationPromises } from './promises/notifications.ts';
import { operationPromises } from './promises/operations.ts';
import { orderUpdatePromises } from './promises/order-updates.ts';
import { partyPromises } from './promises/parties.ts';
import { registrationPromises } from './promises/registrations.ts';
import { retentionPromises } from './promises/retention.ts';
import { type StoreTests, storeTests } from './promises/tests.ts';
import { webhookPromises } from './promises/webhooks.ts';

/** The promises of every store engine, in parts. */
const parts = {
  filings: filingPromises,
  evidence: evidencePromises,
  log: logPromises,
  retention: retentionPromises,
  escrows: escrowPromises,
  'order updates': orderUpdatePromises,
  operations: operationPromises,
  notifications: notificationPromises,
  decisions: decisionPromises,
  callers: callerPromises,
  'keys and tokens': keyAndTokenPromises,
  parties: partyPromises,
  registrations: registrationPromises,
  'known credentials': knownCredentialPromises,
  'audit log': auditPromises,
  admission: admissionPromises,
  batches: batchPromises,
  idempotency: idempotencyPromises,
  metrics: metricPromises,
  webhooks: webhookPromises,
  deliveries: deliveryPromises,
  events: eventPromises,
  durability: durabilityPromises,
} as const satisfies Record<string, (tests: StoreTests) => void>;

/** A part of the promises. */
export type StorePart = keyof typeof parts;

/** Tests the promises of an engine: all parts, or the chosen ones. */
export function storeSuite(
  name: string,
  engine: StoreEngine,
  chosen: readonly StorePart[] = Object.keys(parts) as StorePart[],
): void {
  const tests = storeTests(engine);
  // Concurrent, because an engine may take long to open. Each test has a store of its own.
  describe(`store on ${name}`, { concurrency: 4 }, () => {
    for (const part of chosen) describe(part, () => parts[part](tests));
  });
}
