import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { createRestClient } from '../../src/client/rest.ts';
import { signedHeaders } from '../../src/client/sign.ts';
import { bodyBytesMax } from '../../src/http/listen/open-calls.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { openLedger } from '../support/ledger.ts';
import { rawAnswer, rawExchange, rawRequest } from '../support/raw-http.ts';
import { assertRejected } from '../support/rejected.ts';
import { artwork, escrowTerms } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import type { RestAnswer } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { droppedTarget, recorderAnswer, recorderRequestId, startRecorder } from './recorder.ts';
import { reverseProxies, startProxy } from './reverse-proxies.ts';

const service = await startService(fileScope, { env: { ARTSEAL_TRUSTED_PROXIES: '127.0.0.1' } });
const ledger = openLedger(fileScope, service);
const platform = await service.platform();
const host = { Host: 'localhost' };

/** Sends a target byte for byte, signed by the client as `signedAs`; a POST if it has a body. */
function sendSigned(url: string, target: string, body = '', signedAs = target): Promise<RestAnswer> {
  const method = body === '' ? 'GET' : 'POST';
  const content =
    body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': `${body.length}` };
  const signed = signedHeaders(platform, { method, target: signedAs, body });
  return rawAnswer(url, rawRequest(method, target, { ...host, ...signed, ...content }, body));
}

/** Targets that clients may send. */
const ordinaryTargets = [
  '/api/v1/filing',
  '/api/v1/fil%69ng/%41S%2D2026%2d000001',
  '/api/v1/escrow?state=FROZEN&pageToken=a%2Bb%3d+%7E',
  '/api/v1/escrow?pageSize=1&&=&a;b=%25',
  '/Api/V1/Filing/',
  "/~a;b=c/@:!$&'()*+,=-._",
  '/api/v1/filing?',
  `/${'x'.repeat(2_047)}`,
];

/** Targets that a proxy may normalise. */
const uncleanTargets = [
  '/api//v1/filing',
  '//api/v1/filing',
  '/api/v1/filing//',
  '/api/./v1/filing',
  '/api/v1/x/../filing',
  '/../api/v1/filing',
  '/api/v1/x/..%2Ffiling',
  '/api/v1/%2e%2e/v1/filing',
  '/api/v1%2Ffiling',
  '/api/v1%2ffiling',
  '/api%5Cv1/filing',
  '/api\\v1\\filing',
  '/api/v1/filing%00',
  '/api/v1/filing#x',
  '/api/v1/filing?a#b',
  '/api/v1/"filing"',
  '/api/v1/<filing>',
  '/api/v1/{a|b}^`',
  '/api/v1/filing?a="<{|}>"',
  '/api/v1/filing%',
  '/api/v1/%zz',
  '/api/v1/\u00e9',
  '/api/v1/a b',
  'https://localhost/api/v1/filing',
  'https://elsewhere.example/api/v1/filing',
  'api/v1/filing',
  '*',
];

interface RepeatableRequest {
  readonly method: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

/** Requests that a proxy may send twice. */
const repeatable: readonly (readonly [what: string, request: RepeatableRequest])[] = [
  ['a POST', { method: 'POST', body: '{}' }],
  ['a POST with an Idempotency-Key', { method: 'POST', body: '{}', headers: { 'Idempotency-Key': 'k' } }],
  ['a POST without body', { method: 'POST' }],
  ['a POST without body, with an Idempotency-Key', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }],
  ['a GET', { method: 'GET' }],
];

