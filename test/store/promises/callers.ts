import assert from 'node:assert/strict';
import { scopes } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { businessScopes } from '../../support/tokens.ts';
import { assertListed, firstPage, newKey, newToken, nowS, refused, toTrial } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** Platforms and internal callers. */
export function callerPromises({ storeTest, test }: StoreTests): void {
  storeTest('a new platform has an ACTIVE key', async (store) => {
    const key = newKey();
    const stored = await store.addPlatform('gallery', { tier: 'TRIAL', monthlyQuota: 1000 }, key);
    const { id, callerId, ...rest } = stored;
    assert.ok(Number.isInteger(id) && Number.isInteger(callerId));
    assert.deepEqual(
      { ...rest, sealedSecret: Buffer.from(rest.sealedSecret) },
      {
        ...{ ...key, status: 'ACTIVE', expiresAtS: null },
        ...{ caller: 'gallery', tier: 'TRIAL', monthlyQuota: 1000 },
        ...{ filingCap: null, platformStatus: 'ACTIVE' },
      },
    );
    assert.deepEqual(store.findKey(key.apiKey), stored);
    assert.equal(store.findKey(key.keyId), undefined);
  });

  storeTest('a name belongs to one platform or one internal caller', async (store) => {
    await store.addPlatform('gallery');
    await store.addService('ledger');
    await refused(store.addPlatform('gallery'), 'VALIDATION_FAILED');
    await refused(store.addPlatform('ledger'), 'VALIDATION_FAILED');
    await refused(store.addService('gallery'), 'VALIDATION_FAILED');
    assert.equal((await store.perform({ kind: 'ListKeys', page: firstPage(10) })).items.length, 1);
    assert.equal((await store.perform({ kind: 'ListTokens', page: firstPage(10) })).items.length, 1);
  });

  test('tokens of one name belong to one caller', async (store) => {
    const first = await store.addService('ledger');
    const second = await store.addService('ledger', newToken({ scopes }));
    assert.equal(second.callerId, first.callerId);
    assert.deepEqual([first.scopes, second.scopes], [businessScopes, scopes]);
    const other = await store.addService('insurance');
    assert.notEqual(other.callerId, first.callerId);
  });

  storeTest('platforms and internal callers are found by their names', async (store) => {
    const agreement = { tier: 'STANDARD', monthlyQuota: 10_000 } as const;
    const { callerId } = await store.addPlatform('gallery', agreement);
    await store.addService('ledger');
    const find = (name: string) => store.perform({ kind: 'FindCaller', name });
    assert.deepEqual(await find('gallery'), { callerId, caller: 'gallery' });
    assert.equal((await find('ledger')).caller, 'ledger');
    await refused(find('Gallery'), 'NOT_FOUND');
    assert.deepEqual(await store.findPlatform('gallery'), {
      callerId,
      caller: 'gallery',
      ...agreement,
      filingCap: null,
      status: 'ACTIVE',
    });
    assert.equal(await store.findPlatform('Gallery'), undefined);
    assert.equal(await store.findPlatform('ledger'), undefined);
  });

  test('suspending and resuming a platform keeps the status of its keys', async (store) => {
    const active = await store.rotateKey(store.gallery.keyId);
    await store.setKeyStatus(store.gallery.keyId, 'SUSPENDED');
    for (const status of ['SUSPENDED', 'ACTIVE'] as const) {
      await store.setPlatformStatus('gallery', status);
      assert.equal((await store.findPlatform('gallery'))?.status, status);
      const found = [store.gallery, active].map(({ apiKey }) => store.findKey(apiKey));
      assert.deepEqual(
        found.map((key) => [key?.status, key?.platformStatus]),
        [
          ['SUSPENDED', status],
          ['ACTIVE', status],
        ],
      );
    }
  });

  test('only a platform can be suspended and has an agreement', async (store) => {
    const { keyId } = store.gallery;
    await store.addService('ledger');
    for (const name of ['', 'Gallery', 'ledger', keyId]) {
      for (const status of ['SUSPENDED', 'ACTIVE'] as const)
        await refused(store.setPlatformStatus(name, status), 'NOT_FOUND');
      const command = { kind: 'ChangeAgreement', by: tester, name, change: toTrial } as const;
      await refused(store.perform(command), 'NOT_FOUND');
    }
  });

  test('a changed agreement follows the rules of a new one and applies to all keys', async (store) => {
    const other = await store.addPlatform('museum');
    const rotated = await store.rotateKey(store.gallery.keyId);
    const set = (tier?: string, monthlyQuota?: number, unlimited = false) => {
      const change = { tier, monthlyQuota, unlimited };
      return store.perform({ kind: 'ChangeAgreement', by: tester, name: 'gallery', change });
    };
    const steps: [change: Parameters<typeof set>, tier: string, quota: number | null][] = [
      [['STANDARD'], 'STANDARD', 10_000],
      [['ENTERPRISE', 5], 'ENTERPRISE', 5],
      [['ENTERPRISE'], 'ENTERPRISE', 5],
      [[undefined, undefined, true], 'ENTERPRISE', null],
      [[undefined, 1], 'ENTERPRISE', 1],
    ];
    for (const [change, tier, monthlyQuota] of steps) {
      const changed = await set(...change);
      assert.deepEqual([changed.tier, changed.monthlyQuota], [tier, monthlyQuota]);
      assert.deepEqual(await store.findPlatform('gallery'), changed);
      for (const key of [store.gallery, rotated])
        assert.partialDeepStrictEqual(store.findKey(key.apiKey), { tier, monthlyQuota });
      assert.deepEqual(store.findKey(other.apiKey), other);
    }
    const before = await store.findPlatform('gallery');
    // `domain/caller.ts` has the rules of all agreements.
    for (const broken of [set(), set('GOLD'), set('TRIAL', 5)]) await refused(broken, 'VALIDATION_FAILED');
    assert.deepEqual(await store.findPlatform('gallery'), before);
  });

  storeTest('keys and tokens of a platform have the filing cap of its agreement', async (store) => {
    const added = await store.addPlatform('gallery', { tier: 'TRIAL', monthlyQuota: 1_000, filingCap: 7 });
    const token = newToken({ platform: 'gallery' });
    await store.addService('ledger', token);
    const caps = () => [
      store.findKey(added.apiKey)?.filingCap,
      store.findToken(token.sha256)?.platform?.filingCap,
    ];
    assert.deepEqual(caps(), [7, 7]);
    const set = (over: object) => {
      const change = { tier: undefined, monthlyQuota: undefined, unlimited: false, ...over };
      return store.perform({ kind: 'ChangeAgreement', by: tester, name: 'gallery', change });
    };
    assert.equal((await set({ filingCap: 8 })).filingCap, 8);
    assert.equal((await set({ tier: 'STANDARD' })).filingCap, 8);
    assert.deepEqual(caps(), [8, 8]);
    const removed = await set({ noFilingCap: true });
    assert.deepEqual([removed.tier, removed.monthlyQuota, removed.filingCap], ['STANDARD', 10_000, null]);
    assert.deepEqual(caps(), [null, null]);
    for (const filingCap of [0, 1.5, 1_000_000, Number.NaN])
      await refused(set({ filingCap }), 'VALIDATION_FAILED');
    await refused(set({ filingCap: 5, noFilingCap: true }), 'VALIDATION_FAILED');
  });

  storeTest(
    'platforms and their usage, keys and tokens are listed oldest first, and internal callers are no platforms',
    async (store) => {
      const callers = [];
      for (const name of ['c', 'b', 'a']) {
        callers.push(await store.addPlatform(name));
        await store.addService(`service ${name}`);
      }
      const [c, , a] = callers;
      for (const [by, month, calls] of [
        [c, '2026-10', 2],
        [c, '2026-11', 3],
        [a, '2026-11', 1],
      ] as const) {
        const quota = { callerId: by?.callerId ?? 0, month, limit: undefined, take: true };
        for (let call = 0; call < calls; call += 1) await store.execute({ admission: { nowS, quota } });
      }
      await store.setPlatformStatus('b', 'SUSPENDED');
      await assertListed(
        (page) => store.perform({ kind: 'ListPlatforms', page }),
        ({ caller, status }) => `${caller} ${status}`,
        ['c ACTIVE', 'b SUSPENDED', 'a ACTIVE'],
      );
      await assertListed(
        (page) => store.perform({ kind: 'ListUsage', month: '2026-11', page }),
        ({ caller, tier, monthlyQuota, calls }) => `${caller} ${tier} ${monthlyQuota} ${calls}`,
        ['c ENTERPRISE null 3', 'b ENTERPRISE null 0', 'a ENTERPRISE null 1'],
      );
      await assertListed(
        (page) => store.perform({ kind: 'ListKeys', page }),
        ({ caller }) => caller,
        ['c', 'b', 'a'],
      );
      await assertListed(
        (page) => store.perform({ kind: 'ListTokens', page }),
        ({ caller }) => caller,
        ['service c', 'service b', 'service a'],
      );
    },
  );
}
