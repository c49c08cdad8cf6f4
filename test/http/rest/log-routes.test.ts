import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailable } from '../../../src/domain/reason.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { openBareListener } from './bare-listener.ts';

const note = 'example.com/log\n1\nAAAA\n\n— example.com/log AAAA\n';
let isPublished = true;
const asked: string[] = [];
const listener = await openBareListener(
  fileScope,
  async () => assert.fail('An open route needs no signature.'),
  {
    log: {
      checkpoint: () => (isPublished ? note : undefined),
      verifierKeys: () => ['example.com/log+1+new', 'example.com/log+2+old'],
      tile: async (path) => {
        asked.push(path);
        if (path === 'busy') throw unavailable('Too many read the evidence log at the moment.');
        if (path === 'broken') throw new Error('The evidence log lacks it.');
        return path === '0/000' ? Buffer.from([0, 0xff, 10]) : undefined;
      },
    },
    evidence: {
      open: async (token) => (token === 'good' ? { json: '{"a":1}', file: 'evidence-1.json' } : undefined),
    },
  },
);

const ask = (path: string, method = 'GET') =>
  rawAnswer(listener.baseUrl, rawRequest(method, path, { Host: 'x', Origin: 'https://elsewhere.example' }));

const immutable = 'public, max-age=31536000, immutable';

test('checkpoint, keys, tiles and links have the right caching headers', async () => {
  for (const [path, type, cache, text, origin] of [
    ['/log/checkpoint', 'text/plain; charset=utf-8', 'no-cache', note, '*'],
    [
      ...(['/log/vkey', 'text/plain; charset=utf-8', 'no-cache'] as const),
      ...(['example.com/log+1+new\nexample.com/log+2+old\n', '*'] as const),
    ],
    ['/log/tile/0/000', 'application/octet-stream', immutable, Buffer.from([0, 0xff, 10]).toString(), '*'],
    ['/evidence/good', 'application/json', 'no-store', '{"a":1}', undefined],
  ] as const) {
    const answer = await ask(path);
    const { answers } = await rawExchange(listener.baseUrl, rawRequest('HEAD', path, { Host: 'x' }), {
      head: true,
    });
    assert.equal(answer.text, text);
    for (const { status, headers } of [answer, ...answers]) {
      assert.equal(status, 200);
      assert.equal(headers['content-type'], type);
      assert.equal(headers['cache-control'], cache);
      assert.equal(headers['access-control-allow-origin'], origin);
      assert.equal(headers['content-length'], answer.headers['content-length']);
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
    }
  }
  const { headers } = await ask('/evidence/good');
  assert.equal(headers['content-disposition'], 'attachment; filename="evidence-1.json"');
});

test('they accept only GET and HEAD, and no query', async () => {
  for (const path of ['/log/checkpoint', '/log/vkey', '/log/tile/0/000', '/evidence/good']) {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const rejected = await ask(path, method);
      assertRejected(rejected, 405, 'METHOD_NOT_ALLOWED');
      assert.equal(rejected.headers.allow, 'GET, HEAD');
    }
    assertRejected(await ask(`${path}?x=1`), 400, 'VALIDATION_FAILED');
  }
});

test('an unknown path is an ordinary error, also for pages of other origins, and is not cached', async () => {
  asked.length = 0;
  const paths = [
    'tile/0/001',
    'tile/0/%30%30%30',
    'tile/../checkpoint',
    'tile/',
    'tile/0/000/',
    'tile//0/000',
  ];
  for (const path of [...paths, 'nothing', 'checkpoint/', 'checkpoint%2e', 'vkey.txt']) {
    const rejected = await ask(`/log/${path}`);
    assertRejected(rejected, 404, 'NOT_FOUND', /evidence log/);
    assert.equal(rejected.headers['access-control-allow-origin'], '*');
    assert.equal(rejected.headers['cache-control'], 'no-store');
  }
  assert.deepEqual(
    asked,
    paths.map((path) => path.slice('tile/'.length)),
  );
  for (const token of ['', 'bad', 'good/', 'good%20', '../log/checkpoint'])
    assertRejected(await ask(`/evidence/${token}`), 404, 'NOT_FOUND', /expired/);
});

test('before the first checkpoint the path is not found', async () => {
  isPublished = false;
  assertRejected(await ask('/log/checkpoint'), 404, 'NOT_FOUND');
  isPublished = true;
});

test('while too many read, the response says when to try again', async () => {
  const rejected = await ask('/log/tile/busy');
  assertRejected(rejected, 503, 'UNAVAILABLE');
  assert.equal(rejected.headers['retry-after'], '1');
  assert.equal(rejected.headers['access-control-allow-origin'], '*');
  assertRejected(await ask('/log/tile/broken'), 500, 'INTERNAL');
});

test('the log names the route of a link, and never its token', async () => {
  const before = listener.logLines.length;
  await ask('/evidence/good');
  await ask('/evidence/secret-of-a-link');
  await ask('/log/tile/0/000');
  const lines = listener.logLines.slice(before);
  assert.doesNotMatch(lines.join(''), /good|secret/);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).operation),
    ['/evidence', '/evidence', '/log/tile'],
  );
});
