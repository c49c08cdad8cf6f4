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

/**
 * What can be measured by itself: a call, orders, the evidence log, webhooks, platforms beside a busy one, calls that are due at
 * fixed rates, calls with few filings and with many, or memory over minutes.
 */
const defaultParts = [
  ...workloads,
  'orders',
  'log',
  'webhooks',
  'neighbours',
  'load',
  'size',
  'memory',
] as const;
/** What is measured on PostgreSQL. */
const postgresParts = ['filing', 'keyed', 'provenance', 'orders', 'snapshot'] as const;
/** What is measured of two instances on PostgreSQL. */
const twoParts = ['filing', 'keyed', 'provenance'] as const;
type Part = (typeof defaultParts | typeof postgresParts)[number];

const connectionsMax = 512;
/** Requests a round over so many connections; a round over another number of them is as long as one over 256. */
const requestsOver: Readonly<Record<number, number>> = { 1: 2_000, 64: 20_000, 256: 10_000 };
const smokeRequests: typeof requestsOver = { 1: 20, 64: 128, 256: 512 };

/** From a rate that all servers can serve to one that none can. */
const load = {
  ratesPerS: [1, 2, 4, 6, 8, 10, 12.5, 15, 17.5, 20, 25, 30, 40].map((thousands) => thousands * 1_000),
  seconds: 4,
};
const smokeLoad: typeof load = { ratesPerS: [100, 200], seconds: 0.5 };

/** The rounds add to the last of these, and a year has 999,999 numbers. */
const size = { sizes: [10_000, 100_000, 900_000], requests: 5_000 };
const smokeSize: typeof size = { sizes: [100, 200], requests: 64 };

const memory = { requests: 20_000, minutes: 10 };
const smokeMemory: typeof memory = { requests: 128, minutes: 0.01 };

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
      json: { type: 'string' },
    },
  });
  const { smoke, only, filings, old, postgres, two, standby, json } = values;
  const rounds = wholeNumber('rounds', values.rounds ?? (smoke ? '1' : '7'), 1);
  const requests = smoke ? smokeRequests : requestsOver;
  const onPostgres: readonly Part[] = two ? twoParts : postgresParts;
  const possible = postgres || two ? onPostgres : defaultParts;
  const parts = only === undefined ? possible : only.split(',').map((word) => onePart(word, possible));
  return {
    workloads: workloads.filter((workload) => parts.includes(workload)),
    rounds,
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
    /** Rates of calls. */
    load: parts.includes('load') ? (smoke ? smokeLoad : load) : undefined,
    /** Numbers of filings. */
    size: parts.includes('size') ? { ...(smoke ? smokeSize : size), rounds } : undefined,
    memory: parts.includes('memory') ? (smoke ? smokeMemory : memory) : undefined,
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
    /** The file for the figures as JSON. */
    json: json === undefined ? undefined : resolve(json),
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
