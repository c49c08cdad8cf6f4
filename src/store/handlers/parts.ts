import type { EngineParts } from '../engine/parts.ts';
import type { RecordAudit } from './audit-log.ts';
import type { ProvenanceRecords } from './provenance.ts';
import type { WebhookRows } from './webhooks.ts';

/** What the handlers of a database share. */
export interface Parts extends EngineParts {
  readonly recordAudit: RecordAudit;
  readonly webhooks: WebhookRows;
  readonly provenance: ProvenanceRecords;
}
