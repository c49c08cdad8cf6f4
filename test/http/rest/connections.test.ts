import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { readBody } from '../../../src/http/rest/http-message.ts';
import { frontOf, makeAuthority, trust } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { assertRejected } from '../../support/rejected.ts';
import { openBareListener } from './bare-listener.ts';

/** What a request differs in from `POST /call` with the body. */
interface Framing {
  readonly version?: string;
  /** Further headers; undefined removes one. */
  readonly headers?: Record<string, string | undefined>;
  readonly sent?: string;
}

const body = 'a small body';
const chunked = (content: string) => `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`;

function request({ version = 'HTTP/1.1', headers = {}, sent = body }: Framing = {}): Uint8Array {
  const framed = { Host: 'x', 'Content-Length': String(sent.length), ...headers };
  const kept = Object.entries(framed).filter(([, value]) => value !== undefined);
  return rawRequest('POST', '/call', Object.fromEntries(kept) as Record<string, string>, sent, version);
}

const transferEncoding = (value: string, sent = chunked(body)): Framing => ({
  headers: { 'Content-Length': undefined, 'Transfer-Encoding': value },
  sent,
});

/** Empty headers that bring a request to this number of headers. */
function padding(count: number): Record<string, string> {
  const own = Buffer.from(request()).toString('latin1').split('\r\n\r\n')[0]?.split('\r\n').length ?? 0;
  return Object.fromEntries(Array.from({ length: count - own + 1 }, (_, index) => [`a${index}`, '']));
}

const badFramings: Readonly<Record<string, Framing>> = {
  'gzip, chunked': transferEncoding('gzip, chunked'),
  'gzip, and chunked in its own header': transferEncoding('gzip\r\nTransfer-Encoding: chunked'),
  'identity, chunked': transferEncoding('identity, chunked'),
  'chunked twice': transferEncoding('chunked, chunked'),
  'chunked in two headers': transferEncoding('chunked\r\nTransfer-Encoding: chunked'),
  'gzip alone': transferEncoding('gzip'),
  'chunked with a parameter': transferEncoding('chunked;q=1'),
  'chunked over HTTP/1.0': {
    version: 'HTTP/1.0',
    headers: {
      'Content-Length': undefined,
      'Transfer-Encoding': 'chunked',
      Connection: 'keep-alive',
    },
    sent: chunked(body),
  },
};

