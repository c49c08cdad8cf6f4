import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Workload, workloads } from './orders.ts';

/** How much is done. */
export interface Plan {
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  /** What is sent to each server in a round. */
  readonly sendings: readonly PlannedSending[];
  /** Calls of each workload that each server answers before anything is measured. */
  readonly warmUp: number;
  /** Filings in the service when its memory is read, at least. */
  readonly filings: number;
  /** Leaves of the evidence log that is measured; undefined if none is. */
  readonly logLeaves: number | undefined;
  /** Events that are sent to webhooks; undefined if none are. */
  readonly webhookEvents: number | undefined;
  /** Events of the platform that is busy beside others; undefined if that is not measured. */
  readonly neighbourEvents: number | undefined;
  /** Orders that each service sees through in a round; undefined if none are measured. */
  readonly orders: number | undefined;
  /** Whether the service on PostgreSQL is measured, beside the one on SQLite, and no other server. */
  readonly postgres: boolean;
  /** Whether filings are measured while somebody has an old snapshot of the database. */
  readonly oldSnapshot: boolean;
  /** The folder of another checkout, whose service is measured as well. */
  readonly old: string | undefined;
}

/** So many requests over so many connections. */
export interface PlannedSending {
  readonly connections: number;
  readonly requests: number;
}

/** What can be measured by itself: a call, orders, the evidence log, webhooks, or platforms beside a busy one. */
const defaultParts = [...workloads, 'orders', 'log', 'webhooks', 'neighbours'] as const;
/** What is measured on PostgreSQL. */
const postgresParts = ['filing', 'keyed', 'provenance', 'orders', 'snapshot'] as const;
type Part = (typeof defaultParts | typeof postgresParts)[number];

const connectionsMax = 512;
/** Requests a round over so many connections; a round over another number of them is as long as one over 256. */
const requestsOver: Readonly<Record<number, number>> = { 1: 2_000, 64: 20_000, 256: 10_000 };
const smokeRequests: typeof requestsOver = { 1: 20, 64: 128, 256: 512 };

/** Reads the command line. Throws for what it does not know. */
export function readPlan(words: readonly string[]): Plan {
  const { values } = parseArgs({
    args: [...words],
    options: {
      smoke: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      connections: { type: 'string', default: '64,1,256' },
      filings: { type: 'string' },
      old: { type: 'string' },
      postgres: { type: 'boolean', default: false },
    },
  });
  const { smoke, only, rounds, filings, old, postgres } = values;
  const requests = smoke ? smokeRequests : requestsOver;
  const possible: readonly Part[] = postgres ? postgresParts : defaultParts;
  const parts = only === undefined ? possible : [onePart(only, possible)];
  return {
    workloads: workloads.filter((workload) => parts.includes(workload)),
    rounds: wholeNumber('rounds', rounds ?? (smoke ? '1' : '7'), 1),
    sendings: values.connections.split(',').map((text) => {
      const connections = wholeNumber('connections', text, 1, connectionsMax);
      return { connections, requests: requests[connections] ?? requests[256] ?? 0 };
    }),
    warmUp: smoke ? 100 : 10_000,
    orders: parts.includes('orders') ? (smoke ? 5 : 200) : undefined,
    logLeaves: parts.includes('log') ? (smoke ? 2_000 : 1_000_000) : undefined,
    webhookEvents: parts.includes('webhooks') ? (smoke ? 100 : 10_000) : undefined,
    neighbourEvents: parts.includes('neighbours') ? (smoke ? 500 : 9_900) : undefined,
    filings: wholeNumber('filings', filings ?? (smoke ? '500' : '200000'), 0),
    postgres,
    oldSnapshot: parts.includes('snapshot'),
    old: old === undefined ? undefined : resolve(old),
  };
}

function onePart(word: string, possible: readonly Part[]): Part {
  const found = possible.find((part) => part === word);
  if (found === undefined) throw new Error(`--only must be one of ${possible.join(', ')}.`);
  return found;
}

function wholeNumber(option: string, text: string, min: number, max = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < min || number > max) {
    const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
    throw new Error(`--${option} must be a whole number ${range}, not "${text}".`);
  }
  return number;
}
