import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { CreateFilingRequestSchema, CreateFilingResponseSchema } from '../gen/artseal/v1/filing_pb.ts';
import { signedHeaders } from '../src/client/sign.ts';
import { exampleArtwork } from '../src/domain/example.ts';
import { respondToParent } from './children.ts';
import type { Credentials } from './credentials.ts';
import type { Filed, Order, Outcome, Preparation, Sending, Sent, Workload } from './generator.ts';
import { percentile } from './measurements.ts';

interface Tally {
  taken: number;
  answered: number;
  refused: number;
  firstRefusal: string;
  sample: Buffer | undefined;
  readonly latenciesMs: Float64Array;
}

/** Bytes that are read from a connection at a time; a longer answer is put together. */
const readBytes = 16_384;

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

/** The answer at the beginning of these bytes, or undefined while some of it is still to come. */
function readAnswer(bytes: Buffer): { status: number; bodyStart: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`An answer without Content-Length: ${head}`);
  const bodyStart = headEnd + 4;
  if (bytes.length < bodyStart + Number(length)) return undefined;
  return { status: Number(head.slice(9, 12)), bodyStart };
}

/** A connection whose bytes come in the one buffer that it has, without the machinery of a stream. */
interface Connection {
  readonly socket: Socket;
  receive(chunk: Buffer): void;
}

async function open(port: number): Promise<Connection> {
  const buffer = Buffer.allocUnsafe(readBytes);
  const callback = (length: number) => {
    connection.receive(buffer.subarray(0, length));
    return true;
  };
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer, callback } });
  const connection: Connection = { socket, receive: () => {} };
  await once(socket, 'connect');
  return connection;
}

/** Sends one request after the other over a connection until none is left. */
function drive(connection: Connection, requests: readonly Buffer[], tally: Tally): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { socket } = connection;
  let sentMs = 0;
  let received: Buffer | undefined;

  function sendNext(): void {
    const next = requests[tally.taken];
    if (next === undefined) {
      resolve();
      return;
    }
    tally.taken += 1;
    sentMs = performance.now();
    socket.write(next);
  }

  function receive(chunk: Buffer): void {
    const bytes = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const answer = readAnswer(bytes);
    if (answer === undefined) {
      // The next bytes come in the same buffer.
      received = Buffer.from(bytes);
      return;
    }
    tally.latenciesMs[tally.answered] = performance.now() - sentMs;
    tally.answered += 1;
    if (answer.status !== 200) {
      tally.refused += 1;
      tally.firstRefusal ||= bytes.toString();
    } else tally.sample ??= Buffer.from(bytes.subarray(answer.bodyStart));
    received = undefined;
    sendNext();
  }

  connection.receive = (chunk) => {
    try {
      receive(chunk);
    } catch (error) {
      reject(error);
    }
  };
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('The server closed a connection.')));
  sendNext();
  return promise;
}

async function sendAll({ ports, token, connections }: Sending): Promise<Sent> {
  const requests = prepared.get(token) ?? [];
  const portsOf = Array.from({ length: connections }, (_, nth) => ports[nth % ports.length] ?? 0);
  const opened = await Promise.all(portsOf.map(open));
  const latenciesMs = new Float64Array(requests.length);
  const tally: Tally = {
    taken: 0,
    answered: 0,
    refused: 0,
    firstRefusal: '',
    sample: undefined,
    latenciesMs,
  };
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  try {
    await Promise.all(opened.map((connection) => drive(connection, requests, tally)));
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
