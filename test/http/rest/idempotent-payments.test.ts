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
import { assertRefused } from '../../support/rejected.ts';
import { startService, type TestService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider, type TestProvider } from '../../support/simulator.ts';

/** Patience that runs out at once, and recovery that does not wait. */
const hasty = { answerTimeoutMs: 20, firstRetryMs: 10, longestRetryMs: 40, pollMs: 10 };
/** The same, but nothing is tried again unless a notification makes an order due. */
const hastyOnce = { ...hasty, firstRetryMs: 3_600_000, longestRetryMs: 3_600_000 };
/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

const keyed = (key: string, more: CallOptions = {}): CallOptions => ({
  headers: { 'Idempotency-Key': key },
  ...more,
});

async function start(
  t: TestContext,
  provider: TestProvider,
  { limits = hasty, dataDir }: { limits?: object; dataDir?: string } = {},
) {
  const service = await startService(t, { provider, limits, ...(dataDir && { dataDir }) });
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  return { service, platform, filingNo };
}

function assertReplays(replay: RestAnswer, first: RestAnswer): void {
  assert.equal(replay.headers['idempotent-replayed'], 'true', replay.text);
  assert.deepEqual([replay.status, replay.text], [first.status, first.text]);
}

/** Asserts that the provider's no is told, naming the order, but not the state that it has come to since. */
/** What the provider of tests says why. */
const refusedWords = ' The payment provider refused it.';

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

/** Repeats a call until its answer is not PAYMENT_PENDING; each that is names the order. */
function untilSettled(escrowId: string, call: () => Promise<RestAnswer>): Promise<RestAnswer> {
  return eventually(`${escrowId} is settled`, timeoutMs, async () => {
    const answer = await call();
    if (answer.json.code !== 'PAYMENT_PENDING') return answer;
    assertRefused(answer, 503, 'PAYMENT_PENDING');
    assert.equal(answer.headers['idempotent-replayed'], undefined);
    assert.equal(escrowIdIn(answer), escrowId);
    return undefined;
  });
}

/** Sends a call fifty times at once; its one answer, which all others have again or wait for. */
async function fifty(call: () => Promise<RestAnswer>): Promise<RestAnswer> {
  const answers = await Promise.all(Array.from({ length: 50 }, call));
  const done = answers.filter(({ status }) => status === 200);
  assert.ok(done.length > 0);
  assert.equal(new Set(done.map(({ text }) => text)).size, 1);
  assert.equal(done.filter(({ headers }) => headers['idempotent-replayed'] === undefined).length, 1);
  for (const answer of answers) {
    if (answer.status !== 200) assertRefused(answer, 409, 'IDEMPOTENCY_IN_PROGRESS');
  }
  return done[0] ?? assert.fail();
}

test('an escrow that is sent fifty times at once under one key is one order', async (t) => {
  const provider = openTestProvider(t);
  const { service, platform, filingNo } = await start(t, provider);
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('rush'));
  const first = await fifty(open);
  assert.equal(first.json.state, 'FROZEN');
  assertReplays(await open(), first);
  assert.equal(provider.instructions.length, 1);
  const { items } = await service.execute({
    kind: 'ListEscrows',
    filter: { owner: undefined, state: undefined, filingNo: undefined },
    page: { from: undefined, size: 10 },
  });
  assert.equal(items.length, 1);
});

for (const [kind, resolve, state] of [
  ['RELEASE', releaseEscrow, 'RELEASED'],
  ['REFUND', refundEscrow, 'REFUNDED'],
] as const) {
  test(`a ${kind} that is sent fifty times at once under one key is paid once`, async (t) => {
    const provider = openTestProvider(t);
    const { service, platform, filingNo } = await start(t, provider);
    const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
    const call = () => resolve(service, platform, escrowId, keyed('rush'));
    const first = await fifty(call);
    assert.equal(first.json.state, state);
    assertReplays(await call(), first);
    assert.equal(provider.carriedOut(kind), 1);
    // Without the key it is another call, which comes too late.
    assertRefused(await resolve(service, platform, escrowId), 409, 'ESCROW_STATE_CONFLICT');
  });

  test(`after PAYMENT_PENDING the key of a ${kind} goes on with it, and keeps its end`, async (t) => {
    const provider = openTestProvider(t, { [kind]: 'SILENT' });
    const { service, platform, filingNo } = await start(t, provider);
    const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
    const call = () => resolve(service, platform, escrowId, keyed('k'));
    for (const _ of ['first', 'second']) assertRefused(await call(), 503, 'PAYMENT_PENDING');
    provider.treat({ [kind]: 'CONFIRMED' });
    const settled = await untilSettled(escrowId, call);
    assert.equal(settled.status, 200, settled.text);
    assert.deepEqual(settled.json, (await getEscrow(service, platform, escrowId)).json);
    assert.equal(settled.json.state, state);
    assertReplays(await call(), settled);
    assert.equal(provider.carriedOut(kind), 1);
  });

  test(`after PAYMENT_PENDING the key of a ${kind} keeps that it was declined`, async (t) => {
    const provider = openTestProvider(t, { [kind]: 'LOST' });
    const { service, platform, filingNo } = await start(t, provider);
    const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
    const call = () => resolve(service, platform, escrowId, keyed('k'));
    assertRefused(await call(), 503, 'PAYMENT_PENDING');
    provider.treat({ [kind]: 'DECLINED' });
    const declined = await untilSettled(escrowId, call);
    assertDeclined(declined, kind, escrowId, refusedWords);
    // What was declined stays so, even if the order is paid out or back by another call.
    provider.treat({ [kind]: 'CONFIRMED' });
    assert.equal((await resolve(service, platform, escrowId, keyed('other'))).json.state, state);
    assertReplays(await call(), declined);
  });
}

