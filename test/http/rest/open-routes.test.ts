import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { type Reason, reasons, unavailable } from '../../../src/domain/reason.ts';
import { reasonHelp } from '../../../src/domain/reason-help.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { createManualClock } from '../../support/clock.ts';
import { exampleCheckpoint, exampleKey, exampleOrigin } from '../../support/evidence-example.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertDocumented } from '../../support/openapi.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { openBareListener } from './bare-listener.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const verifierPage = readFileSync(join(root, 'docs', 'verify.html'), 'utf8');
const tryPage = readFileSync(join(root, 'docs', 'try.html'), 'utf8');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

let note: string | undefined = exampleCheckpoint();
let keys = [exampleKey.vkey, `${exampleOrigin}+2+old`];
const asked: string[] = [];
const listener = await openBareListener(
  fileScope,
  async () => assert.fail('An open route needs no signature.'),
  {
    log: {
      checkpoint: async () => note,
      verifierKeys: () => keys,
      tile: async (path) => {
        asked.push(path);
        if (path === 'busy')
          throw unavailable('Too many calls without a signature are waiting. Try again in a moment.');
        if (path === 'broken') throw new Error('The evidence log lacks it.');
        return path === '0/000' ? Buffer.from([0, 0xff, 10]) : undefined;
      },
    },
    evidence: {
      open: async (token) => (token === 'good' ? { json: '{"a":1}', file: 'evidence-1.json' } : undefined),
    },
  },
);
const ask = (path: string, method = 'GET', baseUrl = listener.baseUrl) =>
  rawAnswer(baseUrl, rawRequest(method, path, { Host: 'x', Origin: 'https://elsewhere.example' }));

const html = ['text/html; charset=utf-8', 'no-cache', undefined, undefined] as const;
const json = ['application/json', 'no-store', undefined] as const;
const text = ['text/plain; charset=utf-8', 'no-cache', '*'] as const;
const immutable = 'public, max-age=31536000, immutable';
const tile = Buffer.from([0, 0xff, 10]).toString();

/** Each route with its media type, its caching, the origins that may read it, and its text. */
const routes = [
  ['/docs/', ...html],
  ['/docs/reference', ...html],
  ['/docs/errors', ...html],
  ['/docs/try', ...html.slice(0, 3), tryPage],
  ['/docs/webhooks', ...html],
  ['/docs/evidence', ...html],
  ['/docs/reference.json', 'application/json', 'no-cache', undefined],
  ['/log/', ...html],
  ['/verify', ...html.slice(0, 3), verifierPage],
  ['/openapi.yaml', 'application/yaml', 'no-store', undefined, 'openapi: 3.1.0'],
  ['/healthz', ...json, '{"status":"ok"}'],
  ['/readyz', ...json, '{"status":"ok"}'],
  ['/version', ...json, '{"version":"1.0.0","commit":"","startedAt":""}'],
  ['/log/checkpoint', ...text, note],
  ['/log/vkey', ...text, `${keys.join('\n')}\n`],
  ['/log/tile/0/000', 'application/octet-stream', immutable, '*', tile],
  ['/evidence/good', ...json, '{"a":1}'],
] as const;

for (const [path, type, cache, origin, body] of routes) {
  test(`${path} needs no signature, and takes GET and HEAD without a query`, async () => {
    const answer = await ask(path);
    const { answers } = await rawExchange(listener.baseUrl, rawRequest('HEAD', path, { Host: 'x' }), {
      head: true,
    });
    if (body !== undefined) assert.equal(answer.text, body);
    for (const { status, headers } of [answer, ...answers]) {
      assert.equal(status, 200);
      assert.equal(headers['content-type'], type);
      assert.equal(headers['cache-control'], cache);
      assert.equal(headers['access-control-allow-origin'], origin);
      assert.equal(headers['content-length'], String(answer.headers['content-length']));
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
    }
    assertRejected(await ask(`${path}?key=1`), 400, 'VALIDATION_FAILED');
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const rejected = await ask(path, method);
      assertRejected(rejected, 405, 'METHOD_NOT_ALLOWED');
      assert.equal(rejected.headers.allow, 'GET, HEAD');
    }
  });
}

