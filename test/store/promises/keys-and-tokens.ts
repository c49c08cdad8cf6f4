import assert from 'node:assert/strict';
import { statusAt } from '../../../src/domain/caller.ts';
import { type Scope, scopes } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { firstPage, newKey, newToken, nowS, refused } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const byPlace = (one: Scope, other: Scope) => scopes.indexOf(one) - scopes.indexOf(other);

/** The life of keys and tokens. */
export function keyAndTokenPromises({ test }: StoreTests): void {
  test('a key is suspended, resumed and revoked, and stays revoked', async (store) => {
    const { keyId, apiKey } = store.gallery;
    for (const status of ['SUSPENDED', 'SUSPENDED', 'ACTIVE', 'ACTIVE', 'SUSPENDED', 'REVOKED'] as const) {
      assert.equal((await store.setKeyStatus(keyId, status)).status, status);
      assert.equal(store.findKey(apiKey)?.status, status);
    }
    for (const status of ['ACTIVE', 'SUSPENDED'] as const) {
      await refused(store.setKeyStatus(keyId, status), 'VALIDATION_FAILED');
    }
    assert.equal(store.findKey(apiKey)?.status, 'REVOKED');
  });

  test('a seal is replaced if it is as given, and found at once', async (store) => {
    const one = store.gallery;
    const other = await store.addPlatform('museum');
    const seals = [
      { keyId: one.keyId, from: one.sealedSecret, to: Buffer.from('again') },
      { keyId: other.keyId, from: one.sealedSecret, to: Buffer.from('of another key') },
      { keyId: 'key_unknown', from: one.sealedSecret, to: Buffer.from('of none') },
    ];
    assert.equal(await store.perform({ kind: 'ReplaceSeals', by: tester, masterKey: 'main', seals }), 1);
    assert.equal(
      await store.perform({ kind: 'ReplaceSeals', by: tester, masterKey: 'main', seals }),
      0,
      'it is not as given any more',
    );
    assert.deepEqual(Buffer.from(store.findKey(one.apiKey)?.sealedSecret ?? []), Buffer.from('again'));
    const found = await store.perform({ kind: 'FindKey', keyId: one.keyId });
    assert.deepEqual({ ...found }, { ...store.findKey(one.apiKey) });
    const kept = await store.perform({ kind: 'FindKey', keyId: other.keyId });
    assert.deepEqual(Buffer.from(kept.sealedSecret), Buffer.from(other.sealedSecret));
    await refused(store.perform({ kind: 'FindKey', keyId: 'key_unknown' }), 'NOT_FOUND');
  });

  test('an unknown key or token is rejected', async (store) => {
    for (const unknown of ['', 'key_unknown']) {
      await refused(store.setKeyStatus(unknown, 'SUSPENDED'), 'NOT_FOUND');
      await refused(store.rotateKey(unknown), 'NOT_FOUND');
      await refused(
        store.perform({ kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_000 }, tokenId: unknown }),
        'NOT_FOUND',
      );
    }
  });

  test('a key is named by its id or by the API key', async (store) => {
    const { keyId, apiKey } = store.gallery;
    assert.equal((await store.setKeyStatus(apiKey, 'SUSPENDED')).keyId, keyId);
    assert.equal((await store.setKeyStatus(keyId, 'ACTIVE')).apiKey, apiKey);
  });

  test('rotation adds a key to the same caller and ends the old one', async (store) => {
    const fresh = newKey();
    const { callerId } = store.gallery;
    assert.partialDeepStrictEqual(await store.rotateKey(store.gallery.keyId, fresh), {
      ...{ callerId, caller: 'gallery', tier: 'ENTERPRISE', status: 'ACTIVE', expiresAtS: null },
    });
    const ended = store.findKey(store.gallery.apiKey);
    assert.deepEqual({ ...ended }, { ...store.gallery, expiresAtS: 1_790_086_400 });
    assert.deepEqual(
      Buffer.from(store.findKey(fresh.apiKey)?.sealedSecret ?? []),
      Buffer.from(fresh.sealedSecret),
    );
  });

  test('a key that is rotated without an overlap ends at once, also by a clock that is behind', async (store) => {
    const { keyId, apiKey } = store.gallery;
    await store.rotateKey(keyId, newKey({ createdAtS: nowS }), nowS);
    const old = store.findKey(apiKey) ?? assert.fail();
    assert.deepEqual([statusAt(old, nowS - 3), old.expiresAtS], ['REVOKED', nowS]);
    await refused(store.rotateKey(keyId), 'VALIDATION_FAILED');
  });

  test('the key that replaces a suspended one is suspended', async (store) => {
    await store.setKeyStatus(store.gallery.keyId, 'SUSPENDED');
    assert.equal((await store.rotateKey(store.gallery.keyId)).status, 'SUSPENDED');
  });

  test('a token is found by its hash until it is revoked, and keeps the time of the first revocation', async (store) => {
    const token = newToken({ scopes, expiresAtS: 1_790_000_050 });
    const stored = await store.addService('ledger', token);
    const { tokenId, createdAtS, expiresAtS } = token;
    const { caller, revokedAtS, platform } = stored;
    assert.deepEqual(
      [stored.tokenId, stored.scopes, stored.createdAtS, stored.expiresAtS, caller, revokedAtS, platform],
      [tokenId, scopes, createdAtS, expiresAtS, 'ledger', null, null],
    );
    assert.equal(store.findToken(token.sha256)?.tokenId, tokenId);
    assert.equal(store.findToken(newToken().sha256), undefined);
    for (const atS of [1_790_000_100, 1_790_000_200]) {
      const revoked = await store.perform({ kind: 'RevokeToken', by: { ...tester, atS }, tokenId });
      assert.equal(revoked.revokedAtS, 1_790_000_100);
    }
    assert.equal(store.findToken(token.sha256), undefined);
    const listed = await store.perform({ kind: 'ListTokens', page: firstPage(1) });
    assert.equal(listed.items[0]?.revokedAtS, 1_790_000_100);
  });

  test('a token has any scopes, each once and in order', async (store) => {
    const chosen: readonly (readonly Scope[])[] = [
      [],
      ...scopes.map((scope) => [scope]),
      ['operate', 'read'],
    ];
    for (const wanted of chosen) {
      const token = newToken({ scopes: wanted });
      await store.addService('ledger', token);
      assert.deepEqual(store.findToken(token.sha256)?.scopes, wanted.toReversed().toSorted(byPlace));
    }
  });

  test('a token for a platform has the platform and its status', async (store) => {
    const { callerId } = store.gallery;
    const token = newToken({ platform: 'gallery' });
    const stored = await store.addService('ledger', token);
    assert.deepEqual(
      [stored.caller, stored.platform],
      ['ledger', { callerId, caller: 'gallery', status: 'ACTIVE', filingCap: null }],
    );
    assert.notEqual(stored.callerId, callerId);
    await store.setPlatformStatus('gallery', 'SUSPENDED');
    assert.equal(store.findToken(token.sha256)?.platform?.status, 'SUSPENDED');
    for (const platform of ['nobody', 'ledger', '']) {
      const wrong = newToken({ platform });
      await refused(store.addService('ledger', wrong), 'VALIDATION_FAILED');
      assert.equal(store.findToken(wrong.sha256), undefined);
    }
  });
}
