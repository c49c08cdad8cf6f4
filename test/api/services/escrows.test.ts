import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { getEscrow, openEscrow, refundEscrow, releaseEscrow } from '../../support/calls.ts';
import { apiNames, type EscrowResult, startApis } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openTestProvider, type Report } from '../../support/simulator.ts';

const url = 'https://bank.example/confirm/1?session=a%20b';
const awaitingBuyer: Report = () => ({ status: 'AWAITING_BUYER', nextActionUrl: url });
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;
const timeoutMs = 60_000;

const provider = openTestProvider(fileScope);
const { service, platform, apis, file, transfersOf } = await startApis(fileScope, {
  provider,
  limits: { pollMs: 10, buyerLookUpMs: 20 },
});

/** Opens a FROZEN order through an API. */
async function openFrozen(name: (typeof apiNames)[number]) {
  const filingNo = await file();
  const { escrowId, state, message } = await apis[name].open(filingNo);
  assert.equal(state, 'FROZEN', message);
  return { escrowId, filingNo };
}

/** Asserts that a call failed with a reason and a message about an order. */
function assertRejected({ code, message }: EscrowResult, reason: string, pattern: string): void {
  assert.equal(code, reason, message);
  assert.match(message, new RegExp(pattern));
}

for (const name of apiNames) {
  const api = apis[name];

  for (const { kind, verb, other, state, transfers } of [
    { kind: 'RELEASE', verb: 'release', other: 'refund', state: 'RELEASED', transfers: 1 },
    { kind: 'REFUND', verb: 'refund', other: 'release', state: 'REFUNDED', transfers: 0 },
  ] as const) {
    test(`${name}: a ${verb} ends the order as ${state}, and later resolutions are rejected`, async () => {
      const { escrowId, filingNo } = await openFrozen(name);
      const done = await api[verb](escrowId);
      assert.deepEqual([done.state, done.history], [state, ['UNPAID', 'FROZEN', state]], done.message);
      for (const again of [verb, other] as const) {
        const message = `^${escrowId} is ${state}; only (a|an UNPAID or) FROZEN order`;
        assertRejected(await api[again](escrowId), 'ESCROW_STATE_CONFLICT', message);
      }
      assert.deepEqual(await api.get(escrowId), done);
      assert.equal(await transfersOf(filingNo), transfers);
      const sent = provider.instructionsOf(escrowId).map((instruction) => instruction.kind);
      assert.deepEqual(sent, ['FREEZE', kind]);
      assert.equal((await api.open(filingNo)).state, 'FROZEN', 'the artwork can be sold again');
    });
  }

  test(`${name}: a refund closes an order whose buyer has not acted, and the artwork can be sold again`, async () => {
    const filingNo = await file();
    provider.report((_, payment) => (payment.status === 'HELD' ? awaitingBuyer(_, payment) : payment));
    const { escrowId, state } = await api.open(filingNo);
    assert.equal(state, 'UNPAID');
    const closed = await api.refund(escrowId);
    assert.deepEqual([closed.state, closed.pending], ['CLOSED', undefined], closed.message);
    assert.deepEqual(closed.history, ['UNPAID', 'CLOSED']);
    const { events } = await service.execute({ kind: 'ReadAllEvents', after: undefined });
    const types = events.filter((event) => event.escrowId === escrowId).map(({ type }) => type);
    assert.deepEqual(types, ['escrow.closed']);
    provider.report();
    assert.equal((await api.open(filingNo)).state, 'FROZEN');
  });

  test(`${name}: a declined hold closes the order, and the buyer learns why and nothing else of the provider`, async () => {
    provider.treat({ FREEZE: 'DECLINED' });
    const words = 'The card has too little money for this.';
    const detail = 'decline_code insufficient_funds of cus_1, req_1';
    provider.report((_, truth) => ({ ...truth, declined: { code: 'card_declined', words, detail } }));
    const filingNo = await file();
    const { code, message, escrowId } = await api.open(filingNo);
    provider.treat({ FREEZE: 'CONFIRMED' });
    provider.report();
    assert.equal(code, 'PAYMENT_DECLINED');
    assert.equal(message, `The payment provider declined the FREEZE of ${escrowId}. ${words}`);
    assert.deepEqual((await api.get(escrowId)).history, ['UNPAID', 'CLOSED']);
    assert.equal((await api.open(filingNo)).state, 'FROZEN');
  });
}

for (const [instruction, verb, isPaid] of [
  ['RELEASE', 'release', true],
  ['REFUND', 'refund', true],
  ['CANCEL', 'refund', false],
] as const) {
  test(`a ${verb} whose ${instruction} the provider declines gets PAYMENT_DECLINED`, async () => {
    if (!isPaid) provider.report(awaitingBuyer);
    const { escrowId } = await apis.REST.open(await file());
    provider.treat({ [instruction]: 'DECLINED' });
    const declined = await apis.REST[verb](escrowId);
    provider.report();
    provider.treat({ [instruction]: 'CONFIRMED' });
    assertRejected(declined, 'PAYMENT_DECLINED', `declined the ${verb.toUpperCase()} of ${escrowId}\\.`);
    assert.equal((await apis.REST.get(escrowId)).state, isPaid ? 'FROZEN' : 'UNPAID');
    const found = await service.execute({ kind: 'FindCase', escrowId });
    assert.equal(found?.review?.includes('declines to give back') ?? false, !isPaid);
  });
}

