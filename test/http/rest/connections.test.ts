import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { fileArtwork } from '../../support/calls.ts';
import { makeAuthority, trust } from '../../support/certificates.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf } from '../../support/signed-request.ts';

interface Framing {
  readonly version?: string;
  /** Headers added, or, where undefined, taken away. */
  readonly headers?: Record<string, string | undefined>;
  readonly sent?: string;
}

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const { certificateFile, keyFile } = authority.issue('listener');

const listeners = {
  'plain HTTP': {},
  TLS: { ARTSEAL_PUBLIC_TLS_CERT: certificateFile, ARTSEAL_PUBLIC_TLS_KEY: keyFile },
};

for (const [over, env] of Object.entries(listeners)) {
  const service = await startService(fileScope, { env });
  const ledger = openLedger(fileScope, service);
  const platform = await service.platform();
  const { publicUrl } = service;
  const target = '/api/v1/filing';
  const body = JSON.stringify(artwork);

  describe(`over ${over}`, () => {
    /** The bytes of a new, valid filing, and where its framing differs. */
    function filing({ version = 'HTTP/1.1', headers = {}, sent = body }: Framing = {}): Uint8Array {
      const framed = {
        Host: 'x',
        'Content-Length': String(body.length),
        ...headersOf(platform, { target, body }),
      };
      const kept = Object.entries({ ...framed, ...headers }).filter(([, value]) => value !== undefined);
      return rawRequest('POST', target, Object.fromEntries(kept) as Record<string, string>, sent, version);
    }

    /** Asserts that others are served as ever. */
    async function assertServes(): Promise<void> {
      assert.equal((await fileArtwork(service, platform)).status, 200);
    }

    test('HTTP/1.0 without Host is served, and the connection closed', async () => {
      const answer = await rawAnswer(
        publicUrl,
        filing({ version: 'HTTP/1.0', headers: { Host: undefined } }),
      );
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers.connection, 'close');
    });

    test('HTTP/1.1 without Host is refused', async () => {
      const answer = await rawAnswer(publicUrl, filing({ headers: { Host: undefined } }));
      assertRefused(answer, 400, 'BAD_REQUEST_TARGET', /Host/);
    });

    for (const version of ['HTTP/1.1', 'HTTP/1.0']) {
      test(`${version} with two Host headers is refused, whatever they say`, async () => {
        for (const hosts of ['x\r\nHost: y', 'x\r\nHost: x']) {
          const before = { ...ledger.holdings(), nonces: ledger.nonces() };
          const answer = await rawAnswer(publicUrl, filing({ version, headers: { Host: hosts } }));
          assertRefused(answer, 400, 'BAD_REQUEST_TARGET', /Host/);
          assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
        }
      });
    }

    /** Empty headers with which a filing has as many as this in all. */
    function padding(count: number): Record<string, string> {
      const [head = ''] = Buffer.from(filing()).toString('latin1').split('\r\n\r\n');
      const own = head.split('\r\n').length - 1;
      return Object.fromEntries(Array.from({ length: count - own }, (_, place) => [`a${place}`, '']));
    }

    test('a hundred headers are taken', async () => {
      const answer = await rawAnswer(publicUrl, filing({ headers: padding(100) }));
      assert.equal(answer.status, 200, answer.text);
    });

    for (const count of [101, 128, 129, 500, 1_500]) {
      test(`${count} headers are refused, whatever the last of them say`, async () => {
        const before = { ...ledger.holdings(), nonces: ledger.nonces() };
        for (const headers of [padding(count), { ...padding(count - 1), host: 'y' }]) {
          const answer = await rawAnswer(publicUrl, filing({ headers }));
          assertRefused(answer, 400, 'BAD_REQUEST_TARGET', /more than 100 headers/);
          assert.equal(answer.headers.connection, 'close');
        }
        assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
      });
    }

    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const framings: readonly (readonly [what: string, framing: Framing])[] = [
      ['gzip, chunked', { headers: { 'Transfer-Encoding': 'gzip, chunked' } }],
      [
        'gzip, and chunked in a header of its own',
        { headers: { 'Transfer-Encoding': 'gzip\r\nTransfer-Encoding: chunked' } },
      ],
      ['identity, chunked', { headers: { 'Transfer-Encoding': 'identity, chunked' } }],
      ['chunked twice', { headers: { 'Transfer-Encoding': 'chunked, chunked' } }],
      [
        'chunked in two headers',
        { headers: { 'Transfer-Encoding': 'chunked\r\nTransfer-Encoding: chunked' } },
      ],
      ['gzip alone', { headers: { 'Transfer-Encoding': 'gzip' } }],
      ['chunked with a parameter', { headers: { 'Transfer-Encoding': 'chunked;q=1' } }],
      [
        'chunked over HTTP/1.0',
        { version: 'HTTP/1.0', headers: { 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' } },
      ],
    ];

    for (const [what, { version, headers }] of framings) {
      test(`a body that ends elsewhere for others is refused, and what follows it is not read: ${what}`, async () => {
        const before = { ...ledger.holdings(), nonces: ledger.nonces() };
        const framing = { ...(version && { version }), headers: { ...headers, 'Content-Length': undefined } };
        const bytes = Buffer.concat([filing({ ...framing, sent: chunks }), filing()]);
        const { answers, closed } = await rawExchange(publicUrl, bytes, { count: 2 });
        assert.equal(answers.length, 1);
        assertRefused(answers[0] ?? assert.fail(), 400, 'BAD_REQUEST_TARGET');
        assert.equal(answers[0]?.headers.connection, 'close');
        assert.ok(closed);
        assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
      });
    }

    test('chunked is read in any case of letters', async () => {
      const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'Chunked' };
      const sent = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      assert.equal((await rawAnswer(publicUrl, filing({ headers, sent }))).status, 200);
    });

    for (const host of ['[', '', 'a b', ':', 'x:99999', '\u00ff']) {
      test(`the Host ${JSON.stringify(host)} ends in an answer, and others are served`, async () => {
        const answer = await rawAnswer(publicUrl, filing({ headers: { Host: host } }));
        assert.ok([200, 400].includes(answer.status), answer.text);
        assert.ok(answer.headers['x-request-id']);
        await assertServes();
      });
    }

    const notHttp: readonly (readonly [what: string, bytes: string | Uint8Array])[] = [
      ['a line of garbage', 'garbage\r\n\r\n'],
      ['random bytes', Uint8Array.from({ length: 512 }, (_, index) => (index * 167 + 13) % 256)],
      ['the beginning of TLS', Uint8Array.of(0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00)],
      ['the PROXY protocol', 'PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['the PROXY protocol in its binary form', '\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c'],
      ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
      ['a method in lower case', 'get / HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['lines that end in LF alone', 'GET / HTTP/1.1\nHost: x\n\n'],
      ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
      ['a header name with a blank', 'GET / HTTP/1.1\r\nHost: x\r\nX-Nonce : n\r\n\r\n'],
      ['a folded header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Nonce: a\r\n b\r\n\r\n'],
      ['NUL in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Nonce: a\0b\r\n\r\n'],
      ['a negative length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
      ['a length that is no number', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n'],
      ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
      [
        'a length and chunks',
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      ],
      ['a header of 20,000 bytes', `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`],
      ['a target of 20,000 bytes', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
      ['5,000 headers', `GET / HTTP/1.1\r\nHost: x\r\n${'X-A: a\r\n'.repeat(5_000)}\r\n`],
    ];

    for (const [what, bytes] of notHttp) {
      test(`what HTTP/1.1 does not allow is refused in the envelope and ends the connection: ${what}`, async () => {
        const answer = await rawAnswer(publicUrl, bytes);
        assertRefused(answer, 400, 'BAD_REQUEST_TARGET');
        assert.equal(answer.headers.connection, 'close');
        await assertServes();
      });
    }

    const brokenBodies: readonly (readonly [what: string, framing: Framing])[] = [
      [
        'a chunk without a length',
        { headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }, sent: 'zz\r\n{}\r\n' },
      ],
      [
        'a chunk longer than it says',
        {
          headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
          sent: '1\r\n{}\r\n0\r\n\r\n',
        },
      ],
      [
        'a transfer encoding that is not chunked',
        { headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'gzip' } },
      ],
    ];

    for (const [what, framing] of brokenBodies) {
      test(`a body that the HTTP parser cannot read is refused in the envelope and files nothing: ${what}`, async () => {
        const before = ledger.holdings();
        const { answers } = await rawExchange(publicUrl, filing(framing));
        assert.deepEqual(ledger.holdings(), before);
        await assertServes();
        assert.equal(answers.length, 1, 'the connection was closed without an answer');
        const [answer] = answers;
        if (answer !== undefined) assertRefused(answer, 400, 'BAD_REQUEST_TARGET');
      });
    }

    test('empty lines before a request are passed over', async () => {
      const bytes = Buffer.concat([Buffer.from('\r\n\r\n'), filing()]);
      assert.equal((await rawAnswer(publicUrl, bytes)).status, 200);
    });

    test('Expect: 100-continue is answered before the body is sent', async () => {
      const { answers } = await rawExchange(publicUrl, filing({ headers: { Expect: '100-continue' } }), {
        count: 2,
      });
      assert.deepEqual(
        answers.map(({ status }) => status),
        [100, 200],
      );
    });

    test('what proxies say of a client decides nothing', async () => {
      const headers = {
        Forwarded: 'for=192.0.2.1;host=elsewhere.example;proto=http',
        'X-Forwarded-For': '127.0.0.1',
        'X-Forwarded-Host': 'elsewhere.example',
        'X-Forwarded-Prefix': '/elsewhere',
        'X-Forwarded-Proto': 'http',
        'X-HTTP-Method-Override': 'GET',
        'X-Original-URL': '/elsewhere',
        'X-Request-Id': 'mine',
        'X-Rewrite-URL': '/elsewhere',
      };
      const answer = await rawAnswer(publicUrl, filing({ headers }));
      assert.equal(answer.status, 200, answer.text);
      assert.notEqual(answer.headers['x-request-id'], 'mine');
      const forged = { ...headers, 'X-Signature': '0'.repeat(64) };
      assertRefused(await rawAnswer(publicUrl, filing({ headers: forged })), 401, 'SIGNATURE_INVALID');
    });

    test('another expectation is not met, yet the call is carried out', async () => {
      assert.equal((await rawAnswer(publicUrl, filing({ headers: { Expect: 'a miracle' } }))).status, 200);
    });

    for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
      test(`an upgrade to ${protocol} is not made, yet the call is carried out`, async () => {
        const headers = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: protocol, 'HTTP2-Settings': '' };
        const answer = await rawAnswer(publicUrl, filing({ headers }));
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers.upgrade, undefined);
      });
    }

    test('requests sent one behind the other are answered in their order', async () => {
      const last = rawRequest('GET', '/nowhere', {
        Host: 'x',
        ...headersOf(platform, { target: '/nowhere' }),
      });
      const { answers } = await rawExchange(publicUrl, Buffer.concat([filing(), filing(), filing(), last]), {
        count: 4,
      });
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 404],
      );
      const numbers = answers.slice(0, 3).map(({ json }) => Number(json.filingNo.slice(-6)));
      const [first = 0] = numbers;
      assert.deepEqual(numbers, [first, first + 1, first + 2]);
    });

    test('a apiError of one request leaves the connection to the next', async () => {
      const refused = filing({ headers: { 'X-Signature': '0'.repeat(64) } });
      const { answers } = await rawExchange(publicUrl, Buffer.concat([refused, filing()]), { count: 2 });
      assert.deepEqual(
        answers.map(({ status }) => status),
        [401, 200],
      );
    });

    test('the unread body of a refused request is not taken for the next request', async () => {
      const smuggled = `POST /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`;
      const headers = { 'X-Nonce': undefined, 'Content-Length': String(smuggled.length) };
      const refused = filing({ headers, sent: smuggled });
      const { answers } = await rawExchange(publicUrl, Buffer.concat([refused, filing()]), { count: 2 });
      assert.deepEqual(
        answers.map(({ status }) => status),
        [401, 200],
      );
    });

    test('a client that sends all of a refused body before it reads is answered, and its connection ends in order', async () => {
      const large = ' '.repeat(8_000_000);
      for (const framing of [
        { 'Content-Length': String(large.length) },
        { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
      ]) {
        const chunked = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
        const sent = framing['Content-Length'] === undefined ? chunked : large;
        const socket = await openSocket(publicUrl);
        await new Promise<void>((resolve, reject) => {
          socket.once('error', reject);
          socket.write(filing({ headers: framing, sent }), () => resolve());
        });
        // Rejects where the connection is reset.
        assert.match(await text(socket), /^HTTP\/1\.1 413 .*"BODY_TOO_LARGE"/s);
        socket.destroy();
      }
    });

    test('garbage behind a valid request does not take its answer away', async () => {
      const bytes = Buffer.concat([filing(), Buffer.from('garbage\r\n\r\n')]);
      const { answers } = await rawExchange(publicUrl, bytes, { count: 2 });
      assert.equal(answers[0]?.status, 200, 'the filing was not answered');
    });

    test('a client that closes its half of the connection after its request is answered', async (t) => {
      // The end is read before the answer of a store that works in a thread of its own.
      const apart = await startService(t, { isStoreInThisThread: false });
      const signed = headersOf(await apart.platform(), { target, body });
      const bytes = rawRequest(
        'POST',
        target,
        { Host: 'x', 'Content-Length': String(body.length), ...signed },
        body,
      );
      const answer = await rawAnswer(apart.publicUrl, bytes, { end: true });
      assert.equal(answer.status, 200, answer.text);
    });

    test('a client that closes its half before its body is complete files nothing', async () => {
      const before = { ...ledger.holdings(), nonces: ledger.nonces() };
      await rawExchange(publicUrl, filing({ sent: body.slice(0, 20) }), { end: true });
      assert.deepEqual({ ...ledger.holdings(), nonces: ledger.nonces() }, before);
      await assertServes();
    });

    /** Sends bytes and breaks the connection off as soon as they are sent. */
    async function breakOff(bytes: Uint8Array): Promise<void> {
      const { protocol, hostname: host, port } = new URL(publicUrl);
      const carrier = connect({ host, port: Number(port) });
      const isSecure = protocol === 'https:';
      const socket = isSecure ? connectTls({ socket: carrier, host }) : carrier;
      await once(socket, isSecure ? 'secureConnect' : 'connect');
      await new Promise((sent) => socket.write(bytes, sent));
      carrier.resetAndDestroy();
    }

    test('clients that go away amid their headers, their body or their answer leave the others served', async () => {
      const whole = filing();
      const headEnd = Buffer.from(whole).indexOf('\r\n\r\n');
      for (const length of [1, 30, headEnd, headEnd + 4, headEnd + 10, whole.length - 1, whole.length]) {
        await Promise.all(Array.from({ length: 5 }, () => breakOff(filing().subarray(0, length))));
        await assertServes();
      }
    });

    test('a hundred connections that send nothing leave the others served', async () => {
      const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(publicUrl)));
      try {
        await assertServes();
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });

    test('answers are not to be stored by anything between', async () => {
      const answer = await fileArtwork(service, platform);
      assert.equal(answer.headers['cache-control'], 'no-store');
      assert.equal(answer.headers['content-type'], 'application/json');
      assert.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.text)));
    });
  });
}
