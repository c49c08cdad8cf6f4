import { randomUUID } from 'node:crypto';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema, CreateFilingResponseSchema } from '../gen/artseal/v1/filing_pb.ts';
import { signedHeaders } from '../src/client/sign.ts';
import { exampleArtwork } from '../src/domain/example.ts';
import { respondToParent } from './children.ts';
import { type Answer, type Connection, open } from './connections.ts';
import type { Credentials } from './credentials.ts';
import type { Filed, Order, Outcome, Preparation, Sending, Sent, Workload } from './generator.ts';
import { percentile } from './measurements.ts';

interface Tally {
  answered: number;
  refused: number;
  firstRefusal: string;
  sample: Buffer | undefined;
  /** Of each request, in the order of the answers. */
  readonly latenciesMs: Float64Array;
  /** Called when all requests are answered. */
  done(): void;
}

/** The requests to send, by the token of the credentials that they bear. */
const prepared = new Map<string, readonly Buffer[]>();
let workload: Workload = 'filing';

type Making = (index: number, credentials: Credentials, filed: Filed) => Buffer;

const makings: Record<Workload, Making> = {
  filing: (index, { keys }) => {
    const body = JSON.stringify({ ...artworkOf(index), price: priceOf(index) });
    return signedRequest(keys, index, 'POST', '/api/v1/filing', body);
  },
  keyed: (index, { keys }) => {
    const body = JSON.stringify({ ...artworkOf(index), price: priceOf(index) });
    const more = { 'Idempotency-Key': randomUUID() };
    return signedRequest(keys, index, 'POST', '/api/v1/filing', body, more);
  },
  provenance: (index, { keys }, { year, last }) => {
    // A stride that is prime visits all filings, not in their order.
    const number = 1 + ((index * 7_919) % last);
    const target = `/api/v1/provenance/AS-${year}-${String(number).padStart(6, '0')}`;
    return signedRequest(keys, index, 'GET', target, '');
  },
  typed: (index, { token }) => {
    const message = create(CreateFilingRequestSchema, {
      ...artworkOf(index),
      price: BigInt(priceOf(index)),
    });
    const headers = {
      'Content-Type': 'application/proto',
      'Connect-Protocol-Version': '1',
      Authorization: `Bearer ${token}`,
    };
    const target = '/artseal.v1.FilingService/CreateFiling';
    return request('POST', target, headers, toBinary(CreateFilingRequestSchema, message));
  },
};

function artworkOf(index: number) {
  return {
    ...exampleArtwork,
    author: `齐白石 (Qi Baishi) ${index}`,
    condition: 'two restored creases, seal of the artist lower left, mounted as a hanging scroll',
  };
}

const priceOf = (index: number): number => 128_000_000 + index;

function signedRequest(
  keys: Credentials['keys'],
  index: number,
  method: string,
  target: string,
  body: string,
  more: Record<string, string> = {},
): Buffer {
  const key = keys[index % keys.length];
  if (key === undefined) throw new Error('There are no keys.');
  const headers = {
    ...(body === '' ? {} : { 'Content-Type': 'application/json' }),
    ...signedHeaders(key, { method, target, body }),
    ...more,
  };
  return request(method, target, headers, Buffer.from(body));
}

function request(method: string, target: string, headers: Record<string, string>, body: Uint8Array): Buffer {
  const length = method === 'POST' ? { 'Content-Length': body.length } : {};
  const head = Object.entries({ Host: '127.0.0.1', ...length, ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n`), body]);
}

/** Sends the requests that a function hands out over a connection, one after the other, until it has no more. */
type Drive = (connection: Connection, tally: Tally) => void;

/** The closed loop: each connection sends the next request once the one before is answered. */
function closedLoop(requests: readonly Buffer[]): Drive {
  let taken = 0;
  return function sendNext(connection, tally) {
    const request = requests[taken];
    if (request === undefined) return;
    taken += 1;
    const sentMs = performance.now();
    connection.send(request, (answer) => {
      count(tally, answer, performance.now() - sentMs);
      sendNext(connection, tally);
    });
  };
}

/**
 * The open loop: requests are due at a fixed rate, and wait for a connection if all are busy. Their time counts from when they
 * are due, so a server that stalls is charged for all requests that it holds up.
 */
function openLoop(requests: readonly Buffer[], perS: number): Drive {
  const startedMs = performance.now();
  const idle: Connection[] = [];
  let taken = 0;

  function sendDue(tally: Tally): void {
    for (; taken < requests.length; taken += 1) {
      const dueMs = startedMs + (taken * 1_000) / perS;
      const request = requests[taken];
      if (request === undefined || dueMs > performance.now()) return;
      const connection = idle.shift();
      if (connection === undefined) return;
      connection.send(request, (answer) => {
        count(tally, answer, performance.now() - dueMs);
        idle.push(connection);
        sendDue(tally);
      });
    }
  }

  return (connection, tally) => {
    // Timers have steps of 1 ms. Answers send what is due between them.
    if (idle.push(connection) > 1) return;
    const timer = setInterval(() => {
      if (taken === requests.length) clearInterval(timer);
      else sendDue(tally);
    }, 1);
  };
}

function count(tally: Tally, { status, bytes, bodyStart }: Answer, ms: number): void {
  tally.latenciesMs[tally.answered] = ms;
  tally.answered += 1;
  if (status !== 200) {
    tally.refused += 1;
    tally.firstRefusal ||= bytes.toString();
  } else tally.sample ??= Buffer.from(bytes.subarray(bodyStart));
  if (tally.answered === tally.latenciesMs.length) tally.done();
}

async function sendAll({ ports, token, connections, perS }: Sending): Promise<Sent> {
  const requests = prepared.get(token) ?? [];
  const { promise, resolve: done, reject } = Promise.withResolvers<void>();
  const portsOf = Array.from({ length: connections }, (_, nth) => ports[nth % ports.length] ?? 0);
  const opened = await Promise.all(portsOf.map((port) => open(port, reject)));
  const latenciesMs = new Float64Array(requests.length);
  const tally: Tally = { answered: 0, refused: 0, firstRefusal: '', sample: undefined, latenciesMs, done };
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  try {
    const drive = perS === undefined ? closedLoop(requests) : openLoop(requests, perS);
    for (const connection of opened) drive(connection, tally);
    await promise;
  } finally {
    for (const { socket } of opened) socket.destroy();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    requests: tally.answered,
    seconds,
    p50Ms: percentile(latenciesMs, 0.5),
    p99Ms: percentile(latenciesMs, 0.99),
    p999Ms: percentile(latenciesMs, 0.999),
    cpuS: (user + system) / 1e6,
    refused: tally.refused,
    firstRefusal: tally.firstRefusal,
    members: tally.sample === undefined ? '' : membersOf(tally.sample),
  };
}

function membersOf(body: Buffer): string {
  const value =
    workload === 'typed'
      ? toJson(CreateFilingResponseSchema, fromBinary(CreateFilingResponseSchema, body))
      : JSON.parse(body.toString());
  return Object.keys(value).sort().join();
}

function prepare(preparation: Preparation): void {
  workload = preparation.workload;
  prepared.clear();
  for (const credentials of preparation.credentials) {
    const make = (_: unknown, index: number) => makings[workload](index, credentials, preparation.filed);
    prepared.set(credentials.token, Array.from({ length: preparation.requests }, make));
  }
}

async function carryOut(order: Order): Promise<Outcome> {
  if (order.kind === 'send') return { sent: await sendAll(order) };
  prepare(order);
  return {};
}

respondToParent(carryOut);
