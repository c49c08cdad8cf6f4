import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addPlatform, allPages, newKey, newToken, openStore, refused, type StoreEngine } from './fixtures.ts';

/** Platforms and internal callers. */
export function callerPromises(engine: StoreEngine): void {
  test('a store is empty until it has a caller of either kind', async (t) => {
    const store = await openStore(t, engine);
    assert.equal(await store.callers.isEmpty(), true);
    await store.callers.addToken('ledger', newToken());
    assert.equal(await store.callers.isEmpty(), false);
  });

  test('a platform comes with its first key, whole and ACTIVE', async (t) => {
    const store = await openStore(t, engine);
    const key = newKey();
    const stored = await store.callers.addPlatform(
      { name: 'gallery', tier: 'TRIAL', monthlyQuota: 1000 },
      key,
    );
    const { id, callerId, ...rest } = stored;
    assert.ok(Number.isInteger(id) && Number.isInteger(callerId));
    assert.deepEqual(
      { ...rest, sealedSecret: Buffer.from(rest.sealedSecret) },
      { ...key, status: 'ACTIVE', expiresAtS: null, caller: 'gallery', tier: 'TRIAL', monthlyQuota: 1000 },
    );
    assert.deepEqual(await store.admission.findKey(key.apiKey), stored);
    assert.equal(await store.admission.findKey(key.keyId), undefined);
  });

  test('an unlimited quota is null', async (t) => {
    const store = await openStore(t, engine);
    assert.equal((await addPlatform(store, 'gallery')).monthlyQuota, null);
    assert.equal((await store.callers.findPlatform('gallery'))?.monthlyQuota, null);
  });

  test('a name is given once, to a platform or to an internal caller', async (t) => {
    const store = await openStore(t, engine);
    await addPlatform(store, 'gallery');
    await store.callers.addToken('ledger', newToken());
    await refused(addPlatform(store, 'gallery'), 'VALIDATION_FAILED');
    await refused(addPlatform(store, 'ledger'), 'VALIDATION_FAILED');
    await refused(store.callers.addToken('gallery', newToken()), 'VALIDATION_FAILED');
    await store.durable();
    assert.equal((await store.callers.listKeys({ from: undefined, size: 10 })).items.length, 1);
    assert.equal((await store.callers.listTokens({ from: undefined, size: 10 })).items.length, 1);
  });

  test('of platforms registered at once under one name, one is', async (t) => {
    const store = await openStore(t, engine);
    const settled = await Promise.allSettled([1, 2, 3].map(() => addPlatform(store, 'gallery')));
    assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1);
  });

  test('tokens of one name are of one caller', async (t) => {
    const store = await openStore(t, engine);
    const first = await store.callers.addToken('ledger', newToken());
    const second = await store.callers.addToken('ledger', newToken({ operator: true }));
    assert.equal(second.callerId, first.callerId);
    assert.deepEqual([first.operator, second.operator], [false, true]);
    const other = await store.callers.addToken('insurance', newToken());
    assert.notEqual(other.callerId, first.callerId);
  });

  test('platforms are found by name, internal callers are not', async (t) => {
    const store = await openStore(t, engine);
    const { callerId } = await store.callers.addPlatform(
      { name: 'gallery', tier: 'STANDARD', monthlyQuota: 10_000 },
      newKey(),
    );
    await store.callers.addToken('ledger', newToken());
    assert.deepEqual(await store.callers.findPlatform('gallery'), {
      callerId,
      caller: 'gallery',
      monthlyQuota: 10_000,
    });
    assert.equal(await store.callers.findPlatform('Gallery'), undefined);
    assert.equal(await store.callers.findPlatform('ledger'), undefined);
  });

  test('keys and tokens are listed oldest first, page by page, each once', async (t) => {
    const store = await openStore(t, engine);
    const keyIds: string[] = [];
    const tokenIds: string[] = [];
    for (const name of ['e', 'd', 'c', 'b', 'a']) {
      keyIds.push((await addPlatform(store, name)).keyId);
      tokenIds.push((await store.callers.addToken(`service ${name}`, newToken())).tokenId);
    }
    for (const size of [1, 2, 5, 6]) {
      const keys = await allPages((page) => store.callers.listKeys(page), size);
      assert.deepEqual(
        keys.flat().map(({ keyId }) => keyId),
        keyIds,
      );
      const tokens = await allPages((page) => store.callers.listTokens(page), size);
      assert.deepEqual(
        tokens.flat().map(({ tokenId }) => tokenId),
        tokenIds,
      );
      assert.deepEqual([keys.length, tokens.length], [Math.ceil(5 / size), Math.ceil(5 / size)]);
    }
  });
}
