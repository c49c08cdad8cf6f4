import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { createIssuance } from '../../src/keys/issuance.ts';
import { createKeyRing, createReplaceableKeyRing, type MasterKey } from '../../src/keys/key-ring.ts';
import {
  checkSealedSecrets,
  countSeals,
  MasterKeyError,
  openUrl,
  reencryptSecrets,
  sealedKeys,
  sealUrl,
} from '../../src/keys/sealed-secrets.ts';
import type { NewSeal } from '../../src/store/caller-commands.ts';
import { allOf } from '../../src/store/paging.ts';
import { executorOf } from '../../src/store/store.ts';
import { sqliteInThisThread } from '../store/engines.ts';
import { addWebhook, openStore } from '../store/promises/fixtures.ts';
import { tester } from '../support/audit-log.ts';
import { createManualClock } from '../support/clock.ts';

const terms = { tier: 'TRIAL', monthlyQuota: undefined, unlimited: false } as const;
const masterKey = (name: string): MasterKey => ({ name, key: randomBytes(32) });

/** Opens a store with platforms whose secrets are encrypted with k1. */
async function sealedUnderOld(t: TestContext, platforms: number) {
  const store = await openStore(t, sqliteInThisThread);
  const execute = executorOf(store);
  const [k1, k2] = [masterKey('k1'), masterKey('k2')];
  const clock = createManualClock();
  const nowS = Math.floor(clock.nowMs() / 1000);
  const old = createKeyRing([k1]);
  const issuance = createIssuance({ execute, keyRing: old, environment: 'sandbox', clock });
  const names = Array.from({ length: platforms }, (_, place) => `platform-${place + 1}`);
  const issued = await Promise.all(names.map((name) => issuance.issueKey({ name, ...terms }, tester)));
  const seals = async () =>
    countSeals(await Array.fromAsync(allOf((page) => execute({ kind: 'ListKeys', page }))), nowS);
  return { store, execute, k1, k2, old, clock, nowS, issued, seals };
}

test('re-encrypted secrets open without the old master key', async (t) => {
  const { execute, k1, k2, nowS, issued, seals } = await sealedUnderOld(t, 3);
  const both = createKeyRing([k2, k1]);
  assert.deepEqual(await seals(), [{ masterKey: 'k1', secrets: 3, needed: 3 }]);
  assert.equal(await reencryptSecrets(execute, both, tester), 3);
  assert.deepEqual(await seals(), [{ masterKey: 'k2', secrets: 3, needed: 3 }]);
  const young = createKeyRing([k2]);
  await checkSealedSecrets(execute, young, nowS);
  for (const { key, apiSecret } of issued) {
    const { sealedSecret, keyId } = await execute({ kind: 'FindKey', keyId: key.keyId });
    assert.equal(young.open(sealedSecret, keyId).export().toString(), apiSecret);
  }
  assert.equal(await reencryptSecrets(execute, both, tester), 0, 'a second run re-encrypts nothing');
});

test('re-encryption takes bounded requests, and continues after one that failed', async (t) => {
  const platforms = 401;
  const { execute, k1, k2, seals } = await sealedUnderOld(t, platforms);
  const both = createKeyRing([k2, k1]);
  const sizes: number[] = [];
  const counting: typeof execute = (command) => {
    if ('seals' in command) sizes.push((command.seals as readonly NewSeal[]).length);
    return execute(command);
  };
  const failing: typeof execute = async (command) => {
    if ('seals' in command && sizes.length === 1) throw new Error('not any more');
    return counting(command);
  };
  await assert.rejects(reencryptSecrets(failing, both, tester), /not any more/);
  assert.deepEqual(
    (await seals()).map(({ masterKey, secrets }) => [masterKey, secrets]),
    [
      ['k1', 201],
      ['k2', 200],
    ],
  );
  assert.equal(await reencryptSecrets(counting, both, tester), 201);
  assert.deepEqual(sizes, [200, 200, 1]);
});

test('a revoked key whose master key is missing keeps its seal', async (t) => {
  const { execute, k1, k2, nowS, issued, seals } = await sealedUnderOld(t, 2);
  const [revoked = assert.fail()] = issued;
  await execute({ kind: 'SetKeyStatus', by: tester, keyId: revoked.key.keyId, status: 'REVOKED' });
  const [k0, k3] = [{ ...masterKey('k1') }, masterKey('k3')];
  assert.equal(
    await reencryptSecrets(execute, createKeyRing([k3, k0]), tester),
    0,
    'other bytes open no secret',
  );
  await assert.rejects(checkSealedSecrets(execute, createKeyRing([k3, k0]), nowS), /with the key k1/);
  assert.equal(
    await reencryptSecrets(execute, createKeyRing([k2, k1]), tester),
    2,
    'a secret that opens is re-encrypted',
  );
  assert.equal(await reencryptSecrets(execute, createKeyRing([k3]), tester), 0);
  assert.deepEqual(await seals(), [{ masterKey: 'k2', secrets: 2, needed: 1 }]);
});