test('a page loads nothing of other hosts, cannot be framed, and sends no referrer', async () => {
  for (const path of [
    '/docs/',
    '/docs/errors',
    '/docs/webhooks',
    '/docs/evidence',
    '/docs/try',
    '/verify',
    '/log/',
  ]) {
    const { headers, text } = await ask(path);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /^default-src 'none'; /);
    assert.match(policy, /; frame-ancestors 'none'$/);
    assert.doesNotMatch(policy, /unsafe|http|\*/);
    assert.match(text, /^<!doctype html>\n<html lang="en">/);
  }
  for (const path of ['/docs/try', '/verify']) {
    const { headers, text } = await ask(path);
    const [, stated] = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(text) ?? [];
    assert.equal(headers['content-security-policy'], `${stated}; frame-ancestors 'none'`);
  }
});

test('/docs/errors explains each error code, under the link of the error', async () => {
  const { text } = await ask('/docs/errors');
  for (const [reason, { http, code }] of Object.entries(reasons)) {
    const [, section = ''] = text.split(`<h2 id="${reason}">${reason}</h2>`);
    assert.match(
      section,
      reason === 'CANCELLED' ? /canceled/ : new RegExp(`^\\s*<p><small>HTTP ${http}, gRPC ${code}<`),
    );
    const { condition, action } = reasonHelp[reason as Reason];
    for (const sentences of [condition, action]) {
      assert.match(sentences, /^[A-Z0-9`].*\.$/, reason);
      const shown = sentences.replaceAll('"', '&quot;').replaceAll(/`([^`]*)`/g, '<code>$1</code>');
      assert.ok(section.includes(`<p>${shown}</p>`), reason);
    }
  }
  assert.doesNotMatch(text, /<script|`/);
});

test('/log/ has the name and all keys of the log, escaped, and a warning not to trust keys from it', async () => {
  const { text } = await ask('/log/');
  assert.match(text, /covers 5 entries/);
  for (const shown of [exampleOrigin, keys.join('\n'), 'artseal evidence vkey', 'artseal log audit'])
    assert.ok(text.includes(shown), shown);
  assert.match(
    text.replaceAll('\n', ' '),
    /key that you take from the log itself proves nothing against the operator/,
  );
  for (const link of ['checkpoint', 'vkey', '/verify']) assert.ok(text.includes(`href="${link}"`), link);
  const shownKeys = keys;
  keys = ['<b>"&+1f6029b1+new'];
  const escaped = await ask('/log/');
  keys = shownKeys;
  assert.ok(escaped.text.includes('&lt;b&gt;&quot;&amp;+1f6029b1+new') && !escaped.text.includes('<b>'));
  const { status, headers } = await ask('/log');
  assert.deepEqual([status, headers.location], [308, '/log/']);
});

test('before the first checkpoint /log/ says so, and the path of the checkpoint is not found', async () => {
  note = undefined;
  assert.match((await ask('/log/')).text, /No checkpoint has been published yet/);
  assertRejected(await ask('/log/checkpoint'), 404, 'NOT_FOUND');
  note = exampleCheckpoint();
});

test('an unknown path is an ordinary error, also for pages of other origins, and is not cached', async () => {
  asked.length = 0;
  const tiles = ['0/001', '0/%30%30%30', '../checkpoint', '', '0/000/', '/0/000'];
  const others = ['nothing', 'checkpoint/', 'checkpoint%2e', 'vkey.txt'];
  for (const path of [...tiles.map((tile) => `tile/${tile}`), ...others]) {
    const rejected = await ask(`/log/${path}`);
    assertRejected(rejected, 404, 'NOT_FOUND', /evidence log/);
    assert.equal(rejected.headers['access-control-allow-origin'], '*');
    assert.equal(rejected.headers['cache-control'], 'no-store');
  }
  assert.deepEqual(asked, tiles);
  for (const token of ['', 'bad', 'good/', 'good%20', '../log/checkpoint'])
    assertRejected(await ask(`/evidence/${token}`), 404, 'NOT_FOUND', /expired/);
});

test('while too many read, the response says when to try again, which is no warning for the operator', async () => {
  const rejected = await ask('/log/tile/busy');
  assertRejected(rejected, 503, 'UNAVAILABLE');
  assert.equal(rejected.headers['retry-after'], '1');
  assert.equal(rejected.headers['access-control-allow-origin'], '*');
  assert.equal(JSON.parse(listener.logLines.at(-1) ?? '{}').level, 30);
  assertRejected(await ask('/log/tile/broken'), 500, 'INTERNAL');
});

test('a link is a file to save, and the log names its route, never its token', async () => {
  const before = listener.logLines.length;
  const { headers } = await ask('/evidence/good');
  assert.equal(headers['content-disposition'], 'attachment; filename="evidence-1.json"');
  await ask('/evidence/secret-of-a-link');
  await ask('/log/tile/0/000');
  const lines = listener.logLines.slice(before);
  assert.doesNotMatch(lines.join(''), /good|secret/);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).operation),
    ['/evidence', '/evidence', '/log/tile'],
  );
});

const clock = createManualClock(Date.parse('2026-11-21T09:15:00+08:00'));
const [service, disk] = await onBadDisk({ mock }, () =>
  startService(fileScope, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } }),
);
const askService = (path: string, method = 'GET') => ask(path, method, service.publicUrl);

test('the first page has a first call, and a service says since when it runs', async () => {
  assert.match((await askService('/docs/')).text, /artseal call POST \/api\/v1\/filing/);
  for (const path of ['/healthz', '/version', '/log/checkpoint', '/log/vkey'])
    assertDocumented('GET', path, await askService(path));
  const started = { version, commit: '', startedAt: '2026-11-21T09:15:00+08:00' };
  assert.deepEqual((await askService('/version')).json, started);
  for (const [path, method] of [
    ['/', 'POST'],
    ['/healthz/', 'GET'],
  ] as const)
    assertRejected(await askService(path, method), 401, 'AUTH_HEADER_MISSING');
});

/** The names of the parts that fail according to /readyz. */
async function failing(): Promise<string[]> {
  const answer = await askService('/readyz');
  assertDocumented('GET', '/readyz', answer);
  if (answer.status === 200) return [];
  assertRejected(answer, 503, 'UNAVAILABLE');
  assert.equal(answer.headers['retry-after'], '1');
  return /^Not ready: (.+)\.$/.exec(answer.json.message)?.[1]?.split(', ') ?? [];
}

/** Lets writes succeed until the store counts as ready again. */
async function healDisk(): Promise<void> {
  disk.heal();
  clock.advance(1_000);
  await failing();
  clock.advance(5_000);
}

test('/readyz names what is not ready, and the log has the details', async () => {
  const before = service.logLines.length;
  disk.failCommits();
  clock.advance(1_000);
  assert.deepEqual(await failing(), ['store']);
  assert.equal((await askService('/healthz')).status, 200);
  clock.setWall(clock.nowMs() + 3_600_000);
  assert.deepEqual(await failing(), ['store', 'clock']);
  assert.deepEqual(await failing(), ['store', 'clock']);
  await healDisk();
  assert.deepEqual(await failing(), ['clock']);
  clock.setWall(clock.nowMs() - 3_600_000);
  assert.deepEqual(await failing(), []);
  const lines = service.logLines.slice(before).map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ msg, faults }) => [msg, faults?.map(({ fault }: { fault: string }) => fault.slice(0, 32))]),
    [
      ['not ready: store', ['a write failed: disk I/O error']],
      ['not ready: store, clock', ['a write failed: disk I/O error', 'the clock was set forward by 360']],
      ['not ready: clock', ['the clock was set forward by 360']],
      ['ready again', undefined],
    ],
  );
});
