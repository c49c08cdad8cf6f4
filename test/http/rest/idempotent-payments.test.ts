import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { tester } from '../../support/audit-log.ts';
import {
  type CallOptions,
  escrowIdIn,
  fileArtwork,
  getEscrow,
  openEscrow,
  refundEscrow,
  releaseEscrow,
} from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider, type Treatments } from '../../support/simulator.ts';

/** Timeouts that end soon, but not before a provider that responds on a busy machine; and recovery that does not wait. */
const hasty = { answerTimeoutMs: 500, firstRetryMs: 10, longestRetryMs: 40, pollMs: 10 };
/** The same, but only a notification makes an order due again. */
const hastyOnce = { ...hasty, firstRetryMs: 3_600_000, longestRetryMs: 3_600_000 };
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

const keyed = (key: string, more: CallOptions = {}): CallOptions => ({
  headers: { 'Idempotency-Key': key },
  ...more,
});

/** A service with a provider that treats instructions in this way, a platform, and its filing. */
async function start(t: TestContext, treatments: Treatments = {}, limits: object = hasty) {
  const provider = openTestProvider(t, treatments);
  const service = await startService(t, { provider, limits });
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  /** Opens an escrow for the filing under one Idempotency-Key. */
  const open = (terms = {}) => openEscrow(service, platform, filingNo, terms, keyed('k'));
  return { provider, service, platform, filingNo, open };
}

function assertReplays(replay: RestAnswer, first: RestAnswer): void {
  assert.equal(replay.headers['idempotent-replayed'], 'true', replay.text);
  assert.deepEqual([replay.status, replay.text], [first.status, first.text]);
}

/** The reason that the provider of tests gives. */
const providerWords = ' The payment provider refused it.';

/** Asserts that the error is a decline that names the order, without its current state. */
function assertDeclined(
  { status, json, text }: RestAnswer,
  kind: string,
  escrowId: string,
  words = '',
): void {
  assert.equal(status, 402, text);
  assert.equal(json.code, 'PAYMENT_DECLINED');
  assert.equal(json.message, `The payment provider declined the ${kind} of ${escrowId}.${words}`);
}

/** Repeats a call until its response is not PAYMENT_PENDING, which has to name the order. */
function untilSettled(escrowId: string, call: () => Promise<RestAnswer>): Promise<RestAnswer> {
  return eventually(`${escrowId} is settled`, timeoutMs, async () => {
    const answer = await call();
    if (answer.json.code !== 'PAYMENT_PENDING') return answer;
    assertRejected(answer, 503, 'PAYMENT_PENDING');
    assert.equal(answer.headers['idempotent-replayed'], undefined);
    assert.equal(escrowIdIn(answer), escrowId);
    return undefined;
  });
}

test('after PAYMENT_PENDING the key of a release keeps that it was declined', async (t) => {
  const { provider, service, platform, filingNo } = await start(t, { RELEASE: 'LOST' });
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  const call = () => releaseEscrow(service, platform, escrowId, keyed('k'));
  assertRejected(await call(), 503, 'PAYMENT_PENDING');
  provider.treat({ RELEASE: 'DECLINED' });
  const declined = await untilSettled(escrowId, call);
  assertDeclined(declined, 'RELEASE', escrowId, providerWords);
  // A declined call stays declined, even if another call pays the order.
  provider.treat({ RELEASE: 'CONFIRMED' });
  const released = await releaseEscrow(service, platform, escrowId, keyed('other'));
  assert.equal(released.json.state, 'RELEASED');
  assertReplays(await call(), declined);
});

