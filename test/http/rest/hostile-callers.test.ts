import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { ApiError } from '../../../src/domain/reason.ts';
import { ClientGone, readBody } from '../../../src/http/rest/http-message.ts';
import type { SignedCalls } from '../../../src/http/rest/routes.ts';
import { frontOf, makeAuthority, trust } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { holdsNone } from '../../support/local-server.ts';
import { rawAnswer, rawExchange } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { assertRejected } from '../../support/rejected.ts';
import { type BareListener, openBareListener } from './bare-listener.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
const getOpenApi = 'GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n';
const connectMethod = 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n';
const anyCall = 'GET /any HTTP/1.1\r\nHost: x\r\n\r\n';

const done: SignedCalls = async () => ({ status: 200, headers: {}, body: '{}' });
const never: SignedCalls = () => Promise.withResolvers<never>().promise;

const internalError: Record<string, SignedCalls> = {
  'a call that throws': () => Promise.reject(new TypeError('SELECT secret FROM vault')),
  'a response that cannot be sent': async () => ({ status: 200, headers: { 'X-A': 'secret\n' }, body: '' }),
};

const rejected: SignedCalls = async () => {
  throw new ApiError('AUTH_HEADER_MISSING', 'The header X-API-Key is required.');
};
const readThrough: SignedCalls = async (request) => ({
  status: 200,
  headers: {},
  body: String(await readBody(request)),
});
const tenBytesToCome = 'POST /any HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n';
const lines = ({ logLines }: BareListener) => logLines.map((line) => JSON.parse(line));

/** Sends bytes and reads all that comes until the listener ends the connection. */
async function untilEnd(listener: BareListener, bytes: string): Promise<string> {
  const socket = await openSocket(listener.baseUrl);
  socket.write(bytes);
  let received = '';
  for await (const chunk of socket) received += chunk;
  return received;
}

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const certificate = authority.issue('listener');

for (const over of ['plain HTTP', 'TLS']) {
  const openListener = (
    t: TestContext,
    signedCalls: SignedCalls,
    options: Parameters<typeof openBareListener>[2] = {},
  ) => openBareListener(t, signedCalls, over === 'TLS' ? { ...options, tls: frontOf(certificate) } : options);

  describe(`over ${over}`, () => {
    for (const [what, last] of Object.entries({ nothing: '', CONNECT: connectMethod })) {
      test(`a connection whose responses are not read is closed, with ${what} after its requests`, async (t) => {
        // More than the buffers between client and server hold.
        const listener = await openListener(t, done, { openApi: Buffer.alloc(20_000_000), stalledMs: 100 });
        const socket = await openSocket(listener.baseUrl);
        t.after(() => socket.destroy());
        socket.pause().write(getOpenApi.repeat(3) + last);
        await once(listener.server, 'request');
        await holdsNone(listener.server, timeoutMs);
      });
    }

    test('a connection that sends requests without end before a response is closed', async (t) => {
      let calls = 0;
      const listener = await openListener(t, (...call) => {
        calls += 1;
        return never(...call);
      });
      const socket = await openSocket(listener.baseUrl);
      socket.resume().write(anyCall.repeat(400));
      await holdsNone(listener.server, timeoutMs);
      assert.ok(calls === 1, `${calls} calls under way for one connection`);
      assert.ok(listener.logLines.length < 50, 'each discarded request left a line');
      assert.equal(listener.logLines.filter((line) => JSON.parse(line).status === 0).length, 1);
    });

    test('a call whose connection the server closes is logged as UNAVAILABLE, and not as CANCELLED', async (t) => {
      const listener = await openListener(t, async ({ socket }) => {
        if (!socket.destroyed) await once(socket, 'close');
        throw new ClientGone();
      });
      const socket = await openSocket(listener.baseUrl);
      socket.resume().write(anyCall.repeat(400));
      const logged = await eventually('the call is logged', timeoutMs, () => {
        const [call, ...others] = lines(listener);
        return others.length > 0 && [call, ...others];
      });
      assert.deepEqual(
        logged.map(({ reason }) => reason),
        ['UNAVAILABLE', 'UNAVAILABLE'],
      );
    });

    test('the connections of a listener have a limit', async (t) => {
      const { maxConnections } = (await openListener(t, done)).server;
      assert.ok(maxConnections >= 2_000 && maxConnections <= 10_000, `${maxConnections} connections`);
    });

    for (const [what, signedCalls] of Object.entries(internalError)) {
      test(`${what} returns INTERNAL, and its cause is in the log`, async (t) => {
        const listener = await openListener(t, signedCalls);
        const answer = await rawAnswer(listener.baseUrl, anyCall);
        assertRejected(answer, 500, 'INTERNAL');
        assert.doesNotMatch(answer.text, /secret/);
        const { requestId, status, err } = JSON.parse(listener.logLines[0] ?? '{}');
        assert.deepEqual([requestId, status], [answer.json.requestId, 500]);
        assert.match(err.stack, /secret|X-A/);
      });
    }

    test('a client that disconnects is not an error of the service', async (t) => {
      const listener = await openListener(t, () => Promise.reject(new ClientGone()));
      assert.deepEqual(await rawExchange(listener.baseUrl, anyCall), { answers: [], closed: true });
      const { level, reason } = JSON.parse(listener.logLines[0] ?? '{}');
      assert.deepEqual([level, reason], [30, 'CANCELLED']);
    });

    for (const [what, sent] of Object.entries({ nothing: '', half: '12345' })) {
      test(`a rejected request with ${what} of its body gets one response, and its connection is closed`, async (t) => {
        const listener = await openListener(t, rejected, { requestMs: 200 });
        const received = await untilEnd(listener, tenBytesToCome + sent);
        assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401']);
        assert.match(received, /\r\nConnection: close\r\n/);
        assert.deepEqual(
          lines(listener).map(({ status, reason }) => [status, reason]),
          [[401, 'AUTH_HEADER_MISSING']],
        );
      });
    }

    test('a rejected request whose small body arrives later leaves its connection open', async (t) => {
      const listener = await openListener(t, rejected);
      const socket = await openSocket(listener.baseUrl);
      t.after(() => socket.destroy());
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk;
      });
      for (const count of [1, 2]) {
        socket.write(tenBytesToCome);
        await once(listener.server, 'request');
        socket.write('1234567890');
        const answers = () => received.match(/HTTP\/1\.1 401/g) ?? [];
        await eventually('a response arrives', timeoutMs, async () => answers().length === count);
      }
      assert.doesNotMatch(received, /Connection: close/);
    });

    test('a request that is incomplete for too long is rejected once, which is not an error of the service', async (t) => {
      const listener = await openListener(t, readThrough, { requestMs: 200 });
      const received = await untilEnd(listener, `${tenBytesToCome}12345`);
      assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 504']);
      assert.match(received, /\r\nConnection: close\r\n/);
      assert.deepEqual(
        lines(listener).map(({ level, reason }) => [level, reason]),
        [[30, 'TIMEOUT']],
      );
    });
  });
}

test('a rejected request whose body never arrives gets its response long before the request times out', async (t) => {
  const listener = await openBareListener(t, rejected, { requestMs: 600_000 });
  const { status, headers } = await rawAnswer(listener.baseUrl, tenBytesToCome);
  assert.deepEqual([status, headers.connection], [401, 'close']);
});