test('after PAYMENT_PENDING the key of an escrow goes on with its order, and keeps its end', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const { service, platform, filingNo } = await start(t, provider);
  const open = (terms = {}) => openEscrow(service, platform, filingNo, terms, keyed('k'));
  const pending = await open();
  assertRefused(pending, 503, 'PAYMENT_PENDING');
  const escrowId = escrowIdIn(pending);
  const again = await open();
  assertRefused(again, 503, 'PAYMENT_PENDING');
  assert.equal(escrowIdIn(again), escrowId);
  assertRefused(await open({ amount: 1 }), 422, 'IDEMPOTENCY_KEY_REUSED');
  provider.treat({ FREEZE: 'CONFIRMED' });
  const settled = await untilSettled(escrowId, open);
  assert.equal(settled.status, 200, settled.text);
  const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';
  assert.deepEqual(settled.json, { escrowId, state: 'FROZEN', clearing, amount: 128_000_000 });
  assertReplays(await open(), settled);
  assertRefused(await open({ amount: 1 }), 422, 'IDEMPOTENCY_KEY_REUSED');
  assert.equal(provider.carriedOut('FREEZE'), 1);
  await releaseEscrow(service, platform, escrowId);
  assertReplays(await open(), settled);
});

test('the key of a RELEASE is not told a no that only a person said, and is told how it ended', async (t) => {
  const provider = openTestProvider(t, { RELEASE: 'KEPT_BACK', REFUND: 'LOST' });
  const { service, platform, filingNo } = await start(t, provider);
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  provider.report((_, truth) => ({ ...truth, amount: 1n }));
  const release = () => releaseEscrow(service, platform, escrowId, keyed('k'));
  assertRefused(await release(), 503, 'PAYMENT_PENDING');
  await eventually('the order waits for a person', timeoutMs, async () => {
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
  assertRefused(await release(), 503, 'PAYMENT_PENDING');
  provider.report();
  await provider.answer();
  const released = await untilSettled(escrowId, release);
  assert.equal(released.status, 200, released.text);
  assert.equal(released.json.state, 'RELEASED');
  assertReplays(await release(), released);
});

test('the first answer is given late: also when the order was paid out before anybody asked', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'ANSWER_LOST' });
  const { service, platform, filingNo } = await start(t, provider);
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
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

test('after PAYMENT_PENDING the key of an escrow keeps that it was declined', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'LOST' });
  const { service, platform, filingNo } = await start(t, provider);
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
  const escrowId = escrowIdIn(await open());
  provider.treat({ FREEZE: 'DECLINED' });
  const declined = await untilSettled(escrowId, open);
  assertDeclined(declined, 'FREEZE', escrowId, refusedWords);
  assertReplays(await open(), declined);
  provider.treat({ FREEZE: 'CONFIRMED' });
  const next = await openEscrow(service, platform, filingNo, {}, keyed('another'));
  assert.equal(next.json.state, 'FROZEN');
  assertReplays(await open(), declined);
});

test('an order that waited too long is declined under its key', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const { service, platform, filingNo } = await start(t, provider, {
    limits: { ...hasty, freezeDeadlineMs: 100 },
  });
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
  const escrowId = escrowIdIn(await open());
  const declined = await untilSettled(escrowId, open);
  assertDeclined(declined, 'FREEZE', escrowId);
  assertReplays(await open(), declined);
});

test('a hold that went back before its order was FROZEN is never answered as FROZEN', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'ANSWER_LOST' });
  const { service, platform, filingNo } = await start(t, provider, { limits: hastyOnce });
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
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

