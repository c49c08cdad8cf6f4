import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { onBadDisk } from '../../support/bad-disk.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertDocumented, openApi } from '../../support/openapi.ts';
import { rawAnswer, rawExchange, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';

const clock = createManualClock(Date.parse('2026-11-21T09:15:00+08:00'));
const [service, disk] = await onBadDisk({ mock }, () =>
  startService(fileScope, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } }),
);
const package_ = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', '..', 'package.json'), 'utf8'),
);
const routes = ['/openapi.yaml', '/healthz', '/readyz', '/version'];
const documented = routes.filter((path) => path in openApi.paths);

const ask = (path: string, method = 'GET'): Promise<RestAnswer> =>
  rawAnswer(service.publicUrl, rawRequest(method, path, { Host: 'x' }));

/** The names of the parts that fail according to /readyz. */
async function failing(): Promise<string[]> {
  const answer = await ask('/readyz');
  assertDocumented('GET', '/readyz', answer);
  if (answer.status === 200) return [];
  assertRejected(answer, 503, 'UNAVAILABLE');
  assert.equal(answer.headers['retry-after'], '1');
  return /^Not ready: (.+)\.$/.exec(answer.json.message)?.[1]?.split(', ') ?? [];
}

test('health and version need no signature, and are documented', async () => {
  assert.deepEqual(documented, routes.slice(1));
  for (const [path, expected] of [
    ['/healthz', { status: 'ok' }],
    ['/readyz', { status: 'ok' }],
    ['/version', { version: package_.version, commit: '', startedAt: '2026-11-21T09:15:00+08:00' }],
  ] as const) {
    const answer = await ask(path);
    assert.deepEqual([answer.status, answer.json], [200, expected]);
    assertDocumented('GET', path, answer);
  }
});

for (const path of routes) {
  test(`${path} has a request id and no-store, and no body for HEAD`, async () => {
    const answer = await ask(path);
    const { answers } = await rawExchange(service.publicUrl, rawRequest('HEAD', path, { Host: 'x' }), {
      head: true,
    });
    for (const { status, headers } of [answer, ...answers]) {
      assert.equal(status, 200);
      assert.equal(headers['cache-control'], 'no-store');
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/);
      assert.equal(headers['content-length'], String(Buffer.byteLength(answer.text)));
    }
  });

  test(`${path} takes no other method and no query`, async () => {
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      const rejected = await ask(path, method);
      assertRejected(rejected, 405, 'METHOD_NOT_ALLOWED');
      assert.equal(rejected.headers.allow, 'GET, HEAD');
    }
    assertRejected(await ask(`${path}?verbose=1`), 400, 'VALIDATION_FAILED');
    assertRejected(await ask(`${path}/`), 401, 'AUTH_HEADER_MISSING');
  });
}

/** Lets writes succeed until the store counts as ready again. */
async function healDisk(): Promise<void> {
  disk.heal();
  clock.advance(1_000);
  await failing();
  clock.advance(5_000);
}

test('the response names what is not ready, and the log has the details', async () => {
  const before = service.logLines.length;
  disk.failCommits();
  clock.advance(1_000);
  assert.deepEqual(await failing(), ['store']);
  assert.equal((await ask('/healthz')).status, 200);
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
