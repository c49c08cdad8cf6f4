import assert from 'node:assert/strict';
import { scopes } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { eventually } from '../../support/eventually.ts';
import { newKey, newToken, refused } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** Waits for a change that another open store made; far longer than the second that it may take. */
const comes = (look: () => boolean) => eventually('the change is seen', 20_000, look);

/** What is known of keys and tokens without asking the store, and when changes are. */
export function knownCredentialPromises({ storeTest, test }: StoreTests): void {
  test('a change of another open store is visible', async (server) => {
    const command = await server.openAgain();
    const { keyId, apiKey } = await command.addPlatform('museum');
    const token = newToken();
    await command.addService('ledger', token);
    await comes(() => server.findKey(apiKey)?.status === 'ACTIVE');
    await comes(() => server.findToken(token.sha256)?.caller === 'ledger');

    for (const status of ['SUSPENDED', 'ACTIVE', 'REVOKED'] as const) {
      await command.setKeyStatus(keyId, status);
      await comes(() => server.findKey(apiKey)?.status === status);
    }
    await command.perform({
      kind: 'RevokeToken',
      by: { ...tester, atS: 1_790_000_100 },
      tokenId: token.tokenId,
    });
    await comes(() => server.findToken(token.sha256) === undefined);
  });

  test('a refresh loads all earlier changes of another open store', async (server) => {
    const command = await server.openAgain();
    let notified = 0;
    server.onEvents(() => {
      notified += 1;
    });
    for (let round = 0; round < 20; round += 1) {
      const platform = await command.addPlatform(`gallery ${round}`);
      const before = notified;
      await command.fileOne(platform);
      await server.refresh();
      assert.equal(server.findKey(platform.apiKey)?.caller, `gallery ${round}`);
      assert.ok(notified > before);
    }
  });

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

  test('a change of a platform is visible in each of its keys, in all open stores', async (server) => {
    const command = await server.openAgain();
    const [second, other] = [
      await server.rotateKey(server.gallery.keyId),
      await server.addPlatform('auction house'),
    ];
    const found = () =>
      [server.gallery, second, other]
        .map(({ apiKey }) => server.findKey(apiKey))
        .map((key) => [key?.platformStatus, key?.monthlyQuota]);
    for (const [place, store] of [server, command, server, command].entries()) {
      const status = place < 2 ? 'SUSPENDED' : 'ACTIVE';
      const change = { tier: undefined, monthlyQuota: 10 - place, unlimited: false };
      assert.equal((await store.setPlatformStatus('gallery', status)).status, status);
      await store.perform({ kind: 'ChangeAgreement', by: tester, name: 'gallery', change });
      if (store === command) await comes(() => found()[0]?.[1] === change.monthlyQuota);
      const changed = [status, change.monthlyQuota];
      assert.deepEqual(found(), [changed, changed, ['ACTIVE', null]]);
    }
  });
}
