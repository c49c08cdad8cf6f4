import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../src/client/typed.ts';
import { createManualClock } from '../support/clock.ts';
import { startService } from '../support/service.ts';
import { send } from '../support/signed-request.ts';
import { typedClients } from '../support/typed-clients.ts';

/** A service whose time stands still, its administration, a key, and what the REST door says to a key. */
async function startWithKey(t: Parameters<typeof startService>[0]) {
  const clock = createManualClock();
  const service = await startService(t, { clock });
  const token = await service.token(true);
  const { admin } = typedClients(createTypedTransport(service.internalUrl, token));
  const { key, apiSecret } = await admin.createKey({ name: 'gallery', tier: Key_Tier.TRIAL });
  assert.ok(key);
  const said = async ({ apiKey }: { readonly apiKey: string }, secret: string): Promise<string> => {
    const { json } = await send(
      service.publicUrl,
      { apiKey, apiSecret: secret },
      {
        target: '/api/v1/provenance/none',
        timestamp: String(Math.floor(clock.nowMs() / 1000)),
      },
    );
    return json.code;
  };
  return { clock, service, admin, key, keyId: key.keyId, apiSecret, said };
}

/** What the REST door says to a call that is let in. */
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
