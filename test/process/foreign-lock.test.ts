import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { serveIssued } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { artwork } from '../support/samples.ts';
import { newNonce, type SignedRequest, send } from '../support/signed-request.ts';
import { typedCall } from '../support/typed-json.ts';

const target = '/api/v1/filing';
/** The author of filings while the lock is free. */
const between = 'between';

/** A filing; a retry has the same bytes. */
function aFiling(author: string): SignedRequest & { author: string } {
  const timestamp = String(Math.floor(Date.now() / 1000));
  return { author, target, body: JSON.stringify({ ...artwork, author }), timestamp, nonce: newNonce() };
}

/** A service with one filing, and the write lock of its database. */
async function serving(t: TestContext) {
  const service = await serveIssued(t);
  const { dataDir, platform, token } = service;
  const file = (filing: SignedRequest) => send(service.publicUrl, platform, filing);
  const { json } = await file(aFiling('before'));
  const client = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => client.close());
  return {
    ...{ service, file, filingNo: json.filingNo as string },
    get: (filingNo: string) => typedCall(service.internalUrl, token, 'FilingService/GetFiling', { filingNo }),
    lock: () => client.exec('BEGIN IMMEDIATE'),
    unlock: () => client.exec('ROLLBACK'),
    authors: () =>
      client.prepare('SELECT author FROM filing WHERE author <> ? ORDER BY id').pluck().all(between),
  };
}

/** Requests openapi.yaml several times over one connection. */
async function readOpenApi(publicUrl: string, times: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let time = 0; time < times; time += 1) {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request(`${publicUrl}/openapi.yaml`, { agent }, (incoming) => text(incoming).then(resolve, reject))
      .on('error', reject)
      .end();
    assert.match(await promise, /^openapi: /);
  }
  agent.destroy();
}

test('another process that holds the write lock blocks only writes', {
  timeout: 300_000,
}, async (t) => {
  const { service, file, get, lock, unlock, authors, filingNo } = await serving(t);
  lock();

  await t.test('openapi.yaml is served while a write waits', async () => {
    // A busy machine may be slower than the wait of the write.
    const attemptsMax = 40;
    const requests = 20;
    for (let attempt = 1; ; attempt += 1) {
      assert.ok(attempt <= attemptsMax, `never ${requests} responses while a write waited`);
      let isRefused = false;
      const refused = file(aFiling('refused')).then((answer) => {
        isRefused = true;
        assertRejected(answer, 503, 'UNAVAILABLE', /nothing was stored/);
      });
      await readOpenApi(service.publicUrl, requests);
      const isInTime = !isRefused;
      await refused;
      if (isInTime) return;
      // After a wait in vain, the next write does not wait until the lock was free.
      unlock();
      assert.equal((await file(aFiling(between))).status, 200);
      lock();
    }
  });

  await t.test('internal systems can read', async () => {
    assert.equal((await get(filingNo)).json.filing.author, 'before');
    const [{ json }, refused] = await Promise.all([get(filingNo), file(aFiling('beside'))]);
    assert.equal(json.filing.author, 'before');
    assertRejected(refused, 503, 'UNAVAILABLE');
  });

  await t.test('a rejected write used up nothing: its retry succeeds when the lock is free', async () => {
    const filing = aFiling('again');
    const refused = await file(filing);
    assertRejected(refused, 503, 'UNAVAILABLE', /nothing was stored/);
    assert.equal(refused.headers['retry-after'], '1');
    unlock();
    assert.deepEqual(authors(), ['before']);
    assert.equal((await file(filing)).status, 200);
    assertRejected(await file(filing), 401, 'NONCE_REUSED');
    assert.deepEqual(authors(), ['before', 'again']);
  });

  assert.equal(await service.stop(), 0, service.stderr());
});