for (const proxy of Object.values(reverseProxies)) {
  const { program, file } = proxy;
  const skip = skipUnlessInstalled('openssl', program);

  test(`behind the proxy ${program} with deploy/${file}`, { skip, timeout: 60_000 }, async (t) => {
    const url = await startProxy(t, proxy, service.publicUrl);

    await t.test('the log has the address of the client, even if it sends another', async () => {
      const forged = { ...host, 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9' };
      const { answers } = await rawExchange(url, rawRequest('GET', '/nowhere', forged), {
        from: '127.0.0.2',
      });
      const requestId = answers[0]?.headers['x-request-id'];
      const line = service.logLines
        .map((text) => JSON.parse(text))
        .find((one) => one.requestId === requestId);
      assert.equal(line?.client, '127.0.0.2');
    });

    await t.test('the documented calls succeed', async () => {
      const client = createRestClient(url, platform);
      const call = async (method: string, target: string, body?: object, more?: Record<string, string>) => {
        const answer = await client.send(method, target, body && JSON.stringify(body), more);
        const text = await answer.text();
        assert.equal(answer.status, 200, text);
        assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
        assert.match(answer.headers.get('ratelimit') ?? '', /"qps"/);
        return { text, json: JSON.parse(text), headers: answer.headers };
      };
      const once = { 'Idempotency-Key': `through-${program}` };
      const filed = await call('POST', '/api/v1/fil%69ng', artwork, once);
      const again = await call('POST', '/api/v1/fil%69ng', artwork, once);
      assert.equal(again.text, filed.text);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      const { filingNo } = filed.json;
      await call('GET', `/api/v1/provenance/${filingNo.replaceAll('-', '%2D')}`);
      const { escrowId } = (await call('POST', '/api/v1/escrow', escrowTerms(filingNo))).json;
      await call('POST', `/api/v1/escrow/${escrowId}/release`);
      const list = await call('GET', `/api/v1/escrow?filingNo=${filingNo}&state=%52ELEASED`);
      assert.deepEqual(
        list.json.escrows.map((order: { escrowId: string }) => order.escrowId),
        [escrowId],
      );
    });

    for (const bytes of [bodyBytesMax + 1, 200_000]) {
      await t.test(`a body of ${bytes} bytes gets the error of the service`, async () => {
        const answer = await sendSigned(url, '/api/v1/filing', ' '.repeat(bytes));
        assertRejected(answer, 413, 'BODY_TOO_LARGE');
      });
    }

    await t.test('a target that a proxy may normalise is rejected, whichever form is signed', async () => {
      const before = ledger.holdings();
      const body = JSON.stringify(artwork);
      for (const target of uncleanTargets) {
        for (const signedAs of [target, '/api/v1/filing']) {
          const { status, text } = await sendSigned(url, target, body, signedAs);
          assert.ok([400, 401, 404, 421].includes(status), `${target}: ${status} ${text}`);
        }
      }
      assert.deepEqual(ledger.holdings(), before);
    });

    await t.test('the proxy speaks TLS 1.2 and HTTP/1.1, nothing older, and no HTTP/2', async () => {
      assert.deepEqual(await negotiate(url, 'TLSv1.2'), ['TLSv1.2', 'http/1.1']);
      const refused = { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' };
      await assert.rejects(negotiate(url, 'TLSv1.1'), refused);
    });
  });

  test(`${program} with deploy/${file} forwards`, { skip, timeout: 60_000 }, async (t) => {
    const recorder = await startRecorder(t);
    const url = await startProxy(t, proxy, recorder.url);

    await t.test('headers, body and response unchanged', async () => {
      const body = ` {"author":"齐白石",\r\n\t"author":"\\u9f50"}`;
      const headers = {
        'Content-Type': 'application/json; charset=UTF-8',
        'Content-Length': `${Buffer.byteLength(body)}`,
        'X-Api-Key': 'ak_sandbox_aB',
        'X-Timestamp': '1700000000',
        'X-Nonce': 'a.Z_~+/=-',
        'X-Signature': 'aF'.repeat(32),
        'Idempotency-Key': '"!~ 1"',
        'Accept-Encoding': 'gzip, br, zstd',
      };
      const answer = await rawAnswer(url, rawRequest('POST', '/p', { ...host, ...headers }, body));
      const [arrived, ...more] = recorder.take();
      assert.deepEqual(more, []);
      assert.equal(arrived?.body, body);
      for (const [header, value] of Object.entries(headers)) {
        assert.equal(arrived?.headers[header.toLowerCase()], value, header);
      }
      assert.equal(answer.status, 200);
      assert.equal(answer.text, recorderAnswer);
      assert.equal(answer.headers['content-encoding'], undefined);
      assert.equal(answer.headers['x-request-id'], recorderRequestId);
      assert.equal(answer.headers['keep-alive'], undefined, 'the timeout of the service, not of the proxy');
    });

    await t.test('a repeated header, and no Accept-Encoding', async () => {
      await rawAnswer(url, rawRequest('GET', '/twice', { ...host, 'X-Nonce': ['one', 'two'] }));
      const [arrived] = recorder.take();
      assert.equal(arrived?.headers['x-nonce'], 'one, two');
      assert.equal(arrived?.headers['accept-encoding'], undefined);
    });

    await t.test('a target byte for byte', async () => {
      for (const target of ordinaryTargets) {
        assert.equal((await sendSigned(url, target)).status, 200, target);
        assert.deepEqual(recorder.take().map(targetOf), [target]);
      }
    });

    await t.test('a target that it may normalise unchanged or not at all', async () => {
      for (const target of uncleanTargets) {
        const { status } = await sendSigned(url, target);
        assert.deepEqual(recorder.take().map(targetOf), status === 200 ? [target] : []);
      }
    });

    for (const [what, request] of repeatable) {
      await t.test(`${what} once, even if the kept connection breaks`, async () => {
        const { answers } = await rawExchange(url, twoRequests(request), { count: 2 });
        assert.deepEqual(recorder.take().map(targetOf), ['/kept', droppedTarget]);
        const [kept, dropped] = answers;
        assert.equal(kept?.status, 200);
        // HAProxy says nothing and closes the connection.
        if (dropped !== undefined) assert.equal(dropped.status, 502);
      });
    }
  });
}

/** Targets that give access to anybody who knows them. */
const secretTargets = [
  '/payment/notifications?secret=of-the-hook',
  '/evidence/secret-of-the-link',
  '/access/secret-of-the-link',
];

test('no log of nginx has the secret of a hook or link, whether the service answers or not', {
  skip: skipUnlessInstalled('openssl', 'nginx'),
}, async (t) => {
  const recorder = await startRecorder(t);
  for (const [upstream, status] of [
    [recorder.url, 200],
    ['http://127.0.0.1:1', 502],
  ] as const) {
    const log = join(temporaryFolder(t), 'log');
    const logging = (text: string) =>
      text.replace('gzip off;', `access_log ${log}; error_log ${log} info; gzip off;`);
    const url = await startProxy(t, reverseProxies.nginx, upstream, logging);
    for (const target of [...secretTargets, '/api/v1/filing?pageSize=1'])
      assert.equal((await rawAnswer(url, rawRequest('GET', target, host))).status, status);
    await eventually('the second request is logged', 10_000, () =>
      /pageSize=1/.test(readFileSync(log, 'utf8')),
    );
    assert.doesNotMatch(readFileSync(log, 'utf8'), /secret/);
  }
});

test('no log of HAProxy has the secret of a hook or link', {
  skip: skipUnlessInstalled('openssl', 'haproxy'),
}, async (t) => {
  const recorder = await startRecorder(t);
  const lines: string[] = [];
  const receiver = createSocket('udp4', (line) => lines.push(String(line))).bind(0, '127.0.0.1');
  t.after(() => receiver.close());
  await once(receiver, 'listening');
  const target = `log 127.0.0.1:${receiver.address().port} local0`;
  const url = await startProxy(t, reverseProxies.haproxy, recorder.url, (text) =>
    text.replace('log global', target),
  );
  for (const path of [...secretTargets, '/api/v1/filing?pageSize=1'])
    assert.equal((await rawAnswer(url, rawRequest('GET', path, host))).status, 200);
  await eventually('the second request is logged', 10_000, () =>
    lines.some((line) => /pageSize=1/.test(line)),
  );
  assert.doesNotMatch(lines.join('\n'), /secret/);
});

/** The versions of TLS and HTTP that a client of one version of TLS and both of HTTP gets. */
async function negotiate(url: string, version: 'TLSv1.1' | 'TLSv1.2') {
  const { hostname: host, port } = new URL(url);
  const socket = connect({
    host,
    port: Number(port),
    servername: host,
    minVersion: version,
    maxVersion: version,
    ALPNProtocols: ['h2', 'http/1.1'],
    // Without this the client itself would not offer what is old.
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  try {
    await once(socket, 'secureConnect');
    return [socket.getProtocol(), socket.alpnProtocol];
  } finally {
    socket.destroy();
  }
}

/** The bytes of a request that is answered, and of a second one whose connection breaks. */
function twoRequests({ method, body = '', headers = {} }: RepeatableRequest): Uint8Array {
  const all = { ...host, 'Content-Length': `${body.length}`, ...headers };
  return Buffer.concat(['/kept', droppedTarget].map((target) => rawRequest(method, target, all, body)));
}

function targetOf({ target }: { readonly target: string }): string {
  return target;
}
