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
      {
        ...{ ...key, status: 'ACTIVE', expiresAtS: null },
        ...{ caller: 'gallery', tier: 'TRIAL', monthlyQuota: 1000, platformStatus: 'ACTIVE' },
      },
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
      tier: 'STANDARD',
      monthlyQuota: 10_000,
      status: 'ACTIVE',
    });
    assert.equal(await store.callers.findPlatform('Gallery'), undefined);
    assert.equal(await store.callers.findPlatform('ledger'), undefined);
  });

  test('a platform is suspended and resumed as a whole, and its keys keep what they were', async (t) => {
    const store = await openStore(t, engine);
    const suspended = await addPlatform(store, 'gallery');
    const active = await store.callers.rotateKey(suspended.keyId, newKey(), 1_790_086_400);
    await store.callers.setKeyStatus(suspended.keyId, 'SUSPENDED');
    for (const status of ['SUSPENDED', 'ACTIVE'] as const) {
      await store.callers.setPlatformStatus('gallery', status);
      assert.equal((await store.callers.findPlatform('gallery'))?.status, status);
      const { items } = await store.callers.listKeys({ from: undefined, size: 10 });
      assert.deepEqual(
        items.map((key) => [key.keyId, key.status, key.platformStatus]),
        [
          [suspended.keyId, 'SUSPENDED', status],
          [active.keyId, 'ACTIVE', status],
        ],
      );
    }
  });

  test('a key that a suspended platform is issued is of a suspended platform', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await store.callers.setPlatformStatus('gallery', 'SUSPENDED');
    const { status, platformStatus } = await store.callers.rotateKey(keyId, newKey(), 1_790_086_400);
    assert.deepEqual([status, platformStatus], ['ACTIVE', 'SUSPENDED']);
  });

  test('what names no platform is neither suspended nor resumed', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await store.callers.addToken('ledger', newToken());
    for (const name of ['', 'Gallery', 'ledger', keyId]) {
      for (const status of ['SUSPENDED', 'ACTIVE'] as const) {
        await refused(store.callers.setPlatformStatus(name, status), 'NOT_FOUND');
      }
    }
  });

  test('platforms are listed oldest first, page by page, without internal callers', async (t) => {
    const store = await openStore(t, engine);
    for (const name of ['c', 'b', 'a']) {
      await addPlatform(store, name);
      await store.callers.addToken(`service ${name}`, newToken());
    }
    await store.callers.setPlatformStatus('b', 'SUSPENDED');
    for (const size of [1, 3, 4]) {
      const platforms = await allPages((page) => store.callers.listPlatforms(page), size);
      assert.deepEqual(
        platforms.flat().map(({ caller, status }) => [caller, status]),
        [
          ['c', 'ACTIVE'],
          ['b', 'SUSPENDED'],
          ['a', 'ACTIVE'],
        ],
      );
      assert.equal(platforms.length, Math.ceil(3 / size));
    }
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