test('a replay of creating a key shows its secret after re-encryption', async (t) => {
  const { store, execute, k1, k2, old, clock, nowS } = await sealedUnderOld(t, 0);
  const keyRing = createReplaceableKeyRing(old);
  const repeatable: typeof execute = async (command) => {
    const idempotency = { callerId: 1, key: 'again', fingerprint: Buffer.alloc(32), requestId: 'r' };
    const admission = command.kind === 'AddPlatform' ? { nowS, idempotency } : undefined;
    const { outcome } = await store.execute<typeof command.kind>({ admission, effect: command });
    assert.equal(outcome.kind, 'DONE');
    return outcome.kind === 'DONE' ? (outcome.result as never) : assert.fail();
  };
  const issuance = createIssuance({ execute: repeatable, keyRing, environment: 'sandbox', clock });
  const agreement = { name: 'gallery', ...terms };
  const first = await issuance.issueKey(agreement, tester);
  keyRing.replace(createKeyRing([k2, k1]));
  await reencryptSecrets(execute, keyRing, tester);
  keyRing.replace(createKeyRing([k2]));
  const again = await issuance.issueKey(agreement, tester);
  assert.deepEqual([again.key.keyId, again.apiSecret], [first.key.keyId, first.apiSecret]);
});

test('secrets and URLs of webhooks are re-encrypted, and needed while they are valid', async (t) => {
  const { store, execute, k1, k2, old, nowS, issued } = await sealedUnderOld(t, 1);
  const [{ key: owner } = assert.fail()] = issued;
  const add = (webhookId: string) =>
    addWebhook(store, owner, {
      ...{ webhookId, sealedSecret: old.seal(`first of ${webhookId}`, webhookId) },
      ...sealUrl(old, webhookId, `https://${webhookId}.example/?t`),
    });
  const rotate = (webhookId: string, previousEndsAtS: number) => {
    const sealedSecret = old.seal(`second of ${webhookId}`, webhookId);
    const name = { webhookId, owner: owner.callerId };
    return execute({ kind: 'RotateWebhookSecret', ...name, sealedSecret, previousEndsAtS });
  };
  for (const webhookId of ['wh_1', 'wh_2', 'wh_3']) await add(webhookId);
  await rotate('wh_2', nowS + 1);
  await rotate('wh_3', nowS);
  const seals = async () => countSeals(await Array.fromAsync(sealedKeys(execute)), nowS);
  assert.deepEqual(await seals(), [{ masterKey: 'k1', secrets: 9, needed: 8 }]);
  const young = createKeyRing([k2]);
  await assert.rejects(checkSealedSecrets(execute, young, nowS), MasterKeyError);
  assert.equal(await reencryptSecrets(execute, createKeyRing([k2, k1]), tester), 9);
  await checkSealedSecrets(execute, young, nowS);
  assert.deepEqual(await seals(), [{ masterKey: 'k2', secrets: 9, needed: 8 }]);
  const opened = (sealed: Uint8Array | null, webhookId: string) =>
    sealed && young.open(sealed, webhookId).export().toString();
  const { items } = await execute({
    ...{ kind: 'ListWebhooks', owner: undefined, page: { from: undefined, size: 9 } },
  });
  assert.deepEqual(
    items.map((webhook) => [
      opened(webhook.sealedSecret, webhook.webhookId),
      opened(webhook.previousSecret, webhook.webhookId),
      openUrl(young, webhook),
    ]),
    [
      ['first of wh_1', null, 'https://wh_1.example/?t'],
      ['second of wh_2', 'first of wh_2', 'https://wh_2.example/?t'],
      ['second of wh_3', 'first of wh_3', 'https://wh_3.example/?t'],
    ],
  );
});

test('the check at the start names a webhook whose secret does not open', async (t) => {
  const { store, execute, k1, k2, old, nowS, issued } = await sealedUnderOld(t, 1);
  const [{ key: owner } = assert.fail()] = issued;
  await reencryptSecrets(execute, createKeyRing([k2, k1]), tester);
  const young = createKeyRing([k2]);
  const { webhookId } = await addWebhook(store, owner, {
    ...{ webhookId: 'wh_1', sealedSecret: old.seal('secret', 'wh_1') },
    ...sealUrl(young, 'wh_1', 'https://wh_1.example/'),
  });
  await assert.rejects(checkSealedSecrets(execute, young, nowS), /the secret of wh_1 \(platform-1\)/);
  const name = { webhookId, owner: owner.callerId };
  const sealedSecret = young.seal('another', webhookId);
  await execute({ kind: 'RotateWebhookSecret', ...name, sealedSecret, previousEndsAtS: nowS });
  await checkSealedSecrets(execute, young, nowS);
});
