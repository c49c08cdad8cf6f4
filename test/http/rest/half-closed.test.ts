import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-listeners.ts';
import { readBody } from '../../../src/http/rest/http-message.ts';
import type { SignedCalls } from '../../../src/http/rest/routes.ts';
import { frontOf, makeAuthority, trust } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { holdsNone } from '../../support/local-server.ts';
import { allReceived, openSocket } from '../../support/raw-talk.ts';
import { openBareListener as openBareInternalListener } from '../connect/bare-listener.ts';
import { openBareListener } from './bare-listener.ts';

/** The public listener alone. It responds to /late after its client has closed its half, and to other requests at once. */
function openPublic(t: TestContext, tls?: TlsFront) {
  const signedCalls: SignedCalls = async (request) => {
    await readBody(request);
    if (request.url === '/late' && !request.socket.readableEnded) await once(request.socket, 'end');
    return { status: 200, headers: {}, body: '{}' };
  };
  return openBareListener(t, signedCalls, tls && { tls });
}

/** The internal listener alone, which responds in the same way. */
function openInternal(t: TestContext, tls?: TlsFront) {
  const typedCalls: TypedCalls = (request, response) => {
    request.resume().on('end', async () => {
      if (request.url === '/late' && !request.socket.readableEnded) await once(request.socket, 'end');
      response.end('{}');
    });
  };
  return openBareInternalListener(t, typedCalls, tls && { tls });
}

/** Shorter than each time limit after which a listener closes a connection. */
const timeoutMs = 10_000;

/** Sends bytes, closes this half, and returns the bytes that arrive until the server closes its half. */
async function halfClosed(baseUrl: string, bytes: string): Promise<string> {
  const socket = await openSocket(baseUrl);
  socket.end(bytes);
  return allReceived(socket);
}

const late = 'POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}';
const early = late.replace('/late', '/early');
const headEnd = late.indexOf('\r\n\r\n');

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const certificate = authority.issue('listener');

for (const [name, open] of Object.entries({
  public: openPublic,
  internal: openInternal,
  'public, with TLS,': (t: TestContext) => openPublic(t, frontOf(certificate)),
  'internal, with TLS,': (t: TestContext) => openInternal(t, frontOf(certificate)),
})) {
  test(`a client that closes its half after its request gets the response, however late: ${name} listener`, async (t) => {
    const listener = await open(t);
    assert.match(await halfClosed(listener.baseUrl, late), /^HTTP\/1\.1 200 /);
    await holdsNone(listener.server, timeoutMs);
    const logged = listener.logLines.map((line) => JSON.parse(line));
    assert.deepEqual(
      logged.map(({ status, reason }) => [status, reason]),
      [[200, undefined]],
    );
  });

  test(`a client that closes its half after several requests gets all responses: ${name} listener`, async (t) => {
    const listener = await open(t);
    const received = await halfClosed(listener.baseUrl, early + late + early);
    assert.equal(received.match(/HTTP\/1\.1 200 /g)?.length, 3, received);
    await holdsNone(listener.server, timeoutMs);
  });

  test(`a kept connection is closed as soon as its client closes its half: ${name} listener`, async (t) => {
    const listener = await open(t);
    const socket = await openSocket(listener.baseUrl);
    socket.write(early);
    await once(socket, 'data');
    socket.end();
    await holdsNone(listener.server, timeoutMs);
  });

  for (const [where, length] of Object.entries({
    'before any byte': 0,
    'within its headers': 30,
    'after its headers': headEnd + 4,
    'within its body': late.length - 1,
  })) {
    test(`a connection whose client closes its half ${where} is closed: ${name} listener`, async (t) => {
      const listener = await open(t);
      assert.doesNotMatch(await halfClosed(listener.baseUrl, late.slice(0, length)), /^HTTP\/1\.1 200 /);
      await holdsNone(listener.server, timeoutMs);
    });
  }
}