test('after PAYMENT_PENDING the key of an escrow continues its order, and keeps its result, also after restarts', async (t) => {
  const { provider, service, platform, filingNo, open } = await start(t, { FREEZE: 'SILENT' });
  const pending = await open();
  assertRejected(pending, 503, 'PAYMENT_PENDING');
  const escrowId = escrowIdIn(pending);
  assertRejected(await open(), 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  await service.close();

  const { dataDir } = service;
  const second = await startService(t, { provider, limits: hasty, dataDir });
  const openAt = (at: TestService, terms = {}) => openEscrow(at, platform, filingNo, terms, keyed('k'));
  assertRejected(await openAt(second), 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  assertRejected(await openAt(second, { amount: 1 }), 422, 'IDEMPOTENCY_KEY_REUSED');
  provider.treat({ FREEZE: 'CONFIRMED' });
  const settled = await untilSettled(escrowId, () => openAt(second));
  assert.equal(settled.status, 200, settled.text);
  const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';
  assert.deepEqual(settled.json, { escrowId, state: 'FROZEN', clearing, amount: 128_000_000 });
  assertRejected(await openAt(second, { amount: 1 }), 422, 'IDEMPOTENCY_KEY_REUSED');
  await releaseEscrow(second, platform, escrowId);
  assertReplays(await openAt(second), settled);
  await second.close();

  const third = await startService(t, { provider, limits: hasty, dataDir });
  assertReplays(await openAt(third), settled);
  assert.equal(provider.carriedOut('FREEZE'), 1);
});

test('the key of a RELEASE does not return the decision of an operator, but the result at the provider', async (t) => {
  const { provider, service, platform, filingNo } = await start(t, { RELEASE: 'KEPT_BACK', REFUND: 'LOST' });
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  provider.report((_, truth) => ({ ...truth, amount: 1n }));
  const release = () => releaseEscrow(service, platform, escrowId, keyed('k'));
  assertRejected(await release(), 503, 'PAYMENT_PENDING');
  await eventually('the order needs a review', timeoutMs, async () => {
    const found = await service.execute({ kind: 'FindCase', escrowId });
    return found?.review !== undefined;
  });
  const returning = {
    kind: 'Decide',
    by: tester,
    escrowId,
    decision: 'RETURN',
    instructionId: 'back',
  } as const;
  await service.execute({ ...returning, nowMs: Date.now() });
  await provider.instructed('REFUND');
  assertRejected(await release(), 503, 'PAYMENT_PENDING');
  provider.report();
  await provider.answer();
  const released = await untilSettled(escrowId, release);
  assert.equal(released.status, 200, released.text);
  assert.equal(released.json.state, 'RELEASED');
  assertReplays(await release(), released);
});

test('the first response comes late, even if the order was released before the call was repeated', async (t) => {
  const { service, platform, open } = await start(t, { FREEZE: 'ANSWER_LOST' });
  const escrowId = escrowIdIn(await open());
  await eventually('the order is released', timeoutMs, async () => {
    const { status } = await releaseEscrow(service, platform, escrowId);
    return status === 200;
  });
  const late = await open();
  assert.equal(late.status, 200, late.text);
  assert.deepEqual([late.json.escrowId, late.json.state], [escrowId, 'FROZEN']);
  assertReplays(await open(), late);
});

test('a hold that lapsed before its order was FROZEN is never reported as FROZEN', async (t) => {
  const { provider, service, platform, open } = await start(t, { FREEZE: 'ANSWER_LOST' }, hastyOnce);
  const escrowId = escrowIdIn(await open());
  provider.lapse(escrowId);
  const { headers, body } = provider.notification(escrowId);
  const target = `${service.publicUrl}/payment/notifications`;
  assert.equal((await fetch(target, { method: 'POST', headers, body: Buffer.from(body) })).status, 200);
  const settled = await untilSettled(escrowId, open);
  assertDeclined(settled, 'FREEZE', escrowId);
  assert.deepEqual(
    (await getEscrow(service, platform, escrowId)).json.history.map(({ state }: { state: string }) => state),
    ['UNPAID', 'CLOSED'],
  );
});

test('a late hold is pending under its key while it is cancelled, and then declined', async (t) => {
  const { provider, open } = await start(
    t,
    { FREEZE: 'KEPT_BACK', CANCEL: 'SILENT' },
    { ...hasty, freezeDeadlineMs: 0 },
  );
  const escrowId = escrowIdIn(await open());
  await eventually('the order is being cancelled', timeoutMs, () =>
    provider.instructions.some(({ kind }) => kind === 'CANCEL'),
  );
  await provider.answer();
  assert.equal(provider.statusOf(escrowId), 'HELD');
  const asked = provider.lookUps.length;
  // Twice: the first of the two may have been under way before the hold was made.
  await eventually('a look-up has found the hold', timeoutMs, () => provider.lookUps.length >= asked + 2);
  assertRejected(await open(), 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  provider.treat({ CANCEL: 'CONFIRMED' });
  const declined = await untilSettled(escrowId, open);
  assertDeclined(declined, 'FREEZE', escrowId);
  assertReplays(await open(), declined);
  assert.equal(provider.statusOf(escrowId), 'RETURNED');
});

test('a key identifies one operation on one order', async (t) => {
  const { service, platform, filingNo } = await start(t);
  const { escrowId } = (await openEscrow(service, platform, filingNo, {}, keyed('k'))).json;
  for (const resolve of [releaseEscrow, refundEscrow]) {
    assertRejected(await resolve(service, platform, escrowId, keyed('k')), 422, 'IDEMPOTENCY_KEY_REUSED');
  }
  await releaseEscrow(service, platform, escrowId, keyed('r'));
  assertRejected(await refundEscrow(service, platform, escrowId, keyed('r')), 422, 'IDEMPOTENCY_KEY_REUSED');
  const another = await releaseEscrow(service, platform, 'ES-2026-0000', keyed('r'));
  assertRejected(another, 422, 'IDEMPOTENCY_KEY_REUSED');
});
