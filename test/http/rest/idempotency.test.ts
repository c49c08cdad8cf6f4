import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { idempotencyRetentionS } from '../../../src/store/store.ts';
import { openEscrow, releaseEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService, type TestService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';

const filingBody = JSON.stringify(artwork);

/** Files with an Idempotency-Key, sent as often as `key` has values. */
function file(
  service: TestService,
  platform: ApiCredentials,
  key: string | string[],
  more: { body?: string; timestamp?: string } = {},
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

test('a repetition gets the stored answer under a new request id, and files nothing', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const first = await file(service, platform, 'order-1');
  assert.equal(first.status, 200, first.text);
  assert.equal(first.headers['idempotent-replayed'], undefined);
  assertReplays(await file(service, platform, 'order-1'), first);
  const next = await file(service, platform, 'order-2');
  assert.match(next.json.filingNo, /-000002$/);
});

test('fifty repetitions at once file once', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const answers = await Promise.all(Array.from({ length: 50 }, () => file(service, platform, 'rush')));
  const stored = new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text));
  assert.equal(stored.size, 1);
  const others = answers.filter(({ status }) => status !== 200);
  assert.ok(others.every(({ json }) => json.code === 'IDEMPOTENCY_IN_PROGRESS'));
  assert.match((await file(service, platform, 'other')).json.filingNo, /-000002$/);
});

test('a repetition while the first call waits is told so, and later gets its answer', async (t) => {
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

test('a key stands for one request: another body, or another route, is refused', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  await file(service, platform, 'k');
  const otherBody = await file(service, platform, 'k', { body: JSON.stringify({ ...artwork, price: 1 }) });
  const otherRoute = await send(service.publicUrl, platform, {
    target: '/api/v1/escrow',
    body: filingBody,
    headers: { 'Idempotency-Key': 'k' },
  });
  for (const { status, json } of [otherBody, otherRoute]) {
    assert.equal(status, 422);
    assert.equal(json.code, 'IDEMPOTENCY_KEY_REUSED');
  }
});

for (const [what, body] of [
  ['white space', JSON.stringify(artwork, undefined, 3)],
  ['the order of its members', JSON.stringify(Object.fromEntries(Object.entries(artwork).reverse()))],
  ['how a number is written', filingBody.replace(/"price":\d+/, '"price":128e6')],
  ['escaped characters', filingBody.replace('Qi', '\\u0051i')],
] as const) {
  test(`another spelling of the same request is the same request: ${what}`, async (t) => {
    assert.notEqual(body, filingBody);
    const service = await startService(t);
    const platform = await service.platform();
    const first = await file(service, platform, 'k');
    assert.equal(first.status, 200, first.text);
    assertReplays(await file(service, platform, 'k', { body }), first);
    assert.match((await file(service, platform, 'other')).json.filingNo, /-000002$/);
  });
}

test('without a body and with {} a release is the same request', async (t) => {
  const service = await startService(t);
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

test('what is wrong with a request is part of it: another mistake under the key is another request', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const mistakes = [
    '{}',
    '{"price":1}',
    '{"price":"1"}',
    '{"price":"1","colour":1}',
    '{"colour":1}',
    '{',
    '[]',
  ];
  for (const [place, body] of mistakes.entries()) {
    const key = `mistake-${place}`;
    const first = await file(service, platform, key, { body });
    assert.equal(first.status, 400, first.text);
    assertReplays(await file(service, platform, key, { body }), first);
    for (const other of [...mistakes, filingBody].filter((one) => one !== body)) {
      const refused = await file(service, platform, key, { body: other });
      assertRefused(refused, 422, 'IDEMPOTENCY_KEY_REUSED');
    }
  }
});

test('keys of different callers have nothing to do with each other', async (t) => {
  const service = await startService(t);
  const [one, other] = [await service.platform(), await service.platform()];
  assert.match((await file(service, one, 'k')).json.filingNo, /-000001$/);
  assert.match((await file(service, other, 'k')).json.filingNo, /-000002$/);
});

test("the operation's own apiError is kept; what is refused before it is not", async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const invalid = await file(service, platform, 'bad', { body: '{}' });
  assertRefused(invalid, 400, 'VALIDATION_FAILED');
  assertReplays(await file(service, platform, 'bad', { body: '{}' }), invalid);
  const open = () =>
    openEscrow(service, platform, 'AS-2026-999999', {}, { headers: { 'Idempotency-Key': 'none' } });
  const missing = await open();
  assertRefused(missing, 404, 'FILING_NOT_FOUND');
  assertReplays(await open(), missing);
  const headers = { 'Content-Type': 'text/plain', 'Idempotency-Key': 'media' };
  const request = { target: '/api/v1/filing', body: filingBody };
  assert.equal((await send(service.publicUrl, platform, { ...request, headers })).status, 415);
  assert.equal((await file(service, platform, 'media')).status, 200);
});

test('a repetition costs no quota', async (t) => {
  const service = await startService(t);
  const platform = await service.platform('TRIAL');
  const monthlyLeft = ({ headers }: RestAnswer) => /"monthly";r=(\d+)/.exec(String(headers.ratelimit))?.[1];
  assert.equal(monthlyLeft(await file(service, platform, 'k')), '999');
  assert.equal(monthlyLeft(await file(service, platform, 'k')), '999');
});

for (const [what, key] of [
  ['empty', ''],
  ['quotes alone', '""'],
  ['256 characters', 'k'.repeat(256)],
  ['with a space', 'a b'],
  ['not ASCII', 'é'],
  ['sent twice', ['a', 'b']],
] as const) {
  test(`a key that is ${what} is refused`, async (t) => {
    const service = await startService(t);
    const answer = await file(service, await service.platform(), typeof key === 'string' ? key : [...key]);
    assert.equal(answer.status, 400);
    assert.equal(answer.json.code, 'IDEMPOTENCY_KEY_INVALID');
  });
}

test('a key may have 255 characters, and one pair of quotes is not part of it', async (t) => {
  const service = await startService(t);
  const platform = await service.platform();
  const first = await file(service, platform, 'k'.repeat(255));
  assertReplays(await file(service, platform, `"${'k'.repeat(255)}"`), first);
});

test('a key outlives a restart and is forgotten after seven days', async (t) => {
  const clock = createManualClock();
  const before = await startService(t, { clock });
  const platform = await before.platform();
  const first = await file(before, platform, 'k');
  await before.close();
  const service = await startService(t, { clock, dataDir: before.dataDir });
  const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1000)) });
  clock.advance((idempotencyRetentionS - 1) * 1000);
  assertReplays(await file(service, platform, 'k', now()), first);
  clock.advance(1000);
  assert.match((await file(service, platform, 'k', now())).json.filingNo, /-000002$/);
});
