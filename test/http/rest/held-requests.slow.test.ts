import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { headersOf, send } from '../../support/signed-request.ts';
import { startWeighedService } from '../../support/weighed-service.ts';

/** The memory that clients without a key may use in a service, in bytes. */
const heldBytesMax = 64 * 1_048_576;
/** The memory that may remain in use after such clients have left, in bytes. */
const leftBytesMax = 5_000_000;
/** The resident memory of a service that gets more headers than it accepts, in bytes. */
const floodedBytesMax = 400 * 1_048_576;

const service = await startWeighedService(fileScope);
const { publicUrl, platforms, weigh } = service;
const target = '/api/v1/filing';
const nobody = { apiKey: 'nobody', apiSecret: 'nothing' };
const manyHeaders = emptyHeaders(90);

function emptyHeaders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, place) => [`a${place}`, '']));
}

/** A request with an unknown key that announces a body of this length, and sends this much of it. */
function request(announced: number, sent: number, more: Record<string, string> = {}): Uint8Array {
  const signed = headersOf(nobody, { target, body: '' });
  const headers = { Host: 'x', ...signed, 'Content-Length': String(announced), ...more };
  return rawRequest('POST', target, headers, 'x'.repeat(sent));
}

async function assertServes(): Promise<void> {
  for (const platform of platforms) {
    const answer = await send(publicUrl, platform, { target, body: JSON.stringify(artwork) });
    assert.equal(answer.status, 200, answer.text);
  }
}

for (let count = 0; count < 300; count += 1) await assertServes();
const before = await weigh();

/** The request of each client, signed when it is sent, and the number of clients. */
const attacks: Record<string, readonly [bytes: () => Uint8Array, peers: number]> = {
  'the last bytes of their bodies': [() => request(65_536, 60_000), 2_000],
  'the one byte of their bodies, after many headers': [() => request(1, 0, manyHeaders), 3_000],
  'the reading of their responses': [
    () =>
      Buffer.concat(
        Array.from({ length: 16 }, () => rawRequest('GET', '/openapi.yaml', { Host: 'x', ...manyHeaders })),
      ),
    300,
  ],
  'their next requests, after a response': [
    () => rawRequest('GET', '/nowhere', { Host: 'x', ...manyHeaders }),
    3_000,
  ],
};

/** Opens a connection that reads nothing. Resolves when the bytes are written or the connection is closed. */
async function attack(bytes: Uint8Array): Promise<Socket> {
  const socket = await openSocket(publicUrl);
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.pause().write(bytes, () => resolve());
  await promise;
  return socket;
}

/** Closes the connections, and waits until the service has released them, since it accepts a limited number. */
async function leave(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy();
  const isLight = async () => (await weigh()).held - before.held <= leftBytesMax;
  await eventually('the memory of the clients is released', 60_000, isLight);
}

// The first test, because the peak of the resident memory is that of the whole life of the process.
test('clients that send far more headers than the limit cost little memory', async () => {
  const flood = rawRequest('GET', '/nowhere', { Host: 'x', ...emptyHeaders(990) });
  const bytes = Buffer.concat(Array.from({ length: 12 }, () => flood));
  const sockets = await Promise.all(Array.from({ length: 2_000 }, () => attack(bytes)));
  await assertServes();
  const { peak } = await weigh();
  assert.ok(peak <= floodedBytesMax, `${peak} bytes were resident`);
  await leave(sockets);
});

for (const [name, [toSend, peers]] of Object.entries(attacks)) {
  test(`clients that hold back ${name} use at most 64 MB, and other clients are served`, async () => {
    const bytes = toSend();
    const sockets = await Promise.all(Array.from({ length: peers }, () => attack(bytes)));
    for (let count = 0; count < 10; count += 1) await assertServes();
    const { held } = await weigh();
    assert.ok(held - before.held <= heldBytesMax, `${held - before.held} bytes more are alive`);
    // The one that has only begun is not the one that goes.
    const whole = await rawAnswer(publicUrl, request(65_536, 65_536));
    assertRejected(whole, 401, 'SIGNATURE_INVALID');
    await leave(sockets);
  });
}

test('requests that are rejected before their bodies arrive leave no memory in use', async () => {
  const refuse = async () => {
    const answer = await rawAnswer(
      publicUrl,
      rawRequest('POST', target, { Host: 'x', 'Content-Length': '1' }),
      {
        end: true,
      },
    );
    assertRejected(answer, 401, 'AUTH_HEADER_MISSING');
  };
  await refuse();
  const before = await weigh();
  for (let round = 0; round < 100; round += 1) await Promise.all(Array.from({ length: 50 }, refuse));
  const { held } = await weigh();
  assert.ok(held - before.held <= leftBytesMax, `${held - before.held} bytes more are alive`);
});
