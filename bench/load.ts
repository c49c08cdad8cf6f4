import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { signedHeaders } from '../src/client/sign.ts';
import { readKeys } from './keys.ts';
import { connections, type Filed, type Order, type Outcome, type Sent } from './orders.ts';

interface Tally {
  taken: number;
  answered: number;
  refused: number;
  firstRefusal: string;
  sample: string;
  readonly latenciesMs: Float64Array;
}

const [, , dataDir = '.'] = process.argv;
const keys = readKeys(dataDir);
let requests: Buffer[] = [];

function signedRequest(index: number, method: string, target: string, body: string): Buffer {
  const key = keys[index % keys.length];
  if (key === undefined) throw new Error('There are no keys.');
  const headers = Object.entries({
    Host: '127.0.0.1',
    ...(body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
    ...signedHeaders(key, { method, target, body }),
  });
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${head}\r\n${body}`);
}

function filingRequest(index: number): Buffer {
  const body = JSON.stringify({
    author: `齐白石 (Qi Baishi) ${index}`,
    era: '1947',
    size: '68 x 136 cm',
    material: 'ink and colour on paper',
    condition: 'two restored creases, seal of the artist lower left, mounted as a hanging scroll',
    price: 128_000_000 + index,
  });
  return signedRequest(index, 'POST', '/api/v1/filing', body);
}

function provenanceRequest(index: number, { year, last }: Filed): Buffer {
  // A stride that is prime visits all filings, not in their order.
  const number = 1 + ((index * 7_919) % last);
  return signedRequest(index, 'GET', `/api/v1/provenance/AS-${year}-${String(number).padStart(6, '0')}`, '');
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

/** Sends one request after the other over a connection until none is left. */
function drive(socket: Socket, tally: Tally): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let sentMs = 0;
  let received: Buffer | undefined;

  function sendNext(): void {
    const request = requests[tally.taken];
    if (request === undefined) {
      resolve();
      return;
    }
    tally.taken += 1;
    sentMs = performance.now();
    socket.write(request);
  }

  function receive(chunk: Buffer): void {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const answer = readAnswer(received);
    if (answer === undefined) return;
    tally.latenciesMs[tally.answered] = performance.now() - sentMs;
    tally.answered += 1;
    if (answer.status !== 200) {
      tally.refused += 1;
      tally.firstRefusal ||= received.toString();
    } else if (tally.sample === '') tally.sample = received.toString('utf8', answer.bodyStart);
    received = undefined;
    sendNext();
  }

  socket.on('data', (chunk: Buffer) => {
    try {
      receive(chunk);
    } catch (error) {
      reject(error);
    }
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('The server closed a connection.')));
  sendNext();
  return promise;
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  return socket;
}

async function sendAll(port: number): Promise<Sent> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const latenciesMs = new Float64Array(requests.length);
  const tally: Tally = { taken: 0, answered: 0, refused: 0, firstRefusal: '', sample: '', latenciesMs };
  const cpuBefore = process.cpuUsage();
  const startedMs = performance.now();
  try {
    await Promise.all(sockets.map((socket) => drive(socket, tally)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  latenciesMs.sort();
  const percentile = (share: number) => latenciesMs[Math.floor(share * (latenciesMs.length - 1))] ?? 0;
  return {
    requests: tally.answered,
    seconds,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    cpuS: (user + system) / 1e6,
    refused: tally.refused,
    firstRefusal: tally.firstRefusal,
    sample: tally.sample,
  };
}

async function carryOut(order: Order): Promise<Outcome> {
  if (order.kind === 'send') return { sent: await sendAll(order.port) };
  const request = order.workload === 'filing' ? filingRequest : provenanceRequest;
  requests = Array.from({ length: order.requests }, (_, index) => request(index, order.filed));
  return {};
}

process.on('message', (order: Order) => {
  carryOut(order).then(
    (outcome) => process.send?.(outcome),
    (error) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
  );
});
process.once('disconnect', () => process.exit());
