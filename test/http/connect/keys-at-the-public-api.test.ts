import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { typedClients } from '../../support/typed-clients.ts';

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const { admin } = typedClients(createTypedTransport(service.internalUrl, await service.token(true)));
let galleries = 0;

/** A new platform, its key, and the responses of the public API to a key. */
async function createGallery() {
  galleries += 1;
  const caller = `gallery ${galleries}`;
  const { key, apiSecret } = await admin.createKey({ name: caller, tier: Key_Tier.TRIAL });
  assert.ok(key);
  return { caller, key, keyId: key.keyId, apiSecret };
}

/** The response of the public API to a call signed with a key. */
async function answer({ apiKey }: { readonly apiKey: string }, apiSecret: string) {
  const timestamp = String(Math.floor(clock.nowMs() / 1000));
  const credentials = { apiKey, apiSecret };
  return (await send(service.publicUrl, credentials, { target: '/api/v1/provenance/none', timestamp })).json;
}

const codeOf = async (...credentials: Parameters<typeof answer>): Promise<string> =>
  (await answer(...credentials)).code;

/** The code of a call that is authenticated. */
const letIn = 'FILING_NOT_FOUND';

test('a suspended key is rejected at once, and accepted once it is resumed', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  for (let round = 0; round < 2; round += 1) {
    assert.equal(await codeOf(key, apiSecret), letIn);
    await admin.suspendKey({ keyId });
    assert.equal(await codeOf(key, apiSecret), 'KEY_SUSPENDED');
    assert.equal(await codeOf(key, `${apiSecret}0`), 'SIGNATURE_INVALID');
    await admin.resumeKey({ keyId });
  }
  assert.equal(await codeOf(key, apiSecret), letIn);
});

test('the key that replaces a suspended key is suspended as well', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  await admin.suspendKey({ keyId });
  const rotated = await admin.rotateKey({ keyId });
  assert.ok(rotated.key);
  assert.equal(await codeOf(rotated.key, rotated.apiSecret), 'KEY_SUSPENDED');
  await admin.resumeKey({ keyId: rotated.key.keyId });
  assert.equal(await codeOf(rotated.key, rotated.apiSecret), letIn);
  assert.equal(await codeOf(key, apiSecret), 'KEY_SUSPENDED');
});

test('a suspended platform is rejected with every key, even with one issued meanwhile', async () => {
  const { caller, key, keyId, apiSecret } = await createGallery();
  const second = await admin.rotateKey({ keyId });
  const other = await admin.createKey({ name: 'auction house', tier: Key_Tier.TRIAL });
  assert.ok(second.key && other.key);
  assert.equal(await codeOf(key, apiSecret), letIn);
  await admin.suspendPlatform({ caller: caller });
  const third = await admin.rotateKey({ keyId });
  assert.ok(third.key);
  for (const [mine, secret] of [
    [key, apiSecret],
    [second.key, second.apiSecret],
    [third.key, third.apiSecret],
  ] as const) {
    const { code, message } = await answer(mine, secret);
    assert.deepEqual([code, message], ['KEY_SUSPENDED', 'The platform is suspended; ask the operator.']);
    assert.equal(await codeOf(mine, `${secret}0`), 'SIGNATURE_INVALID');
  }
  await admin.revokeKey({ keyId: second.key.keyId });
  assert.equal(await codeOf(second.key, second.apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await codeOf(other.key, other.apiSecret), letIn);
  await admin.resumePlatform({ caller: caller });
  assert.equal(await codeOf(key, apiSecret), letIn);
  assert.equal(await codeOf(third.key, third.apiSecret), letIn);
});

test('resuming a platform does not resume a key that was suspended separately', async () => {
  const { caller, key, keyId, apiSecret } = await createGallery();
  const second = await admin.rotateKey({ keyId });
  assert.ok(second.key);
  await admin.suspendKey({ keyId });
  await admin.suspendPlatform({ caller: caller });
  await admin.resumePlatform({ caller: caller });
  const { code, message } = await answer(key, apiSecret);
  assert.deepEqual([code, message], ['KEY_SUSPENDED', 'The API key is suspended; ask the operator.']);
  assert.equal(await codeOf(second.key, second.apiSecret), letIn);
});

test('resuming a key does not resume its platform', async () => {
  const { caller, key, keyId, apiSecret } = await createGallery();
  await admin.suspendKey({ keyId });
  await admin.suspendPlatform({ caller: caller });
  await admin.resumeKey({ keyId });
  assert.equal(await codeOf(key, apiSecret), 'KEY_SUSPENDED');
});

test('a revoked key is rejected at once, like an unknown key', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  assert.equal(await codeOf(key, apiSecret), letIn);
  await admin.revokeKey({ keyId });
  assert.equal(await codeOf(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await codeOf({ apiKey: 'ak_sandbox_unknown' }, apiSecret), 'SIGNATURE_INVALID');
});

test('during the overlap of a rotation both keys are accepted, then only the new one', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  const rotated = await admin.rotateKey({ keyId, overlapSeconds: 3_600 });
  assert.ok(rotated.key);
  for (const seconds of [0, 3_599]) {
    clock.advance(seconds * 1_000);
    assert.equal(await codeOf(key, apiSecret), letIn);
    assert.equal(await codeOf(rotated.key, rotated.apiSecret), letIn);
  }
  clock.advance(1_000);
  assert.equal(await codeOf(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await codeOf(rotated.key, rotated.apiSecret), letIn);
});

test('a key rotated without overlap is rejected at once', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  assert.equal(await codeOf(key, apiSecret), letIn);
  const rotated = await admin.rotateKey({ keyId, overlapSeconds: 0 });
  assert.equal(await codeOf(key, apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await codeOf(rotated.key ?? key, rotated.apiSecret), letIn);
});

test('the keys of one platform share its quota', async () => {
  const { caller, key, keyId, apiSecret } = await createGallery();
  const rotated = await admin.rotateKey({ keyId });
  assert.equal(await codeOf(key, apiSecret), letIn);
  assert.equal(await codeOf(rotated.key ?? key, rotated.apiSecret), letIn);
  assert.equal((await admin.getUsage({ caller: caller })).calls, 2n);
});

test('a secret is valid only for its own key', async () => {
  const { key, keyId, apiSecret } = await createGallery();
  const rotated = await admin.rotateKey({ keyId });
  assert.equal(await codeOf(key, rotated.apiSecret), 'SIGNATURE_INVALID');
  assert.equal(await codeOf(rotated.key ?? key, apiSecret), 'SIGNATURE_INVALID');
});
