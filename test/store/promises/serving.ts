import assert from 'node:assert/strict';
import { toFile, underKey } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** Which of several open stores serves calls. */
export function servingPromises({ test }: StoreTests): void {
  test('one open store serves; the others execute commands, and one of them may serve once it has closed', async (serving) => {
    const other = await serving.openAgain();
    await serving.beginServing();
    await serving.beginServing();
    await assert.rejects(other.beginServing());
    const { keyId } = await other.addPlatform('museum');
    assert.equal((await serving.setKeyStatus(keyId, 'SUSPENDED')).status, 'SUSPENDED');
    await (await serving.createAnother()).beginServing();
    await serving.close();
    await other.beginServing();
    await assert.rejects((await serving.openAgain()).beginServing());
  });

  test('keyFor returns the same key in every store on a folder, now and later, and no other key', async (one) => {
    const other = await one.openAgain();
    const key = one.keyFor('a');
    assert.equal(key.length, 32);
    assert.deepEqual(other.keyFor('a'), key);
    await one.close();
    await other.close();
    const later = await one.openAgain();
    assert.deepEqual(later.keyFor('a'), key);
    assert.notDeepEqual(later.keyFor('b'), key);
    const elsewhere = await one.createAnother();
    assert.notDeepEqual(elsewhere.keyFor('a'), key);
  });

  test('a store that may not serve does not change idempotency keys and nonces', async (serving) => {
    const other = await serving.openAgain();
    await serving.beginServing();
    const by = serving.gallery;
    const request = underKey(by.callerId, 'k', toFile(by));
    const { result } = await serving.done(request);
    assert.equal(await serving.spend(by.id, 'n'), true);
    await assert.rejects(other.beginServing());
    assert.deepEqual(await serving.done(request), { kind: 'DONE', result, isReplay: true });
    assert.equal(await serving.spend(by.id, 'n'), false);
  });
}