test('an order in review is neither released nor refunded', async () => {
  const { escrowId } = await openFrozen('REST');
  provider.report((_, payment) => ({ ...payment, amount: 1n }));
  const [{ holdId } = assert.fail()] = provider.instructionsOf(escrowId);
  const notification = { eventId: escrowId, about: { holdId }, nowMs: Date.now() };
  await service.execute({ kind: 'TakeNotification', ...notification });
  await eventually('the order is in review', timeoutMs, async () => {
    const found = await service.execute({ kind: 'FindCase', escrowId });
    return found?.review !== undefined;
  });
  provider.report();
  for (const verb of ['release', 'refund'] as const)
    assertRejected(await apis.REST[verb](escrowId), 'ESCROW_STATE_CONFLICT', 'decision of the operator');
});

test('a refund during the FREEZE gives the hold back and closes the order', async () => {
  provider.treat({ FREEZE: 'KEPT_BACK' });
  const before = provider.instructions.length;
  const opening = openEscrow(service, platform, await file());
  await eventually('the provider has the FREEZE', timeoutMs, () => provider.instructions.length > before);
  const { escrowId } = provider.instructions.at(-1) ?? assert.fail();
  const refunding = refundEscrow(service, platform, escrowId);
  await eventually(
    'the refund is stored',
    timeoutMs,
    async () => (await apis.REST.get(escrowId)).pending === 'REFUND',
  );
  await provider.answer();
  provider.treat({ FREEZE: 'CONFIRMED' });
  const [opened, refunded] = await Promise.all([opening, refunding]);
  assert.equal(opened.json.code, 'PAYMENT_PENDING');
  assert.deepEqual([refunded.status, refunded.json.state], [200, 'CLOSED']);
  assert.equal(provider.statusOf(escrowId), 'RETURNED');
});

test('of concurrent orders for one artwork, through both APIs, one is opened and held', async () => {
  provider.treat({ FREEZE: 'KEPT_BACK' });
  const before = provider.instructions.length;
  const filingNo = await file();
  const calls = Array.from({ length: 10 }, () => apiNames.map((name) => apis[name].open(filingNo))).flat();
  await eventually('the provider has a FREEZE', timeoutMs, () => provider.instructions.length > before);
  // The others do not wait for the one that holds.
  assert.equal((await Promise.race(calls)).code, 'ESCROW_ACTIVE');
  await provider.answer();
  provider.treat({ FREEZE: 'CONFIRMED' });
  const results = await Promise.all(calls);
  assert.equal(results.filter(({ state }) => state === 'FROZEN').length, 1);
  assert.equal(results.filter(({ code }) => code === 'ESCROW_ACTIVE').length, calls.length - 1);
  assert.equal(provider.instructions.length, before + 1);
});

test('a required action of the buyer is in the response and in each read until it is done', async () => {
  provider.report(awaitingBuyer);
  const filingNo = await file();
  const options = { headers: { 'Idempotency-Key': randomUUID() } };
  const opened = await openEscrow(service, platform, filingNo, {}, options);
  assert.equal(opened.status, 200);
  const { escrowId, amount, nextAction } = opened.json;
  assert.match(nextAction.expiresAt, rfc3339);
  assert.deepEqual(opened.json, {
    ...{ escrowId, state: 'UNPAID', clearing: 'LICENSED_PSP_NO_SECOND_CLEARING', amount },
    nextAction: { url, expiresAt: nextAction.expiresAt },
  });
  const { json: read } = await getEscrow(service, platform, escrowId);
  assert.deepEqual([read.state, read.pending, read.nextAction], ['UNPAID', 'FREEZE', nextAction]);
  const again = await openEscrow(service, platform, filingNo, {}, options);
  assert.deepEqual([again.status, again.json], [200, opened.json]);

  provider.report();
  await eventually('the amount is held', timeoutMs, async () => {
    const { json } = await getEscrow(service, platform, escrowId);
    return json.state === 'FROZEN' && !('nextAction' in json);
  });
  const last = await openEscrow(service, platform, filingNo, {}, options);
  assert.deepEqual(last.json, { escrowId, state: 'FROZEN', clearing: read.clearing, amount });
  assert.equal(provider.instructionsOf(escrowId).length, 1);
});

test('a read shows the end of the hold only while the order is FROZEN', async () => {
  const holdExpiresAtMs = Date.parse('2026-12-01T08:00:00.750Z');
  provider.report((_, truth) => ({ ...truth, holdExpiresAtMs }));
  const { json: opened } = await openEscrow(service, platform, await file());
  assert.deepEqual(Object.keys(opened), ['escrowId', 'state', 'clearing', 'amount']);
  const { json: frozen } = await getEscrow(service, platform, opened.escrowId);
  assert.equal(frozen.holdExpiresAt, '2026-12-01T08:00:00+00:00');
  const { json: released } = await releaseEscrow(service, platform, opened.escrowId);
  assert.deepEqual([released.state, 'holdExpiresAt' in released], ['RELEASED', false]);
  provider.report();
});

test('the history has what happened to the money after the release', async () => {
  const { escrowId } = await openFrozen('REST');
  await releaseEscrow(service, platform, escrowId);
  provider.report((_, truth) => ({ ...truth, status: 'PARTLY_RETURNED', amount: 5n }));
  const [{ holdId } = assert.fail()] = provider.instructionsOf(escrowId);
  const notification = { eventId: 'refunded', about: { holdId }, nowMs: Date.now() };
  await service.execute({ kind: 'TakeNotification', ...notification });
  const history = await eventually('the refund is in the history', timeoutMs, async () => {
    const { json } = await getEscrow(service, platform, escrowId);
    return json.state === 'RELEASED' && json.history.length === 4 && json.history;
  });
  const { at, ...rest } = history.at(-1);
  assert.match(at, rfc3339);
  assert.deepEqual(rest, { state: 'RELEASED', payment: 'PARTLY_RETURNED', left: 5 });
});
