import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { artwork } from '../support/samples.ts';
import { startService, type TestService } from '../support/service.ts';
import { headersOf, send } from '../support/signed-request.ts';

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) };

/** Opens a connection that may be cut off without harm to the test. */
async function open(baseUrl: string): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

async function assertServes(service: TestService): Promise<void> {
  const answer = await send(service.publicUrl, await service.platform(), filing);
  assert.equal(answer.status, 200, answer.text);
}

const halfRequest = 'POST /api/v1/filing HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{';
const halfCall =
  'POST /artseal.v1.FilingService/ListFilings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{';
const connectMethod = 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n';

for (const [what, bytes] of Object.entries({ halfRequest, halfCall, connectMethod })) {
  test(`a client that resets its connection takes nobody else down: ${what}`, async (t) => {
    const service = await startService(t);
    for (const url of [service.publicUrl, service.internalUrl]) {
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const socket = await open(url);
        socket.write(bytes + bytes, () => socket.resetAndDestroy());
        await once(socket, 'close');
      }
    }
    await assertServes(service);
  });
}

test('requests that never arrive whole do not keep signed calls out', async (t) => {
  const service = await startService(t);
  const nobody = { apiKey: 'nobody', apiSecret: 'nothing' };
  const headers = Object.entries(headersOf(nobody, filing)).map(([name, value]) => `${name}: ${value}\r\n`);
  const half = `POST /api/v1/filing HTTP/1.1\r\nHost: x\r\n${headers.join('')}Content-Length: 10\r\n\r\n{`;
  const sockets: Socket[] = [];
  for (let count = 0; count < 2_100; count += 1) {
    const socket = await open(service.publicUrl);
    socket.write(half);
    sockets.push(socket);
  }
  await assertServes(service);
  for (const socket of sockets) socket.destroy();
});

test('a body in chunks of one byte is read as any other', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const { 'Content-Type': _, ...signed } = headersOf(platform, filing);
  const headers = Object.entries({ ...signed, 'Content-Type': 'application/json' });
  const chunks = Array.from(filing.body, (byte) => `1\r\n${byte}\r\n`).join('');
  const socket = await open(service.publicUrl);
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(
    `POST /api/v1/filing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
  );
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  assert.match(answer, /^HTTP\/1\.1 200 /);
});

test('a number of sixty thousand digits is refused for its size', async (t) => {
  const service = await startService(t);
  const price = `1${'0'.repeat(60_000)}1`;
  const body = JSON.stringify({ ...artwork, price: 0 }).replace('"price":0', `"price":${price}`);
  const answer = await send(service.publicUrl, await service.platform(), { target: filing.target, body });
  assert.equal(answer.json.code, 'VALIDATION_FAILED');
  assert.match(answer.json.message, /^price must be an integer/);
});

test('requests sent far ahead of their answers are refused, and those before them answered', async (t) => {
  const service = await startService(t);
  const socket = await open(service.publicUrl);
  const one = 'GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n';
  socket.write(one.repeat(400) + one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
  let answers = '';
  for await (const chunk of socket) answers += chunk;
  const statuses = answers.match(/HTTP\/1\.1 \d+/g) ?? [];
  assert.equal(statuses.length, 401);
  assert.ok(statuses.filter((status) => status.endsWith('200')).length >= 100);
  assert.ok(statuses.some((status) => status.endsWith('503')));
});
