import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  done,
  openPair,
  openStore,
  type StoreEngine,
  sandbox,
  setKeyStatus,
  spend,
  toFile,
  underKey,
} from './fixtures.ts';

/** Which of several open stores serves calls. */
export function servingPromises(engine: StoreEngine): void {
  test('one open store serves; the others execute commands, and one of them may serve once it has closed', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await serving.beginServing();
    await assert.rejects(other.beginServing());
    const { keyId } = await addPlatform(other, 'gallery');
    assert.equal((await setKeyStatus(serving, keyId, 'SUSPENDED')).status, 'SUSPENDED');
    await (await openStore(t, engine)).beginServing();
    await serving.close();
    await other.beginServing();
    await assert.rejects((await openStore(t, engine, dataDir)).beginServing());
  });

  test('keyFor returns the same key in every store on a folder, now and later, and no other key', async (t) => {
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
    const elsewhere = await engine.open({ dataDir: temporaryFolder(t), ...sandbox, opening: 'NEW' });
    t.after(() => elsewhere.close());
    assert.notDeepEqual(elsewhere.keyFor('a'), key);
  });

  test('a store that may not serve does not change idempotency keys and nonces', async (t) => {
    const [serving, other] = await openPair(t, engine);
    await serving.beginServing();
    const by = await addPlatform(serving, 'gallery');
    const request = underKey(by.callerId, 'k', toFile(by));
    const { result } = await done(serving, request);
    assert.equal(await spend(serving, by.id, 'n'), true);
    await assert.rejects(other.beginServing());
    assert.deepEqual(await done(serving, request), { kind: 'DONE', result, isReplay: true });
    assert.equal(await spend(serving, by.id, 'n'), false);
  });
}
