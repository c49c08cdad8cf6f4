import assert from 'node:assert/strict';
import { scopes } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { newKey, newToken, refused } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** What is known of keys and tokens without asking the store, and when changes are. */
export function knownCredentialPromises({ storeTest, test }: StoreTests): void {
  test('a change is visible once its request has resolved, even if the key was read just before', async (store) => {
    const { keyId, apiKey } = store.gallery;
    for (const status of ['SUSPENDED', 'ACTIVE', 'SUSPENDED', 'ACTIVE'] as const) {
      const before = store.findKey(apiKey)?.status;
      const changing = store.setKeyStatus(keyId, status);
      assert.ok([before, status].includes(store.findKey(apiKey)?.status));
      const seen = changing.then(() => store.findKey(apiKey)?.status);
      assert.equal(await seen, status);
    }
  });

  storeTest('the first platform and internal caller are added together', async (store) => {
    const [key, token] = [newKey(), newToken({ scopes })];
    const platform = { name: 'gallery', tier: 'STANDARD', monthlyQuota: 10_000 } as const;
    const addFirst = (service: string) =>
      store.perform({ kind: 'AddFirstCallers', by: tester, platform, key, service, token });
    await refused(addFirst('gallery'), 'VALIDATION_FAILED');
    assert.equal(await store.perform({ kind: 'HasCallers' }), false, 'all or nothing');
    assert.equal(store.findKey(key.apiKey), undefined);
    await addFirst('ledger');
    assert.equal(store.findKey(key.apiKey)?.caller, 'gallery');
    assert.equal(store.findToken(token.sha256)?.caller, 'ledger');
  });
}
