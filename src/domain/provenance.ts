/** What can happen to a filed artwork. */
export type ProvenanceEvent = 'SUBMITTED' | 'TRANSFER';

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
