import type { Credentials } from './credentials.ts';

/** The measured calls: three of the public API, one of the internal API. */
export const workloads = ['filing', 'keyed', 'provenance', 'typed'] as const;

/** One of the calls that are measured. */
export type Workload = (typeof workloads)[number];

/** The filings that can be asked for: those of a year from 1 to the last. */
export interface Filed {
  readonly year: number;
  readonly last: number;
}

/** Requests to be built, and signed, before they are sent. */
export interface Preparation {
  readonly workload: Workload;
  readonly requests: number;
  readonly filed: Filed;
  /** The requests are made once with each of these. */
  readonly credentials: readonly Credentials[];
}

/** Prepared requests to be sent. */
export interface Sending {
  readonly port: number;
  /** The token of the credentials with which the requests were prepared. */
  readonly token: string;
  /** Connections that are kept open, each with one request in flight. */
  readonly connections: number;
}

/** What the parent process asks of the load generator. */
export type Order = ({ readonly kind: 'prepare' } & Preparation) | ({ readonly kind: 'send' } & Sending);

/** How the sending went. */
export interface Sent {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the generator itself, in seconds. */
  readonly cpuS: number;
  /** Answers other than 200, and the first of them. */
  readonly refused: number;
  readonly firstRefusal: string;
  /** The names of the members of one answer, in the order of the alphabet. */
  readonly members: string;
}

/** What the generator says when an order is done. */
export type Outcome = { readonly sent?: Sent } | { readonly error: string };
