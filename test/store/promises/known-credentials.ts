import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scopes } from '../../../src/domain/token.ts';
import { perform } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { eventually } from '../../support/eventually.ts';
import {
  addPlatform,
  addService,
  fileOne,
  newKey,
  newToken,
  openPair,
  openStore,
  refused,
  rotateKey,
  type StoreEngine,
  setKeyStatus,
  setPlatformStatus,
} from './fixtures.ts';

/** Waits for a change that another open store made; far longer than the second that it may take. */
const comes = (look: () => boolean) => eventually('the change is seen', 20_000, look);

/** What is known of keys and tokens without asking the store, and when changes are. */
export function knownCredentialPromises(engine: StoreEngine): void {
  test('a change of another open store is visible', async (t) => {
    const [server, command] = await openPair(t, engine);
    const { keyId, apiKey } = await addPlatform(command, 'gallery');
    const token = newToken();
    await addService(command, 'ledger', token);
    await comes(() => server.findKey(apiKey)?.status === 'ACTIVE');
    await comes(() => server.findToken(token.sha256)?.caller === 'ledger');

    for (const status of ['SUSPENDED', 'ACTIVE', 'REVOKED'] as const) {
      await setKeyStatus(command, keyId, status);
      await comes(() => server.findKey(apiKey)?.status === status);
    }
    await perform(command, {
      kind: 'RevokeToken',
      by: { ...tester, atS: 1_790_000_100 },
      tokenId: token.tokenId,
    });
    await comes(() => server.findToken(token.sha256) === undefined);
  });

  test('a refresh loads all earlier changes of another open store', async (t) => {
    const [server, command] = await openPair(t, engine);
    let notified = 0;
    t.after(
      server.onEvents(() => {
        notified += 1;
      }),
    );
    for (let round = 0; round < 20; round += 1) {
      const platform = await addPlatform(command, `gallery ${round}`);
      const before = notified;
      await fileOne(command, platform);
      await server.refresh();
      assert.equal(server.findKey(platform.apiKey)?.caller, `gallery ${round}`);
      assert.ok(notified > before);
    }
  });

  test('a change is visible once its request has resolved, even if the key was read just before', async (t) => {
    const store = await openStore(t, engine);
    const { keyId, apiKey } = await addPlatform(store, 'gallery');
    for (const status of ['SUSPENDED', 'ACTIVE', 'SUSPENDED', 'ACTIVE'] as const) {
      const before = store.findKey(apiKey)?.status;
      const changing = setKeyStatus(store, keyId, status);
      assert.ok([before, status].includes(store.findKey(apiKey)?.status));
      const seen = changing.then(() => store.findKey(apiKey)?.status);
      assert.equal(await seen, status);
    }
  });

  test('the first platform and internal caller are added together', async (t) => {
    const store = await openStore(t, engine);
    const [key, token] = [newKey(), newToken({ scopes })];
    const platform = { name: 'gallery', tier: 'STANDARD', monthlyQuota: 10_000 } as const;
    const addFirst = (service: string) =>
      perform(store, { kind: 'AddFirstCallers', by: tester, platform, key, service, token });
    await refused(addFirst('gallery'), 'VALIDATION_FAILED');
    assert.equal(await perform(store, { kind: 'HasCallers' }), false, 'all or nothing');
    assert.equal(store.findKey(key.apiKey), undefined);
    await addFirst('ledger');
    assert.equal(store.findKey(key.apiKey)?.caller, 'gallery');
    assert.equal(store.findToken(token.sha256)?.caller, 'ledger');
  });

  test('a change of a platform is visible in each of its keys, in all open stores', async (t) => {
    const [server, command] = await openPair(t, engine);
    const first = await addPlatform(server, 'gallery');
    const [second, other] = [
      await rotateKey(server, first.keyId),
      await addPlatform(server, 'auction house'),
    ];
    const found = () =>
      [first, second, other]
        .map(({ apiKey }) => server.findKey(apiKey))
        .map((key) => [key?.platformStatus, key?.monthlyQuota]);
    for (const [place, store] of [server, command, server, command].entries()) {
      const status = place < 2 ? 'SUSPENDED' : 'ACTIVE';
      const change = { tier: undefined, monthlyQuota: 10 - place, unlimited: false };
      assert.equal((await setPlatformStatus(store, 'gallery', status)).status, status);
      await perform(store, { kind: 'ChangeAgreement', by: tester, name: 'gallery', change });
      if (store === command) await comes(() => found()[0]?.[1] === change.monthlyQuota);
      const changed = [status, change.monthlyQuota];
      assert.deepEqual(found(), [changed, changed, ['ACTIVE', null]]);
    }
  });
}
