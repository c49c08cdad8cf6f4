import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { addPlatform, newKey, newToken, openStore, refused, type StoreEngine } from './fixtures.ts';

/** The life of keys and tokens. */
export function keyAndTokenPromises(engine: StoreEngine): void {
  test('a key is suspended, resumed and revoked, and stays revoked', async (t) => {
    const store = await openStore(t, engine);
    const { keyId, apiKey } = await addPlatform(store, 'gallery');
    for (const status of ['SUSPENDED', 'SUSPENDED', 'ACTIVE', 'ACTIVE', 'SUSPENDED', 'REVOKED'] as const) {
      assert.equal((await store.callers.setKeyStatus(keyId, status)).status, status);
      assert.equal((await store.admission.findKey(apiKey))?.status, status);
    }
    for (const status of ['ACTIVE', 'SUSPENDED'] as const) {
      await refused(store.callers.setKeyStatus(keyId, status), 'VALIDATION_FAILED');
    }
    assert.equal((await store.admission.findKey(apiKey))?.status, 'REVOKED');
  });

  test('a status is that of one key, not of its caller', async (t) => {
    const store = await openStore(t, engine);
    const first = await addPlatform(store, 'gallery');
    const second = await store.callers.rotateKey(first.keyId, newKey(), 1_790_086_400);
    await store.callers.setKeyStatus(first.keyId, 'REVOKED');
    assert.equal((await store.admission.findKey(second.apiKey))?.status, 'ACTIVE');
  });

  test('what names no key or token is refused', async (t) => {
    const store = await openStore(t, engine);
    const { apiKey } = await addPlatform(store, 'gallery');
    for (const unknown of ['', 'key_unknown', apiKey]) {
      await refused(store.callers.setKeyStatus(unknown, 'SUSPENDED'), 'NOT_FOUND');
      await refused(store.callers.rotateKey(unknown, newKey(), 1_790_086_400), 'NOT_FOUND');
      await refused(store.callers.revokeToken(unknown, 1_790_000_000), 'NOT_FOUND');
    }
  });

  test('rotation adds a key to the same caller and ends the old one', async (t) => {
    const store = await openStore(t, engine);
    const old = await addPlatform(store, 'gallery');
    const fresh = newKey();
    const { callerId, caller, tier, status, expiresAtS } = await store.callers.rotateKey(
      old.keyId,
      fresh,
      1_790_086_400,
    );
    assert.deepEqual(
      { callerId, caller, tier, status, expiresAtS },
      { callerId: old.callerId, caller: 'gallery', tier: 'ENTERPRISE', status: 'ACTIVE', expiresAtS: null },
    );
    const ended = await store.admission.findKey(old.apiKey);
    assert.deepEqual({ ...ended }, { ...old, expiresAtS: 1_790_086_400 });
    assert.deepEqual(
      Buffer.from((await store.admission.findKey(fresh.apiKey))?.sealedSecret ?? []),
      Buffer.from(fresh.sealedSecret),
    );
  });

  test('a suspended key is rotated to a suspended one, and each is resumed by itself', async (t) => {
    const store = await openStore(t, engine);
    const old = await addPlatform(store, 'gallery');
    await store.callers.setKeyStatus(old.keyId, 'SUSPENDED');
    const fresh = await store.callers.rotateKey(old.keyId, newKey(), 1_790_086_400);
    assert.equal(fresh.status, 'SUSPENDED');
    const statusesNow = async () =>
      Promise.all([old, fresh].map(async ({ apiKey }) => (await store.admission.findKey(apiKey))?.status));
    assert.deepEqual(await statusesNow(), ['SUSPENDED', 'SUSPENDED']);
    await store.callers.setKeyStatus(fresh.keyId, 'ACTIVE');
    assert.deepEqual(await statusesNow(), ['SUSPENDED', 'ACTIVE']);
  });

  test('a further rotation of the same key never prolongs its life', async (t) => {
    const store = await openStore(t, engine);
    const { keyId, apiKey } = await addPlatform(store, 'gallery');
    for (const [asked, ends] of [
      [2_000, 2_000],
      [3_000, 2_000],
      [1_000, 1_000],
    ] as const) {
      await store.callers.rotateKey(keyId, newKey({ createdAtS: 500 }), asked);
      assert.equal((await store.admission.findKey(apiKey))?.expiresAtS, ends);
    }
  });

  test('a revoked key is not rotated, and nothing is issued', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await store.callers.setKeyStatus(keyId, 'REVOKED');
    const fresh = newKey();
    await refused(store.callers.rotateKey(keyId, fresh, 1_790_086_400), 'VALIDATION_FAILED');
    await store.durable();
    assert.equal(await store.admission.findKey(fresh.apiKey), undefined);
  });

  test('a key is rotated until it expires, and not after', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await store.callers.rotateKey(keyId, newKey({ createdAtS: 500 }), 1_000);
    await store.callers.rotateKey(keyId, newKey({ createdAtS: 999 }), 1_000);
    const late = newKey({ createdAtS: 1_000 });
    await refused(store.callers.rotateKey(keyId, late, 2_000), 'VALIDATION_FAILED');
    assert.equal(await store.admission.findKey(late.apiKey), undefined);
  });

  test('a key that was looked for in vain is found as soon as this or another open store has added it', async (t) => {
    const dataDir = temporaryFolder(t);
    const [server, command] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    for (const [place, store] of [server, command, server, command].entries()) {
      const key = newKey();
      assert.equal(await server.admission.findKey(key.apiKey), undefined);
      const platform = { name: `gallery ${place}`, tier: 'TRIAL', monthlyQuota: 1_000 } as const;
      await store.callers.addPlatform(platform, key);
      if (store === command) await store.durable();
      assert.equal((await server.admission.findKey(key.apiKey))?.keyId, key.keyId);
      await store.durable();
    }
  });

  test('a token is found by its hash until it is revoked', async (t) => {
    const store = await openStore(t, engine);
    const token = newToken({ operator: true });
    const stored = await store.callers.addToken('ledger', token);
    const { tokenId, operator, createdAtS } = token;
    const { caller, revokedAtS } = stored;
    assert.deepEqual(
      [stored.tokenId, stored.operator, stored.createdAtS, caller, revokedAtS],
      [tokenId, operator, createdAtS, 'ledger', null],
    );
    assert.equal((await store.admission.findToken(token.sha256))?.tokenId, tokenId);
    assert.equal(await store.admission.findToken(newToken().sha256), undefined);
    assert.equal((await store.callers.revokeToken(tokenId, 1_790_000_100)).revokedAtS, 1_790_000_100);
    assert.equal(await store.admission.findToken(token.sha256), undefined);
    const listed = await store.callers.listTokens({ from: undefined, size: 1 });
    assert.equal(listed.items[0]?.revokedAtS, 1_790_000_100);
  });

  test('a token that is revoked again stays revoked since the first time', async (t) => {
    const store = await openStore(t, engine);
    const { tokenId } = await store.callers.addToken('ledger', newToken());
    await store.callers.revokeToken(tokenId, 1_790_000_100);
    assert.equal((await store.callers.revokeToken(tokenId, 1_790_000_200)).revokedAtS, 1_790_000_100);
  });

  test('a change that another open store made durable is seen at once', async (t) => {
    const dataDir = temporaryFolder(t);
    const [server, command] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const key = await addPlatform(command, 'gallery');
    const token = newToken();
    await command.callers.addToken('ledger', token);
    await command.durable();
    assert.equal((await server.admission.findKey(key.apiKey))?.status, 'ACTIVE');
    assert.equal((await server.admission.findToken(token.sha256))?.caller, 'ledger');

    for (const status of ['SUSPENDED', 'ACTIVE', 'REVOKED'] as const) {
      await command.callers.setKeyStatus(key.keyId, status);
      await command.durable();
      assert.equal((await server.admission.findKey(key.apiKey))?.status, status);
    }
    await command.callers.revokeToken(token.tokenId, 1_790_000_100);
    await command.durable();
    assert.equal(await server.admission.findToken(token.sha256), undefined);
  });

  test('a change is seen at once by whoever read the key just before, in one turn and across turns', async (t) => {
    const store = await openStore(t, engine);
    const { keyId, apiKey } = await addPlatform(store, 'gallery');
    const statusNow = async () => (await store.admission.findKey(apiKey))?.status;
    for (const status of ['SUSPENDED', 'ACTIVE', 'SUSPENDED', 'ACTIVE'] as const) {
      await statusNow();
      const [, seen] = await Promise.all([store.callers.setKeyStatus(keyId, status), statusNow()]);
      assert.equal(seen, status);
      await store.durable();
      assert.equal(await statusNow(), status);
    }
  });

  test('a change of a platform is seen on each of its keys at once, here and in another open store', async (t) => {
    const dataDir = temporaryFolder(t);
    const [server, command] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const first = await addPlatform(server, 'gallery');
    const second = await server.callers.rotateKey(first.keyId, newKey(), 1_790_086_400);
    const other = await addPlatform(server, 'auction house');
    await server.durable();
    const seen = () =>
      Promise.all(
        [first, second, other].map(
          async ({ apiKey }) => (await server.admission.findKey(apiKey))?.platformStatus,
        ),
      );
    for (const store of [server, command]) {
      for (const status of ['SUSPENDED', 'SUSPENDED', 'ACTIVE'] as const) {
        await seen();
        assert.equal((await store.callers.setPlatformStatus('gallery', status)).status, status);
        await store.durable();
        assert.deepEqual(await seen(), [status, status, 'ACTIVE']);
      }
    }
  });

  test('a key that was asked for before it existed is found when it does', async (t) => {
    const dataDir = temporaryFolder(t);
    const [server, command] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    for (const issuer of [server, command]) {
      const key = newKey();
      assert.equal(await server.admission.findKey(key.apiKey), undefined);
      const name = issuer === server ? 'gallery' : 'auction house';
      await issuer.callers.addPlatform({ name, tier: 'TRIAL', monthlyQuota: 1_000 }, key);
      await issuer.durable();
      assert.equal((await server.admission.findKey(key.apiKey))?.caller, name);
    }
  });
}