test('a late hold that is being given back is pending under its key, and then declined', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK', CANCEL: 'SILENT' });
  const { service, platform, filingNo } = await start(t, provider, {
    limits: { ...hasty, freezeDeadlineMs: 0 },
  });
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
  const escrowId = escrowIdIn(await open());
  await eventually('it is being cancelled', timeoutMs, () =>
    provider.instructions.some(({ kind }) => kind === 'CANCEL'),
  );
  await provider.answer();
  assert.equal(provider.statusOf(escrowId), 'HELD');
  const asked = provider.lookUps.length;
  // Twice: the first of the two may have been under way before the hold was made.
  await eventually('it was seen to be held', timeoutMs, () => provider.lookUps.length >= asked + 2);
  assertRefused(await open(), 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  provider.treat({ CANCEL: 'CONFIRMED' });
  const declined = await untilSettled(escrowId, open);
  assertDeclined(declined, 'FREEZE', escrowId);
  assert.equal(provider.statusOf(escrowId), 'RETURNED');
});

test('a pending key goes on over a restart, and keeps its end over another', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const first = await start(t, provider);
  const { platform, filingNo } = first;
  const { dataDir } = first.service;
  const openAt = (service: TestService) => openEscrow(service, platform, filingNo, {}, keyed('k'));
  const escrowId = escrowIdIn(await openAt(first.service));
  await first.service.close();

  const second = await startService(t, { provider, limits: hasty, dataDir });
  assertRefused(await openAt(second), 503, 'PAYMENT_PENDING', new RegExp(escrowId));
  const reused = await openEscrow(second, platform, filingNo, { amount: 1 }, keyed('k'));
  assertRefused(reused, 422, 'IDEMPOTENCY_KEY_REUSED');
  provider.treat({ FREEZE: 'CONFIRMED' });
  const settled = await untilSettled(escrowId, () => openAt(second));
  assert.equal(settled.status, 200, settled.text);
  assert.deepEqual([settled.json.escrowId, settled.json.state], [escrowId, 'FROZEN']);
  await second.close();

  const third = await startService(t, { provider, limits: hasty, dataDir });
  assertReplays(await openAt(third), settled);
  assert.equal(provider.carriedOut('FREEZE'), 1);
});

test('a key stands for one operation on one order', async (t) => {
  const provider = openTestProvider(t);
  const { service, platform, filingNo } = await start(t, provider);
  const { escrowId } = (await openEscrow(service, platform, filingNo, {}, keyed('k'))).json;
  for (const resolve of [releaseEscrow, refundEscrow]) {
    assertRefused(await resolve(service, platform, escrowId, keyed('k')), 422, 'IDEMPOTENCY_KEY_REUSED');
  }
  await releaseEscrow(service, platform, escrowId, keyed('r'));
  assertRefused(await refundEscrow(service, platform, escrowId, keyed('r')), 422, 'IDEMPOTENCY_KEY_REUSED');
  const another = await releaseEscrow(service, platform, 'ES-2026-0000', keyed('r'));
  assertRefused(another, 422, 'IDEMPOTENCY_KEY_REUSED');
});

test('two keys of one release under way lead to one payment, and each keeps the same end', async (t) => {
  const provider = openTestProvider(t, { RELEASE: 'SILENT' });
  const { service, platform, filingNo } = await start(t, provider);
  const { escrowId } = (await openEscrow(service, platform, filingNo)).json;
  const calls = ['a', 'b'].map((key) => () => releaseEscrow(service, platform, escrowId, keyed(key)));
  for (const call of calls) assertRefused(await call(), 503, 'PAYMENT_PENDING');
  provider.treat({ RELEASE: 'CONFIRMED' });
  const ends = await Promise.all(calls.map((call) => untilSettled(escrowId, call)));
  for (const end of ends) assert.equal(end.status, 200, end.text);
  assert.equal(ends[0]?.text, ends[1]?.text);
  assert.equal(provider.carriedOut('RELEASE'), 1);
});

test('a pending answer counts for the month, since its order was stored; the end of it does not count again', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'SILENT' });
  const service = await startService(t, { provider, limits: hasty });
  const platform = await service.platform('ENTERPRISE', 100);
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const open = () => openEscrow(service, platform, filingNo, {}, keyed('k'));
  const left = ({ headers }: RestAnswer) => /"monthly";r=(\d+)/.exec(String(headers.ratelimit))?.[1];
  const pending = await open();
  assertRefused(pending, 503, 'PAYMENT_PENDING');
  assert.equal(left(pending), '98');
  provider.treat({ FREEZE: 'CONFIRMED' });
  const escrowId = escrowIdIn(pending);
  await eventually(`${escrowId} is FROZEN`, timeoutMs, async () => {
    const order = await service.execute({ kind: 'GetEscrow', escrowId, owner: undefined });
    return order?.state === 'FROZEN';
  });
  const settled = await open();
  assert.equal(settled.status, 200, settled.text);
  assert.equal(settled.headers['idempotent-replayed'], 'true');
  assert.equal(left(settled), '98');
  assertReplays(await open(), settled);
});
