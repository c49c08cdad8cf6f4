/** What is measured. */
export type Workload = 'filing' | 'provenance';

/** What the parent process asks of the generator: sign requests in advance, then send them, once a server. */
export type Order =
  | { readonly kind: 'sign'; readonly workload: Workload; readonly requests: number; readonly filed: Filed }
  | { readonly kind: 'send'; readonly port: number };

/** The filings that can be asked for: those of a year from 1 to the last. */
export interface Filed {
  readonly year: number;
  readonly last: number;
}

/** How the sending went. */
export interface Sent {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the generator itself, in seconds. */
  readonly cpuS: number;
  /** Answers other than 200, and the first of them. */
  readonly refused: number;
  readonly firstRefusal: string;
  /** The body of one answer. */
  readonly sample: string;
}

/** What the generator says when an order is done. */
export type Outcome = { readonly sent?: Sent } | { readonly error: string };

/** Connections that are kept open, each with one request in flight. */
export const connections = 64;
