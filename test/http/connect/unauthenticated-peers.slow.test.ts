import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { fileScope } from '../../support/file-scope.ts';
import { allReceived, openSocket } from '../../support/raw-talk.ts';
import { typedClients } from '../../support/typed-clients.ts';
import { startWeighedService } from '../../support/weighed-service.ts';
import {
  bodyPiece,
  closedWindow,
  frame,
  frameTypes,
  openWindow,
  ping,
  pong,
  requestHeaders,
} from './raw-http2.ts';
import { connectOverHttp1 } from './transports.ts';

/** Memory that clients without a token may keep alive, in bytes. */
const heldBytesMax = 64 * 1_048_576;
/** Largest growth of the process, in bytes: includes garbage, and memory that is free again. */
const grownBytesMax = 3 * heldBytesMax;
const peers = 200;

const { internalUrl: baseUrl, token, weigh } = await startWeighedService(fileScope);

/** Asserts that the server answers an honest client on new connections of both HTTP versions. */
async function assertAnswersTheHonest(calls = 1): Promise<void> {
  for (const transport of [connectOverHttp1(baseUrl, token), createTypedTransport(baseUrl, token)]) {
    const { filings } = typedClients(transport);
    const answers = await Promise.all(Array.from({ length: calls }, () => filings.listFilings({})));
    for (const { filings: filed } of answers) assert.deepEqual(filed, []);
  }
}

const path = '/artseal.v1.FilingService/ListFilings';

/** The headers of a call without a valid token. */
function headersOf(bytes: number, more: Record<string, string> = {}): Record<string, string> {
  const pieces = Array.from({ length: 8 }, (_, piece) => [`x-${piece}`, 'x'.repeat(bytes / 8)]);
  return {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': 'x',
    'content-type': 'application/json',
    ...more,
    ...Object.fromEntries(pieces),
  };
}

/** 100 streams; `stream` makes the first frames of each. */
const onEveryStream = (stream: (id: number) => Buffer): Buffer =>
  Buffer.concat([closedWindow, ...Array.from({ length: 100 }, (_, place) => stream(2 * place + 1)), ping]);

const wrongToken = { authorization: `Bearer it_${'0'.repeat(64)}` };

/** The bytes that each connection of an attack sends. */
const attacks: Record<string, Buffer> = {
  'headers of 48 KB and no token': onEveryStream((id) => requestHeaders(id, headersOf(48_000))),
  'headers of 12 KB and a wrong token': onEveryStream((id) =>
    requestHeaders(id, headersOf(12_000, wrongToken)),
  ),
  'small headers': onEveryStream((id) => requestHeaders(id, headersOf(0))),
  'Watch of health': onEveryStream((id) =>
    requestHeaders(
      id,
      headersOf(0, { ':path': '/grpc.health.v1.Health/Watch', 'content-type': 'application/grpc' }),
      { isLast: false },
    ),
  ),
  'small headers and a body of 48 KB': onEveryStream((id) =>
    Buffer.concat([
      requestHeaders(id, headersOf(0, wrongToken), { isLast: false }),
      bodyPiece(id, 16_000),
      bodyPiece(id, 16_000),
      bodyPiece(id, 16_000),
    ]),
  ),
};

/** Sends bytes over a new connection; resolves once the server has read them or closed the connection. */
async function attack(bytes: Buffer): Promise<Socket> {
  const socket = await openSocket(baseUrl);
  const { promise: isRead, resolve } = Promise.withResolvers<void>();
  let tail: Buffer = Buffer.alloc(0);
  socket
    .on('close', () => resolve())
    .on('end', () => socket.destroy())
    .on('data', (chunk: Buffer) => {
      const received = Buffer.concat([tail, chunk]);
      if (received.includes(pong)) resolve();
      tail = received.subarray(1 - pong.length);
    });
  socket.write(bytes);
  await isRead;
  return socket;
}

/** Attacks over all connections at the same time. */
const attackWith = (bytes: Buffer): Promise<Socket[]> =>
  Promise.all(Array.from({ length: peers }, () => attack(bytes)));

// The heap reaches its working size here, not under attack.
for (let round = 0; round < 4; round += 1) await assertAnswersTheHonest(300);
const before = await weigh();

for (const [name, bytes] of Object.entries(attacks)) {
  test(`${peers} peers without a token keep at most 64 MB alive: HTTP/2, ${name}`, async () => {
    const sockets = await attackWith(bytes);
    try {
      const { held, peak } = await weigh();
      assert.ok(held - before.held <= heldBytesMax, `${held - before.held} bytes more are alive`);
      assert.ok(peak - before.peak <= grownBytesMax, `the process grew by ${peak - before.peak} bytes`);
      await assertAnswersTheHonest();
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
}

/** A protocol error right after the preface: PING has no stream (RFC 9113 section 6.7). */
const broken = Buffer.concat([openWindow, frame(frameTypes.ping, 0, 1, Buffer.alloc(8))]);

test('connections that break the protocol leave nothing in memory', async () => {
  const { held: heldBefore } = await weigh();
  for (let round = 0; round < 750; round += 1) {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const socket = await openSocket(baseUrl);
        socket.write(broken);
        await allReceived(socket);
        socket.destroy();
      }),
    );
  }
  const { held } = await weigh();
  assert.ok(held - heldBefore <= 5_000_000, `${held - heldBefore} bytes more are alive`);
});
