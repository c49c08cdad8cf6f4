import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Scope, scopes } from '../../../src/domain/token.ts';
import { perform } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  addPlatform,
  firstPage,
  newKey,
  newToken,
  openStore,
  refused,
  type StoreEngine,
} from './fixtures.ts';

const byPlace = (one: Scope, other: Scope) => scopes.indexOf(one) - scopes.indexOf(other);

/** The life of keys and tokens. */
export function keyAndTokenPromises(engine: StoreEngine): void {
  test('a key is suspended, resumed and revoked, and stays revoked', async (t) => {
    const store = await openStore(t, engine);
    const { keyId, apiKey } = await addPlatform(store, 'gallery');
    for (const status of ['SUSPENDED', 'SUSPENDED', 'ACTIVE', 'ACTIVE', 'SUSPENDED', 'REVOKED'] as const) {
      assert.equal(
        (await perform(store, { kind: 'SetKeyStatus', by: tester, keyId, status })).status,
        status,
      );
      assert.equal(store.findKey(apiKey)?.status, status);
    }
    for (const status of ['ACTIVE', 'SUSPENDED'] as const) {
      await refused(perform(store, { kind: 'SetKeyStatus', by: tester, keyId, status }), 'VALIDATION_FAILED');
    }
    assert.equal(store.findKey(apiKey)?.status, 'REVOKED');
  });

  test('a seal is replaced where it is as given, and found at once', async (t) => {
    const store = await openStore(t, engine);
    const [one, other] = [await addPlatform(store, 'gallery'), await addPlatform(store, 'museum')];
    const seals = [
      { keyId: one.keyId, from: one.sealedSecret, to: Buffer.from('anew') },
      { keyId: other.keyId, from: one.sealedSecret, to: Buffer.from('of another key') },
      { keyId: 'key_unknown', from: one.sealedSecret, to: Buffer.from('of none') },
    ];
    assert.equal(await perform(store, { kind: 'ReplaceSeals', by: tester, masterKey: 'main', seals }), 1);
    assert.equal(
      await perform(store, { kind: 'ReplaceSeals', by: tester, masterKey: 'main', seals }),
      0,
      'it is not as given any more',
    );
    assert.deepEqual(Buffer.from(store.findKey(one.apiKey)?.sealedSecret ?? []), Buffer.from('anew'));
    const found = await perform(store, { kind: 'FindKey', keyId: one.keyId });
    assert.deepEqual({ ...found }, { ...store.findKey(one.apiKey) });
    const kept = await perform(store, { kind: 'FindKey', keyId: other.keyId });
    assert.deepEqual(Buffer.from(kept.sealedSecret), Buffer.from(other.sealedSecret));
    await refused(perform(store, { kind: 'FindKey', keyId: 'key_unknown' }), 'NOT_FOUND');
  });

  test('a status is that of one key, not of its caller', async (t) => {
    const store = await openStore(t, engine);
    const first = await addPlatform(store, 'gallery');
    const second = await perform(store, {
      kind: 'RotateKey',
      by: tester,
      keyId: first.keyId,
      key: newKey(),
      endsAtS: 1_790_086_400,
    });
    await perform(store, { kind: 'SetKeyStatus', by: tester, keyId: first.keyId, status: 'REVOKED' });
    assert.equal(store.findKey(second.apiKey)?.status, 'ACTIVE');
  });

  test('an unknown key or token is rejected', async (t) => {
    const store = await openStore(t, engine);
    const { apiKey } = await addPlatform(store, 'gallery');
    for (const unknown of ['', 'key_unknown', apiKey]) {
      await refused(
        perform(store, { kind: 'SetKeyStatus', by: tester, keyId: unknown, status: 'SUSPENDED' }),
        'NOT_FOUND',
      );
      await refused(
        perform(store, {
          kind: 'RotateKey',
          by: tester,
          keyId: unknown,
          key: newKey(),
          endsAtS: 1_790_086_400,
        }),
        'NOT_FOUND',
      );
      await refused(
        perform(store, { kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_000 }, tokenId: unknown }),
        'NOT_FOUND',
      );
    }
  });

  test('rotation adds a key to the same caller and ends the old one', async (t) => {
    const store = await openStore(t, engine);
    const old = await addPlatform(store, 'gallery');
    const fresh = newKey();
    const { callerId, caller, tier, status, expiresAtS } = await perform(store, {
      kind: 'RotateKey',
      by: tester,
      keyId: old.keyId,
      key: fresh,
      endsAtS: 1_790_086_400,
    });
    assert.deepEqual(
      { callerId, caller, tier, status, expiresAtS },
      { callerId: old.callerId, caller: 'gallery', tier: 'ENTERPRISE', status: 'ACTIVE', expiresAtS: null },
    );
    const ended = store.findKey(old.apiKey);
    assert.deepEqual({ ...ended }, { ...old, expiresAtS: 1_790_086_400 });
    assert.deepEqual(
      Buffer.from(store.findKey(fresh.apiKey)?.sealedSecret ?? []),
      Buffer.from(fresh.sealedSecret),
    );
  });

  test('a suspended key is rotated to a suspended one, and each is resumed by itself', async (t) => {
    const store = await openStore(t, engine);
    const old = await addPlatform(store, 'gallery');
    await perform(store, { kind: 'SetKeyStatus', by: tester, keyId: old.keyId, status: 'SUSPENDED' });
    const fresh = await perform(store, {
      kind: 'RotateKey',
      by: tester,
      keyId: old.keyId,
      key: newKey(),
      endsAtS: 1_790_086_400,
    });
    assert.equal(fresh.status, 'SUSPENDED');
    const statusesNow = async () =>
      Promise.all([old, fresh].map(async ({ apiKey }) => store.findKey(apiKey)?.status));
    assert.deepEqual(await statusesNow(), ['SUSPENDED', 'SUSPENDED']);
    await perform(store, { kind: 'SetKeyStatus', by: tester, keyId: fresh.keyId, status: 'ACTIVE' });
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
      await perform(store, {
        kind: 'RotateKey',
        by: tester,
        keyId,
        key: newKey({ createdAtS: 500 }),
        endsAtS: asked,
      });
      assert.equal(store.findKey(apiKey)?.expiresAtS, ends);
    }
  });

  test('a revoked key is not rotated, and nothing is issued', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await perform(store, { kind: 'SetKeyStatus', by: tester, keyId, status: 'REVOKED' });
    const fresh = newKey();
    await refused(
      perform(store, { kind: 'RotateKey', by: tester, keyId, key: fresh, endsAtS: 1_790_086_400 }),
      'VALIDATION_FAILED',
    );
    assert.equal(store.findKey(fresh.apiKey), undefined);
  });

  test('a key is rotated until it expires, and not after', async (t) => {
    const store = await openStore(t, engine);
    const { keyId } = await addPlatform(store, 'gallery');
    await perform(store, {
      kind: 'RotateKey',
      by: tester,
      keyId,
      key: newKey({ createdAtS: 500 }),
      endsAtS: 1_000,
    });
    await perform(store, {
      kind: 'RotateKey',
      by: tester,
      keyId,
      key: newKey({ createdAtS: 999 }),
      endsAtS: 1_000,
    });
    const late = newKey({ createdAtS: 1_000 });
    await refused(
      perform(store, { kind: 'RotateKey', by: tester, keyId, key: late, endsAtS: 2_000 }),
      'VALIDATION_FAILED',
    );
    assert.equal(store.findKey(late.apiKey), undefined);
  });

  test('a token is found by its hash until it is revoked', async (t) => {
    const store = await openStore(t, engine);
    const token = newToken({ scopes, expiresAtS: 1_790_000_050 });
    const stored = await perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token });
    const { tokenId, createdAtS, expiresAtS } = token;
    const { caller, revokedAtS, platform } = stored;
    assert.deepEqual(
      [stored.tokenId, stored.scopes, stored.createdAtS, stored.expiresAtS, caller, revokedAtS, platform],
      [tokenId, scopes, createdAtS, expiresAtS, 'ledger', null, null],
    );
    assert.equal(store.findToken(token.sha256)?.tokenId, tokenId);
    assert.equal(store.findToken(newToken().sha256), undefined);
    assert.equal(
      (await perform(store, { kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_100 }, tokenId }))
        .revokedAtS,
      1_790_000_100,
    );
    assert.equal(store.findToken(token.sha256), undefined);
    const listed = await perform(store, { kind: 'ListTokens', page: firstPage(1) });
    assert.equal(listed.items[0]?.revokedAtS, 1_790_000_100);
  });

  test('a token may be for any scopes or none, each once and in their order', async (t) => {
    const store = await openStore(t, engine);
    const chosen: readonly (readonly Scope[])[] = [
      [],
      ...scopes.map((scope) => [scope]),
      ['operate', 'read'],
    ];
    for (const wanted of chosen) {
      const token = newToken({ scopes: wanted });
      await perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token });
      assert.deepEqual(store.findToken(token.sha256)?.scopes, wanted.toReversed().toSorted(byPlace));
    }
  });

  test('a token for a platform has the platform and its status', async (t) => {
    const store = await openStore(t, engine);
    const { callerId } = await addPlatform(store, 'gallery');
    const token = newToken({ platform: 'gallery' });
    const stored = await perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token });
    assert.deepEqual(
      [stored.caller, stored.platform],
      ['ledger', { callerId, caller: 'gallery', status: 'ACTIVE', filingCap: null }],
    );
    assert.notEqual(stored.callerId, callerId);
    await perform(store, { kind: 'SetPlatformStatus', by: tester, name: 'gallery', status: 'SUSPENDED' });
    assert.equal(store.findToken(token.sha256)?.platform?.status, 'SUSPENDED');
    for (const platform of ['nobody', 'ledger', '']) {
      const wrong = newToken({ platform });
      await refused(
        perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token: wrong }),
        'VALIDATION_FAILED',
      );
      assert.equal(store.findToken(wrong.sha256), undefined);
    }
  });

  test('a token that is revoked again stays revoked since the first time', async (t) => {
    const store = await openStore(t, engine);
    const { tokenId } = await perform(store, {
      kind: 'AddToken',
      by: tester,
      name: 'ledger',
      token: newToken(),
    });
    await perform(store, { kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_100 }, tokenId });
    assert.equal(
      (await perform(store, { kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_200 }, tokenId }))
        .revokedAtS,
      1_790_000_100,
    );
  });
}
