import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { createManualClock } from '../../support/clock.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { typedClients } from '../../support/typed-clients.ts';

/** A service whose time stands still, its administration, a key, and what the public door says to a key. */
async function startWithKey(t: Parameters<typeof startService>[0]) {
  const clock = createManualClock();
  const service = await startService(t, { clock });
  const token = await service.token(true);
  const { admin } = typedClients(createTypedTransport(service.internalUrl, token));
  const { key, apiSecret } = await admin.createKey({ name: 'gallery', tier: Key_Tier.TRIAL });
  assert.ok(key);
  const answer = async ({ apiKey }: { readonly apiKey: string }, secret: string) => {
    const { json } = await send(
      service.publicUrl,
      { apiKey, apiSecret: secret },
      {
        target: '/api/v1/provenance/none',
        timestamp: String(Math.floor(clock.nowMs() / 1000)),
      },
    );
    return json;
  };
  const said = async (...credentials: Parameters<typeof answer>): Promise<string> =>
    (await answer(...credentials)).code;
  return { clock, service, admin, key, keyId: key.keyId, apiSecret, answer, said };
}

/** What the public door says to a call that is let in. */
const letIn = 'FILING_NOT_FOUND';

test('a key that an operator creates is let in at once', async (t) => {
  const { key, apiSecret, said } = await startWithKey(t);
  assert.equal(await said(key, apiSecret), letIn);
});

test('a suspended key is refused at once and let in again when it is resumed', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  for (let round = 0; round < 2; round += 1) {
    assert.equal(await said(key, apiSecret), letIn);
    await admin.suspendKey({ keyId });
    assert.equal(await said(key, apiSecret), 'KEY_SUSPENDED');
    assert.equal(await said(key, `${apiSecret}0`), 'SIGNATURE_INVALID');
    await admin.resumeKey({ keyId });
  }
  assert.equal(await said(key, apiSecret), letIn);
});

test('a key that is rotated while it is suspended lets nobody in until it is resumed', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  await admin.suspendKey({ keyId });
  const rotated = await admin.rotateKey({ keyId });
  assert.ok(rotated.key);
  assert.equal(await said(rotated.key, rotated.apiSecret), 'KEY_SUSPENDED');
  await admin.resumeKey({ keyId: rotated.key.keyId });
  assert.equal(await said(rotated.key, rotated.apiSecret), letIn);
  assert.equal(await said(key, apiSecret), 'KEY_SUSPENDED');
});

test('a suspended platform is refused with every key, also with one that it gets meanwhile', async (t) => {
  const { admin, key, keyId, apiSecret, answer, said } = await startWithKey(t);
  const second = await admin.rotateKey({ keyId });
  const other = await admin.createKey({ name: 'auction house', tier: Key_Tier.TRIAL });
  assert.ok(second.key && other.key);
  assert.equal(await said(key, apiSecret), letIn);
  await admin.suspendPlatform({ caller: 'gallery' });
  const third = await admin.rotateKey({ keyId });
  assert.ok(third.key);
  for (const [mine, secret] of [
    [key, apiSecret],
    [second.key, second.apiSecret],
    [third.key, third.apiSecret],
  ] as const) {
    const { code, message } = await answer(mine, secret);
    assert.deepEqual([code, message], ['KEY_SUSPENDED', 'The platform is suspended; ask the operator.']);
    assert.equal(await said(mine, `${secret}0`), 'SIGNATURE_INVALID');
  }
  await admin.revokeKey({ keyId: second.key.keyId });
  assert.equal(await said(second.key, second.apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await said(other.key, other.apiSecret), letIn);
  await admin.resumePlatform({ caller: 'gallery' });
  assert.equal(await said(key, apiSecret), letIn);
  assert.equal(await said(third.key, third.apiSecret), letIn);
});

test('resuming a platform does not resume a key that was suspended by itself', async (t) => {
  const { admin, key, keyId, apiSecret, answer, said } = await startWithKey(t);
  const second = await admin.rotateKey({ keyId });
  assert.ok(second.key);
  await admin.suspendKey({ keyId });
  await admin.suspendPlatform({ caller: 'gallery' });
  await admin.resumePlatform({ caller: 'gallery' });
  const { code, message } = await answer(key, apiSecret);
  assert.deepEqual([code, message], ['KEY_SUSPENDED', 'The API key is suspended; ask the operator.']);
  assert.equal(await said(second.key, second.apiSecret), letIn);
});

test('resuming a key does not let a suspended platform in', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  await admin.suspendKey({ keyId });
  await admin.suspendPlatform({ caller: 'gallery' });
  await admin.resumeKey({ keyId });
  assert.equal(await said(key, apiSecret), 'KEY_SUSPENDED');
});

test('a revoked key is refused at once, as if it were not known', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  assert.equal(await said(key, apiSecret), letIn);
  await admin.revokeKey({ keyId });
  assert.equal(await said(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await said({ apiKey: 'ak_sandbox_unknown' }, apiSecret), 'SIGNATURE_INVALID');
});

test('while a rotated key works on, both are let in; then the new one alone', async (t) => {
  const { clock, admin, key, keyId, apiSecret, said } = await startWithKey(t);
  const rotated = await admin.rotateKey({ keyId, overlapSeconds: 3_600 });
  assert.ok(rotated.key);
  for (const seconds of [0, 3_599]) {
    clock.advance(seconds * 1_000);
    assert.equal(await said(key, apiSecret), letIn);
    assert.equal(await said(rotated.key, rotated.apiSecret), letIn);
  }
  clock.advance(1_000);
  assert.equal(await said(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await said(rotated.key, rotated.apiSecret), letIn);
});

test('a key rotated without overlap is refused at once', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  assert.equal(await said(key, apiSecret), letIn);
  const rotated = await admin.rotateKey({ keyId, overlapSeconds: 0 });
  assert.equal(await said(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await said(rotated.key ?? key, rotated.apiSecret), letIn);
});

test('the keys of one platform share its quota', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  const rotated = await admin.rotateKey({ keyId });
  assert.equal(await said(key, apiSecret), letIn);
  assert.equal(await said(rotated.key ?? key, rotated.apiSecret), letIn);
  assert.equal((await admin.getUsage({ caller: 'gallery' })).calls, 2n);
});

test('a secret works with its own key alone', async (t) => {
  const { admin, key, keyId, apiSecret, said } = await startWithKey(t);
  const rotated = await admin.rotateKey({ keyId });
  assert.equal(await said(key, rotated.apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await said(rotated.key ?? key, apiSecret), 'SIGNATURE_INVALID');
});
