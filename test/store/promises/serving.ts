import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { addPlatform, openStore, type StoreEngine } from './fixtures.ts';

const claim = { callerId: 1, fingerprint: new Uint8Array(32), nowS: 1_790_000_000 };

/** The one process that takes calls. */
export function servingPromises(engine: StoreEngine): void {
  test('one open store at a time takes calls; the others read and govern', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await serving.durable();
    await assert.rejects(other.beginServing());
    const { keyId } = await addPlatform(other, 'gallery');
    await other.durable();
    assert.equal((await serving.callers.setKeyStatus(keyId, 'SUSPENDED')).status, 'SUSPENDED');
  });

  test('whoever could not take calls may when the one that did has closed', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await assert.rejects(other.beginServing());
    await serving.close();
    await other.beginServing();
    await other.durable();
    await assert.rejects((await openStore(t, engine, dataDir)).beginServing());
  });

  test('a key for a purpose is the same for all that open the store, then and later, and no other one', async (t) => {
    const dataDir = temporaryFolder(t);
    const [one, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const key = one.keyFor('a');
    assert.equal(key.length, 32);
    assert.deepEqual(other.keyFor('a'), key);
    await one.close();
    await other.close();
    const later = await openStore(t, engine, dataDir);
    assert.deepEqual(later.keyFor('a'), key);
    assert.notDeepEqual(later.keyFor('b'), key);
    assert.notDeepEqual((await openStore(t, engine)).keyFor('a'), key);
  });

  test('who begins again goes on taking calls alone', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await serving.beginServing();
    await assert.rejects(other.beginServing());
  });

  test('who is refused forgets no call that is under way in the other', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await serving.idempotency.claim({ ...claim, key: 'k' });
    await serving.durable();
    await assert.rejects(other.beginServing());
    await other.durable();
    assert.deepEqual(await serving.idempotency.claim({ ...claim, key: 'k' }), { kind: 'CLAIMED' });
    const another = { ...claim, key: 'k', fingerprint: new Uint8Array(32).fill(1) };
    assert.deepEqual(await serving.idempotency.claim(another), { kind: 'REUSED' });
  });

  test('stores on different folders are served at the same time', async (t) => {
    const folders = [temporaryFolder(t), temporaryFolder(t)];
    for (const dataDir of folders) await (await openStore(t, engine, dataDir)).beginServing();
    for (const dataDir of folders) {
      await assert.rejects((await openStore(t, engine, dataDir)).beginServing(), dataDir);
    }
  });
}