const badRequests: Readonly<Record<string, string | Uint8Array>> = {
  'HTTP/1.1 without Host': request({ headers: { Host: undefined } }),
  'two equal Host headers': request({ headers: { Host: 'x\r\nHost: x' } }),
  'two Host headers over HTTP/1.0': request({ version: 'HTTP/1.0', headers: { Host: 'x\r\nHost: y' } }),
  '101 headers': request({ headers: padding(101) }),
  '129 headers, the last of them a second Host': request({ headers: { ...padding(128), host: 'y' } }),
  '5,000 headers': request({ headers: padding(5_000) }),
  'a chunk without a length': request(transferEncoding('chunked', 'zz\r\n{}\r\n')),
  'a line of garbage': 'garbage\r\n\r\n',
  'the beginning of TLS': Uint8Array.of(0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00),
  'the PROXY protocol': 'PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'lines that end in LF alone': 'GET / HTTP/1.1\nHost: x\n\n',
  CONNECT: 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n',
  'a header name with a blank': 'GET / HTTP/1.1\r\nHost: x\r\nX-Nonce : n\r\n\r\n',
  'a folded header': 'GET / HTTP/1.1\r\nHost: x\r\nX-Nonce: a\r\n b\r\n\r\n',
  'two lengths': 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  'a length and chunks':
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  'a header of 20,000 bytes': `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`,
  'a target of 20,000 bytes': `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
};

const goodRequests: Readonly<Record<string, Uint8Array>> = {
  'a hundred headers': request({ headers: padding(100) }),
  'HTTP/1.0 without Host': request({ version: 'HTTP/1.0', headers: { Host: undefined } }),
  'chunked in any case of letters': request(transferEncoding('Chunked')),
  'chunks of one byte': request(
    transferEncoding('chunked', `${Array.from(body, (byte) => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`),
  ),
  'empty lines before it': Buffer.concat([Buffer.from('\r\n\r\n'), request()]),
  'an unknown expectation': request({ headers: { Expect: 'a miracle' } }),
  'a websocket upgrade': request({ headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }),
  'an h2c upgrade': request({
    headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' },
  }),
  'a TLS upgrade': request({ headers: { Connection: 'Upgrade', Upgrade: 'TLS/1.0' } }),
};

const authority = makeAuthority(fileScope);
trust(fileScope, authority);

for (const [over, tls] of [
  ['plain HTTP', undefined],
  ['TLS', frontOf(authority.issue('listener'))],
] as const) {
  /** The bodies of the calls since the last look. */
  let calls: string[] = [];
  const { baseUrl } = await openBareListener(
    fileScope,
    async (incoming) => {
      const received = String(await readBody(incoming));
      calls.push(received);
      return { status: 200, headers: {}, body: JSON.stringify(received) };
    },
    { tls },
  );
  const takeCalls = () => {
    const taken = calls;
    calls = [];
    return taken;
  };
  const statuses = async (bytes: readonly Uint8Array[], count = bytes.length) => {
    const { answers } = await rawExchange(baseUrl, Buffer.concat(bytes), { count });
    return answers.map(({ status }) => status);
  };

  describe(`over ${over}`, () => {
    for (const [what, bytes] of Object.entries(badRequests)) {
      test(`a request is rejected and its connection closed: ${what}`, async () => {
        const { answers } = await rawExchange(baseUrl, bytes);
        assert.equal(answers.length, 1);
        const [answer = assert.fail()] = answers;
        assertRejected(answer, 400, 'BAD_REQUEST_TARGET');
        // The listener keeps the connection of a request that is HTTP, but lacks one Host.
        if (!/Host/.test(answer.json.message)) assert.equal(answer.headers.connection, 'close');
        assert.deepEqual(takeCalls(), []);
      });
    }

    for (const [what, framing] of Object.entries(badFramings)) {
      test(`a request with an unclear end is rejected, and the following bytes are not read: ${what}`, async () => {
        const { answers, closed } = await rawExchange(baseUrl, Buffer.concat([request(framing), request()]), {
          count: 2,
        });
        assert.equal(answers.length, 1);
        assertRejected(answers[0] ?? assert.fail(), 400, 'BAD_REQUEST_TARGET');
        assert.equal(answers[0]?.headers.connection, 'close');
        assert.ok(closed);
        assert.deepEqual(takeCalls(), []);
      });
    }

    for (const [what, bytes] of Object.entries(goodRequests)) {
      test(`a request is answered: ${what}`, async () => {
        const { status, headers } = await rawAnswer(baseUrl, bytes);
        assert.deepEqual([status, headers.upgrade], [200, undefined]);
        assert.equal(headers['cache-control'], 'no-store');
        assert.deepEqual(takeCalls(), [body]);
      });
    }

    test('the error names the limit of headers', async () => {
      const answer = await rawAnswer(baseUrl, request({ headers: padding(101) }));
      assertRejected(answer, 400, 'BAD_REQUEST_TARGET', /more than 100 headers/);
    });

    test('Expect: 100-continue gets an interim response before the body is sent', async () => {
      assert.deepEqual(await statuses([request({ headers: { Expect: '100-continue' } })], 2), [100, 200]);
    });

    test('requests sent ahead are answered in their order', async () => {
      const sent = Array.from({ length: 31 }, (_, index) => `body ${index}`);
      const bytes = Buffer.concat(sent.map((one) => request({ sent: one })));
      const { answers } = await rawExchange(baseUrl, bytes, { count: sent.length });
      assert.deepEqual(
        answers.map(({ json, text: received }) => json ?? JSON.parse(received)),
        sent,
      );
    });

    test('a rejected request leaves the connection and its own body out of the next request', async () => {
      const smuggled = 'POST /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
      takeCalls();
      const rejected = request({ headers: { Host: 'x\r\nHost: y' }, sent: smuggled });
      assert.deepEqual(await statuses([rejected, request()]), [400, 200]);
      assert.deepEqual(takeCalls(), [body]);
    });

    test('a client that sends a whole rejected body before it reads gets the response, and no reset', async () => {
      const large = ' '.repeat(8_000_000);
      for (const framing of [{ sent: large }, transferEncoding('chunked', chunked(large))]) {
        const socket = await openSocket(baseUrl);
        await new Promise<void>((resolve, reject) => {
          socket.once('error', reject);
          socket.write(request(framing), () => resolve());
        });
        // Rejects if the connection is reset.
        assert.match(await text(socket), /^HTTP\/1\.1 413 .*"BODY_TOO_LARGE"/s);
        socket.destroy();
      }
    });

    test('a request after the last response of a connection is not carried out', async () => {
      const large = ' '.repeat(100_000);
      takeCalls();
      for (const framing of [{ sent: large }, transferEncoding('chunked', chunked(large))]) {
        const socket = await openSocket(baseUrl);
        socket.write(Buffer.concat([request(framing), request()]));
        assert.match(await text(socket), /^HTTP\/1\.1 413 .*Connection: close/is);
        await new Promise((written) => socket.write(request(), written));
        assert.equal((await rawAnswer(baseUrl, request({ sent: 'another connection' }))).status, 200);
        assert.deepEqual(takeCalls(), ['another connection']);
        socket.destroy();
      }
    });

    test('garbage after a valid request does not prevent its response', async () => {
      assert.deepEqual(await statuses([request(), Buffer.from('garbage\r\n\r\n')]), [200]);
    });

    test('clients that reset their connection at any point leave the listener serving', async () => {
      const { protocol, hostname: host, port } = new URL(baseUrl);
      const isSecure = protocol === 'https:';
      const whole = request();
      const headEnd = Buffer.from(whole).indexOf('\r\n\r\n');
      const cuts = [1, 30, headEnd, headEnd + 4, headEnd + 10, whole.length];
      const connectTwice = Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2));
      for (const bytes of [...cuts.map((length) => whole.subarray(0, length)), connectTwice]) {
        for (let attempt = 0; attempt < 5; attempt += 1) {
          const carrier = connect({ host, port: Number(port) });
          const socket = isSecure ? connectTls({ socket: carrier, host }) : carrier;
          await once(socket, isSecure ? 'secureConnect' : 'connect');
          await new Promise((written) => socket.write(bytes, written));
          carrier.resetAndDestroy();
        }
      }
      assert.equal((await rawAnswer(baseUrl, whole)).status, 200);
    });
  });
}
