/** What can happen to a filed artwork. */
export type ProvenanceEvent = 'SUBMITTED' | 'TRANSFER';

/** How many TRANSFER records a filing may have; provenance answers all of them at once. */
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
