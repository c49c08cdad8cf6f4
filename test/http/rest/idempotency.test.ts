import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { openEscrow, releaseEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService, type TestService } from '../../support/service.ts';
import { newNonce, type RestAnswer, send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** test/store/promises/idempotency.ts has concurrent calls, callers, and how long a key is kept. */
const service = await startService(fileScope);
const filingBody = JSON.stringify(artwork);

/** Files with a new key, and asserts that the number follows the one before. */
async function assertNextNumber(platform: ApiCredentials, before: RestAnswer): Promise<void> {
  const next = await file(service, platform, newNonce());
  assert.equal(numberOf(next), numberOf(before) + 1);
}

const numberOf = ({ json }: RestAnswer) => Number(json.filingNo.slice(-6));

/** Files with an Idempotency-Key, sent as often as `key` has values. */
function file(
  service: Pick<TestService, 'publicUrl'>,
  platform: ApiCredentials,
  key: string | string[],
  more: { body?: string } = {},
) {
  const headers = { 'Idempotency-Key': key };
  return send(service.publicUrl, platform, { target: '/api/v1/filing', body: filingBody, headers, ...more });
}

function assertReplays(replay: RestAnswer, first: RestAnswer): void {
  assert.equal(replay.status, first.status);
  assert.equal(replay.text, first.text);
  assert.equal(replay.headers['idempotent-replayed'], 'true');
  assert.notEqual(replay.headers['x-request-id'], first.headers['x-request-id']);
}

test('a repetition gets IDEMPOTENCY_IN_PROGRESS while the first call runs, and later its response', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const service = await startService(t, { provider });
  const platform = await service.platform();
  const { filingNo } = (await file(service, platform, 'filing')).json;
  const open = () =>
    send(service.publicUrl, platform, {
      target: '/api/v1/escrow',
      body: JSON.stringify(escrowTerms(filingNo)),
      headers: { 'Idempotency-Key': 'escrow' },
    });
  const first = open();
  let second = await open();
  while (second.json.code !== 'IDEMPOTENCY_IN_PROGRESS') second = await open();
  assert.equal(second.status, 409);
  assert.equal(second.headers['retry-after'], '1');
  await provider.instructed('FREEZE');
  await provider.answer();
  assert.equal((await first).json.state, 'FROZEN');
  assertReplays(await open(), await first);
});

test('another spelling of the same request is the same request', async () => {
  for (const [what, body] of [
    ['white space', JSON.stringify(artwork, undefined, 3)],
    ['the order of its members', JSON.stringify(Object.fromEntries(Object.entries(artwork).reverse()))],
    ['how a number is written', filingBody.replace(/"price":\d+/, '"price":128e6')],
    ['escaped characters', filingBody.replace('Qi', '\\u0051i')],
  ] as const) {
    assert.notEqual(body, filingBody, what);
    const platform = await service.platform();
    const first = await file(service, platform, 'k');
    assert.equal(first.status, 200, first.text);
    assertReplays(await file(service, platform, 'k', { body }), first);
    await assertNextNumber(platform, first);
  }
});

test('a release without a body is the same request as one with {}', async () => {
  const platform = await service.platform();
  for (const [key, bodies] of Object.entries({
    none: [undefined, '{}'],
    empty: ['{}', undefined, ' { } '],
  })) {
    const { filingNo } = (await file(service, platform, `filing-${key}`)).json;
    const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
    const release = (body: string | undefined) =>
      releaseEscrow(service, platform, escrowId, {
        headers: { 'Idempotency-Key': key },
        ...(body !== undefined && { body }),
      });
    const first = await release(bodies[0]);
    assert.equal(first.json.state, 'RELEASED', first.text);
    for (const body of bodies) assertReplays(await release(body), first);
  }
});

test('an invalid request is identified by its faults, too', async () => {
  const platform = await service.platform();
  const mistakes = ['{"price":1}', '{"price":"1"}', '{"price":"1","colour":1}', '{', '[]'];
  for (const [index, body] of mistakes.entries()) {
    const key = `mistake-${index}`;
    const first = await file(service, platform, key, { body });
    assert.equal(first.status, 400, first.text);
    assertReplays(await file(service, platform, key, { body }), first);
    for (const other of [...mistakes, filingBody].filter((one) => one !== body)) {
      const rejected = await file(service, platform, key, { body: other });
      assertRejected(rejected, 422, 'IDEMPOTENCY_KEY_REUSED');
    }
  }
});

test('errors of the operation are stored; errors before it are not', async () => {
  const platform = await service.platform();
  const invalid = await file(service, platform, 'bad', { body: '{}' });
  assertRejected(invalid, 400, 'VALIDATION_FAILED');
  assertReplays(await file(service, platform, 'bad', { body: '{}' }), invalid);
  const open = () =>
    openEscrow(service, platform, 'AS-2026-999999', {}, { headers: { 'Idempotency-Key': 'none' } });
  const missing = await open();
  assertRejected(missing, 404, 'FILING_NOT_FOUND');
  assertReplays(await open(), missing);
  const headers = { 'Content-Type': 'text/plain', 'Idempotency-Key': 'media' };
  const request = { target: '/api/v1/filing', body: filingBody };
  assert.equal((await send(service.publicUrl, platform, { ...request, headers })).status, 415);
  assert.equal((await file(service, platform, 'media')).status, 200);
});
