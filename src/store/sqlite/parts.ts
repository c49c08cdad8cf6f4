import type { RecordAudit } from './audit-log.ts';
import type { EventReads } from './events.ts';
import type { EvidenceLog } from './evidence-log.ts';
import type { Incidents } from './failure.ts';
import type { Leaves } from './leaves.ts';
import type { Outbox } from './outbox.ts';
import type { ProvenanceRecords } from './provenance.ts';
import type { RecordCheck } from './record-check.ts';
import type { Database } from './statement.ts';
import type { TrustedClock } from './trusted-clock.ts';
import type { WebhookRows } from './webhooks.ts';

/** What the handlers of a database share. */
export interface Parts {
  readonly database: Database;
  readonly incidents: Incidents;
  readonly leaves: Leaves;
  readonly log: EvidenceLog;
  readonly clock: TrustedClock;
  readonly outbox: Outbox;
  readonly recordAudit: RecordAudit;
  readonly events: EventReads;
  readonly webhooks: WebhookRows;
  readonly check: RecordCheck;
  readonly provenance: ProvenanceRecords;
}
