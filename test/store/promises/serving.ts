import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { addPlatform, done, openStore, type StoreEngine, spend, toFile, underKey } from './fixtures.ts';

/** The one process that takes calls. */
export function servingPromises(engine: StoreEngine): void {
  test('one open store at a time takes calls; the others read and govern', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await assert.rejects(other.beginServing());
    const { keyId } = await addPlatform(other, 'gallery');
    assert.equal(
      (await perform(serving, { kind: 'SetKeyStatus', by: tester, keyId, status: 'SUSPENDED' })).status,
      'SUSPENDED',
    );
  });

  test('whoever could not take calls may when the one that did has closed', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    await assert.rejects(other.beginServing());
    await serving.close();
    await other.beginServing();
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

  test('who is refused changes nothing for the other: keys and nonces stay what they are', async (t) => {
    const dataDir = temporaryFolder(t);
    const [serving, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await serving.beginServing();
    const by = await addPlatform(serving, 'gallery');
    const unit = underKey(by.callerId, 'k', toFile(by));
    const { result } = await done(serving, unit);
    assert.equal(await spend(serving, by.id, 'n'), true);
    await assert.rejects(other.beginServing());
    assert.deepEqual(await done(serving, unit), { kind: 'DONE', result, isReplay: true });
    assert.equal(await spend(serving, by.id, 'n'), false);
  });

  test('stores on different folders are served at the same time', async (t) => {
    const folders = [temporaryFolder(t), temporaryFolder(t)];
    for (const dataDir of folders) await (await openStore(t, engine, dataDir)).beginServing();
    for (const dataDir of folders) {
      await assert.rejects((await openStore(t, engine, dataDir)).beginServing(), dataDir);
    }
  });
}
