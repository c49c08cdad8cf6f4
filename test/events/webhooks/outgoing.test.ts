import assert from 'node:assert/strict';
import { createServer as createTcpServer } from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { makeAuthority, makeSelfSigned } from '../../support/certificates.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { freeAddress } from '../../support/free-address.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  authority,
  certificate,
  openOutgoing,
  outcome,
  outcomeAt,
  post,
  type Receiver,
  sharedOutgoing,
  startReceiver,
  startServer,
  startTalker,
} from './receiver.ts';

const timeoutMs = 60_000;

test('a request arrives unchanged, and its response is returned', async (t) => {
  const received: object[] = [];
  const { port } = await startReceiver(t, async (request, response) => {
    const body = (await request.toArray()).join('');
    const { method, url, headers } = request;
    received.push({ method, url, headers, body });
    response.writeHead(202, { 'retry-after': '7' }).end('taken');
  });
  const answer = await post(sharedOutgoing, `https://localhost:${port}/hook?a=1&b=%20`, {
    headers: { 'content-type': 'application/json', 'webhook-id': 'evt_1' },
    body: '{"name":"叶"}',
  });
  assert.deepEqual(answer, {
    ...{ kind: 'ANSWERED', status: 202, body: Buffer.from('taken'), retryAfter: '7' },
  });
  assert.deepEqual(received, [
    {
      ...{ method: 'POST', url: '/hook?a=1&b=%20', body: '{"name":"叶"}' },
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'evt_1',
        'accept-encoding': 'identity',
        host: `localhost:${port}`,
        'content-length': '14',
        connection: 'keep-alive',
      },
    },
  ]);
});

test('redirects are not followed', async (t) => {
  const elsewhere = await startReceiver(t);
  for (const status of [301, 302, 303, 307, 308]) {
    const { port } = await startReceiver(t, (_request, response) => {
      response.writeHead(status, { location: `https://localhost:${elsewhere.port}/` }).end();
    });
    assert.equal(await outcomeAt(port), status);
  }
  assert.equal(elsewhere.connections(), 0);
});

