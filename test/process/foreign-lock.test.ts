import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { serveIssued } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { artwork } from '../support/samples.ts';
import { newNonce, type SignedRequest, send } from '../support/signed-request.ts';
import { typedCall } from '../support/typed-json.ts';

const target = '/api/v1/filing';

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
    authors: () => client.prepare('SELECT author FROM filing ORDER BY id').pluck().all(),
  };
}

test('another process that holds the write lock blocks only writes', {
  timeout: 300_000,
}, async (t) => {
  const { service, file, get, lock, unlock, authors, filingNo } = await serving(t);
  lock();

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
