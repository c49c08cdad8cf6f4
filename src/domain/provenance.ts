import { hash } from 'node:crypto';

/** What can happen to a filed artwork. */
export type ProvenanceEvent = 'SUBMITTED' | 'TRANSFER';

/** TRANSFER records of a filing, at most. One response returns all of them. */
export const transfersMax = 10_000;

/** One event in the circulation of an artwork. */
export interface ProvenanceRecord {
  readonly event: ProvenanceEvent;
  /** YYYY-MM-DD in the business time zone. */
  readonly at: string;
}

/** The source record of a filing and what followed, in order of happening. */
export interface Provenance {
  readonly filingNo: string;
  readonly author: string;
  readonly records: readonly ProvenanceRecord[];
}

/** A record of a filing after its source record. Sequences start at 2. */
export interface LaterRecord extends ProvenanceRecord {
  readonly filingNo: string;
  readonly sequence: number;
  readonly event: Exclude<ProvenanceEvent, 'SUBMITTED'>;
}

/** Such a record as RFC 8785 canonical JSON. */
export function canonicalRecord({ filingNo, sequence, event, at }: LaterRecord): string {
  return JSON.stringify({ at, event, filingNo, sequence });
}

/** The evidence hash of such a record: SHA-256 over `canonicalRecord`, in lower-case hex. */
export function recordHash(record: LaterRecord): string {
  return hash('sha256', canonicalRecord(record), 'hex');
}