const early = 'it ended the connection before its response was complete';
const tooLong = 'its response is too long';
const longHead = 'its response headers are too long';
const responses: readonly (readonly [what: string, text: string, expected: number | string])[] = [
  ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nfine', 200],
  ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n', 204],
  [
    'after others',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
    200,
  ],
  [
    'that switches protocols',
    'HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    'it sent no response',
  ],
  ['that is no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'its response is not HTTP'],
  ['that is empty', '', early],
  ['that ends in its head', 'HTTP/1.1 200 OK\r\nserver: x', early],
  ['that ends in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', early],
  [
    'that ends after the kept bytes',
    `HTTP/1.1 410 Gone\r\ncontent-length: 999\r\n\r\n${'x'.repeat(600)}`,
    410,
  ],
  ['with a head that is too long', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, longHead],
];
for (const [what, text, expected] of responses) {
  test(`the result of a response ${what}`, async (t) => {
    const { port } = await startTalker(t, (socket) => socket.end(text));
    assert.equal(await outcomeAt(port), expected);
  });
}

/** Writes the first part once, and the last one without end. */
function writeEndlessly(to: Writable, ...parts: readonly string[]): void {
  function* endless() {
    yield parts[0] as string;
    for (;;) yield parts.at(-1) as string;
  }
  Readable.from(endless())
    .on('error', () => {})
    .pipe(to);
}

test('the first 512 bytes of a response are kept, and a short rest keeps the connection', async (t) => {
  const { port, connections } = await startReceiver(t, (_request, response) => {
    response.write('a'.repeat(500));
    response.end('b'.repeat(20_000));
  });
  const outgoing = openOutgoing(t);
  for (let times = 0; times < 3; times += 1) {
    const answer = await post(outgoing, `https://localhost:${port}/`);
    assert.ok(answer.kind === 'ANSWERED');
    assert.equal(String(answer.body), 'a'.repeat(500) + 'b'.repeat(12));
  }
  assert.equal(connections(), 1);
});

for (const [where, parts, expected] of [
  ['its body', ['HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(1_000)], 200],
  ['its head', ['HTTP/1.1 200 OK\r\n', 'x: y\r\n'], longHead],
  ['informational responses', ['HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)], tooLong],
  ['empty lines', ['\r\n'.repeat(100)], tooLong],
] as const) {
  test(`an endless response is cut off in ${where}`, async (t) => {
    const { port, sockets } = await startTalker(t, (socket) => writeEndlessly(socket, ...parts));
    assert.equal(await outcomeAt(port), expected);
    await eventually('the connection is ended', timeoutMs, () => sockets.size === 0);
  });
}

describe('a request times out after 15 seconds without', () => {
  const silences: Readonly<Record<string, (t: TestContext, silent: () => void) => Promise<Receiver>>> = {
    TLS: (t, silent) => startServer(t, createTcpServer(silent)),
    'a head': startTalker,
    'another head than informational ones': (t, silent) =>
      startTalker(t, (socket) => {
        writeEndlessly(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n');
        silent();
      }),
    'a body': (t, silent) =>
      startReceiver(t, (_request, response) => {
        response.write('x'.repeat(511), silent);
      }),
  };
  for (const [what, start] of Object.entries(silences)) {
    test(what, async (t) => {
      const clock = createManualClock();
      const { promise: isSilent, resolve: silent } = Promise.withResolvers<void>();
      const { port, sockets } = await start(t, silent);
      const answer = outcomeAt(port, openOutgoing(t, { clock }));
      await isSilent;
      assert.equal(clock.nextDueMs(), 15_000);
      clock.advance(15_000);
      assert.equal(await answer, 'it sent no complete response within 15 seconds');
      await eventually('the connection is ended', timeoutMs, () => sockets.size === 0);
    });
  }
});

test('the signal and close abort a request', async (t) => {
  const arrived: (() => void)[] = [];
  const { port, sockets } = await startReceiver(t, () => arrived.shift()?.());
  const outgoing = openOutgoing(t);
  const given = new AbortController();
  const aborts: readonly [() => void, string][] = [
    [() => given.abort(new Error('no more')), 'the request failed: no more'],
    [() => outgoing.close(), 'the server is stopping'],
  ];
  for (const [abort, expected] of aborts) {
    const { promise, resolve } = Promise.withResolvers<void>();
    arrived.push(resolve);
    const signal = expected === 'the server is stopping' ? new AbortController().signal : given.signal;
    const answer = outcome(post(outgoing, `https://localhost:${port}/`, { signal }));
    await promise;
    abort();
    assert.equal(await answer, expected);
  }
  await eventually('all connections are ended', timeoutMs, () => sockets.size === 0);
  assert.equal(await outcomeAt(port, outgoing), 'the server is stopping');
});

test('an aborted request does not start', async (t) => {
  const lookedUp: string[] = [];
  const lookUp = (name: string) => {
    lookedUp.push(name);
    return new Promise<never>(() => {});
  };
  const { port, connections } = await startReceiver(t);
  const outgoing = openOutgoing(t, { lookUp });
  const signal = AbortSignal.abort(new Error('no more'));
  for (const host of ['127.0.0.1', 'hooks.example'])
    assert.equal(
      await outcome(post(outgoing, `https://${host}:${port}/`, { signal })),
      'the request failed: no more',
    );
  assert.deepEqual([lookedUp, connections()], [[], 0]);
  assert.equal(await outcome(post(outgoing, `https://127.0.0.1:${port}/`)), 204);
});

test('close ends kept connections', async (t) => {
  const { port, connections, sockets } = await startReceiver(t);
  const url = `https://localhost:${port}/`;
  const outgoing = openOutgoing(t);
  assert.equal(await outcome(post(outgoing, url)), 204);
  const [kept] = sockets;
  outgoing.close();
  // By the time that a later connection has been made and used, the end of an earlier one has arrived.
  assert.equal(await outcome(post(sharedOutgoing, url)), 204);
  assert.ok(kept?.destroyed);
  assert.equal(connections(), 2);
});

describe('a certificate is rejected', () => {
  type Made = Pick<typeof certificate, 'certificate' | 'key'>;
  const rejected: readonly (readonly [what: string, make: (t: TestContext) => Made, expected: RegExp])[] = [
    ['that nobody signed', (t) => makeSelfSigned(temporaryFolder(t)), /: self-signed certificate$/],
    [
      'of an unknown authority',
      (t) => makeAuthority(t).issue('x'),
      /: unable to verify the first certificate$/,
    ],
    ['that has expired', () => authority.issue('expired', -1), /: certificate has expired$/],
    [
      'of another name',
      () => authority.issue('other', 2, ['other.example']),
      /: Hostname.IP .* DNS:other.example$/,
    ],
  ];
  for (const [what, make, expected] of rejected) {
    test(what, async (t) => {
      const requests: unknown[] = [];
      const { port } = await startReceiver(t, (request) => requests.push(request), make(t));
      const rejection = String(await outcomeAt(port));
      assert.match(rejection, /^its certificate is not valid: /);
      assert.match(rejection, expected);
      assert.equal(requests.length, 0);
    });
  }

  test('even if the environment turns checks off', async (t) => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.after(() => {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    });
    const { port } = await startReceiver(t, undefined, makeSelfSigned(temporaryFolder(t)));
    assert.match(String(await outcomeAt(port)), /self-signed certificate/);
  });
});

test('a receiver has to listen, and speak TLS of a safe version', async (t) => {
  assert.equal(
    await outcome(post(sharedOutgoing, `https://${await freeAddress()}/`)),
    'it refuses connections',
  );
  const { certificate: cert, key } = certificate;
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  for (const server of [
    createTcpServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    createTlsServer({ cert, key, ...old }),
  ]) {
    const { port } = await startServer(t, server);
    assert.equal(await outcomeAt(port), 'it does not speak TLS 1.2 or 1.3');
  }
});

describe('a kept connection', () => {
  test('that the endpoint closed is replaced once', async (t) => {
    const seen = new WeakSet<object>();
    const { port, connections } = await startReceiver(t, (request, response) => {
      if (seen.has(request.socket)) return request.socket.destroy();
      seen.add(request.socket);
      return response.end();
    });
    const outgoing = openOutgoing(t);
    for (let times = 0; times < 3; times += 1) assert.equal(await outcomeAt(port, outgoing), 200);
    assert.equal(connections(), 3);
  });

  test('survives unsolicited bytes', async (t) => {
    const answered = 'HTTP/1.1 204 No Content\r\n\r\n';
    const { port } = await startTalker(t, (socket) => {
      socket.write(answered, () => socket.write('junk\r\n'.repeat(100_000)));
      socket.on('data', () => socket.write(answered));
    });
    const outgoing = openOutgoing(t);
    for (let times = 0; times < 5; times += 1)
      assert.match(String(await outcomeAt(port, outgoing)), /^204$|is not HTTP$/);
  });
});
