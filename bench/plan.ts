import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { workloads } from './generator.ts';

/** How much is done. */
export type Plan = ReturnType<typeof readPlan>;

/** So many requests over so many connections. */
export interface PlannedSending {
  readonly connections: number;
  readonly requests: number;
}

/** What can be measured by itself: a call, orders, the evidence log, webhooks, or platforms beside a busy one. */
const defaultParts = [...workloads, 'orders', 'log', 'webhooks', 'neighbours'] as const;
/** What is measured on PostgreSQL. */
const postgresParts = ['filing', 'keyed', 'provenance', 'orders', 'snapshot'] as const;
/** What is measured of two instances on PostgreSQL. */
const twoParts = ['filing', 'keyed', 'provenance'] as const;
type Part = (typeof defaultParts | typeof postgresParts)[number];

const connectionsMax = 512;
/** Requests a round over so many connections; a round over another number of them is as long as one over 256. */
const requestsOver: Readonly<Record<number, number>> = { 1: 2_000, 64: 20_000, 256: 10_000 };
const smokeRequests: typeof requestsOver = { 1: 20, 64: 128, 256: 512 };

/** Reads the command line. Throws for what it does not know. */
export function readPlan(words: readonly string[]) {
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
      two: { type: 'boolean', default: false },
      standby: { type: 'boolean', default: false },
    },
  });
  const { smoke, only, rounds, filings, old, postgres, two, standby } = values;
  const requests = smoke ? smokeRequests : requestsOver;
  const onPostgres: readonly Part[] = two ? twoParts : postgresParts;
  const possible = postgres || two ? onPostgres : defaultParts;
  const parts = only === undefined ? possible : [onePart(only, possible)];
  return {
    workloads: workloads.filter((workload) => parts.includes(workload)),
    rounds: wholeNumber('rounds', rounds ?? (smoke ? '1' : '7'), 1),
    /** What is sent to each server in a round. */
    sendings: values.connections.split(',').map((text): PlannedSending => {
      const connections = wholeNumber('connections', text, 1, connectionsMax);
      return { connections, requests: requests[connections] ?? requests[256] ?? 0 };
    }),
    /** Calls of each workload that each server answers before anything is measured. */
    warmUp: smoke ? 100 : 10_000,
    /** Orders that each service sees through in a round. This and the next ones are undefined if they are not measured. */
    orders: parts.includes('orders') ? (smoke ? 5 : 200) : undefined,
    logLeaves: parts.includes('log') ? (smoke ? 2_000 : 1_000_000) : undefined,
    webhookEvents: parts.includes('webhooks') ? (smoke ? 100 : 10_000) : undefined,
    /** Events of the platform that is busy beside others. */
    neighbourEvents: parts.includes('neighbours') ? (smoke ? 500 : 9_900) : undefined,
    /** Filings in the service when its memory is read, at least. */
    filings: wholeNumber('filings', filings ?? (smoke ? '500' : '200000'), 0),
    /** Whether the service on PostgreSQL is measured, beside the one on SQLite, and no other server. */
    postgres: postgres || two,
    /** Whether two instances are measured beside one. */
    two,
    /** Whether the commits of PostgreSQL wait for a standby. */
    standby,
    /** Whether filings are measured while somebody has an old snapshot of the database. */
    oldSnapshot: parts.includes('snapshot'),
    /** The folder of another checkout, whose service is measured as well. */
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
