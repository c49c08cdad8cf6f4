import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../../../src/domain/resolution.ts';
import { frozen, type Kit, kitLimits, openKit } from './kit.ts';

const { longestRetryMs, pollMs, quietLookUpMs } = kitLimits;

async function decide(kit: Kit, escrowId: string, decision: Decision): Promise<void> {
  await kit.decide(escrowId, decision);
  await kit.pass(2 * pollMs);
}

test('closing an order returns what was accepted for it while it was UNPAID', async (t) => {
  const kit = await openKit(t);
  kit.provider.report((_, truth) => ({ ...truth, amount: 1n }));
  const escrowId = await kit.open();
  assert.match((await kit.case(escrowId)).review ?? '', /HELD 1 CNY/);
  await kit.decide(escrowId, 'ACCEPT');
  // Before the provider is asked again.
  await kit.close(escrowId);
  kit.provider.report();
  await kit.pass(2 * pollMs);
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'REFUND']);
  assert.equal(kit.provider.statusOf(escrowId), 'RETURNED');
});

test('an order whose missing hold was accepted is only looked up rarely', async (t) => {
  const { kit, escrowId } = await frozen(t);
  const url = 'https://bank.example/confirm/1';
  kit.provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: url }));
  await kit.pass(quietLookUpMs + pollMs);
  assert.match((await kit.case(escrowId)).review ?? '', /AWAITING_BUYER/);
  await kit.decide(escrowId, 'ACCEPT');
  const asked = kit.provider.lookUps.length;
  await kit.pass(20 * pollMs);
  assert.equal(kit.provider.lookUps.length, asked + 1);
  kit.provider.report();
  await kit.pass(quietLookUpMs + pollMs);
  assert.equal(await kit.stateOf(escrowId), 'FROZEN');
});

test('a decision during a RELEASE ends when the RELEASE was carried out', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.treat({ RELEASE: 'KEPT_BACK' });
  const resolving = kit.resolve('RELEASE', escrowId);
  await kit.provider.instructed('RELEASE');
  await kit.decide(escrowId, 'STOP');
  await kit.decide(escrowId, 'RETURN');
  await kit.provider.answer();
  await resolving;
  await kit.pass(2 * pollMs);
  const { order, open } = await kit.case(escrowId);
  assert.deepEqual([order.state, order.pending, open], ['RELEASED', undefined, []]);
});

test('a notification during a look-up of a RELEASED order leads to another one, also in review', async (t) => {
  const { kit, escrowId } = await frozen(t);
  await kit.resolve('RELEASE', escrowId);
  kit.provider.report((_, truth) => ({ ...truth, status: 'PARTLY_RETURNED', amount: 1n }));
  kit.provider.treatLookUps({ kind: 'SLOW', ms: 1_000 });
  const asked = kit.provider.lookUps.length;
  await kit.notify(escrowId);
  await kit.pass(pollMs);
  assert.equal(kit.provider.lookUps.length, asked + 1);
  await kit.notify(escrowId);
  await kit.pass(4_000);
  assert.ok(kit.provider.lookUps.length > asked + 1);
});

test('missing responses do not change the review of a RELEASED order', async (t) => {
  const { kit, escrowId } = await frozen(t, { attemptsMax: 3 });
  await kit.resolve('RELEASE', escrowId);
  kit.provider.report((_, truth) => ({ ...truth, status: 'DISPUTED' }));
  await kit.notify(escrowId);
  await kit.pass(2 * pollMs);
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.notify(escrowId);
  await kit.pass(10 * longestRetryMs);
  assert.match((await kit.case(escrowId)).review ?? '', /DISPUTED/);
  const asked = kit.provider.lookUps.length;
  await kit.pass(10 * longestRetryMs);
  assert.equal(kit.provider.lookUps.length, asked);
  await kit.decide(escrowId, 'ACCEPT');
  kit.provider.treatLookUps({ kind: 'NONE' });
  await kit.pass(longestRetryMs);
  assert.equal((await kit.case(escrowId)).review, undefined);
});

test('a hold that a buyer can still make for a CLOSED order is looked up after it was accepted', async (t) => {
  const kit = await openKit(t);
  const nextActionUrl = 'https://bank.example/confirm/1';
  kit.provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl }));
  const escrowId = await kit.open();
  await kit.close(escrowId);
  await kit.pass(2 * pollMs);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  await decide(kit, escrowId, 'ACCEPT');
  const given = kit.kindsSent().length;
  kit.provider.report((_, truth) => ({ ...truth, status: 'HELD' }));
  await kit.pass(quietLookUpMs + pollMs);
  assert.deepEqual(kit.kindsSent().slice(given), ['REFUND']);
});

/** An order that its seller was paid for without a RELEASE of ours, which waits for a person; the events of its filing. */
async function assertNoSale(kit: Kit, escrowId: string) {
  const { order, review, open } = await kit.case(escrowId);
  assert.equal(order.state, 'FROZEN');
  assert.match(review ?? '', /FROZEN; the provider says PAID_OUT/);
  assert.deepEqual(open, []);
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED']);
}

test('money that was paid out without a RELEASE is no sale until an operator accepts it', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.report((_, truth) => ({ ...truth, status: 'PAID_OUT' }));
  await kit.pass(quietLookUpMs);
  await assertNoSale(kit, escrowId);
  await decide(kit, escrowId, 'LOOK_AGAIN');
  await assertNoSale(kit, escrowId);
  await decide(kit, escrowId, 'ACCEPT');
  assert.equal(await kit.stateOf(escrowId), 'RELEASED');
});

for (const stopped of [false, true]) {
  const after = stopped ? ', that was stopped since and is looked at again' : '';
  test(`money that was paid out is a sale if a RELEASE is open, whose response was lost${after}`, async (t) => {
    const { kit, escrowId } = await frozen(t);
    kit.provider.treat({ RELEASE: 'LOST' });
    await kit.resolve('RELEASE', escrowId);
    if (stopped) await kit.decide(escrowId, 'STOP');
    // Somebody else pays it out, before the RELEASE is given again.
    kit.provider.report((_, truth) => ({ ...truth, status: 'PAID_OUT' }));
    if (stopped) await kit.decide(escrowId, 'LOOK_AGAIN');
    await kit.pass(longestRetryMs);
    assert.equal(await kit.stateOf(escrowId), 'RELEASED');
  });
}

test('a capture that is DISPUTED before a look-up needs review, and an operator can accept it as a release', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.report((_, truth) => ({ ...truth, status: 'DISPUTED' }));
  await kit.resolve('RELEASE', escrowId);
  const stopped = await kit.case(escrowId);
  assert.equal(stopped.order.state, 'FROZEN');
  assert.match(stopped.review ?? '', /DISPUTED/);
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED']);
  await decide(kit, escrowId, 'ACCEPT');
  const { order } = await kit.case(escrowId);
  assert.deepEqual([order.state, order.history.length], ['RELEASED', 4]);
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED', 'TRANSFER']);
});

test('the end of a hold is stored, and each look-up logs a warning from a day before', async (t) => {
  const kit = await openKit(t);
  const expiresAtMs = kit.clock.nowMs() + 86_400_000 + quietLookUpMs / 2;
  kit.provider.report((_, truth) => ({ ...truth, holdExpiresAtMs: expiresAtMs }));
  const escrowId = await kit.open();
  const warnings = () => kit.logged.filter(({ msg }) => /lapses soon/.test(msg)).length;
  assert.equal((await kit.case(escrowId)).order.holdExpiresAtMs, Math.floor(expiresAtMs / 1_000) * 1_000);
  assert.equal(warnings(), 0);
  await kit.pass(2 * quietLookUpMs);
  assert.ok(warnings() >= 1);
});

for (const [release, state] of [
  ['LOST', 'REFUNDED'],
  ['ANSWER_LOST', 'RELEASED'],
] as const) {
  test(`a stopped order that is returned, whose release was ${release}, becomes ${state}`, async (t) => {
    const { kit, escrowId } = await frozen(t);
    kit.provider.treat({ RELEASE: release });
    await kit.resolve('RELEASE', escrowId);
    await kit.decide(escrowId, 'STOP');
    await decide(kit, escrowId, 'RETURN');
    await kit.assertSettled(escrowId, state);
  });
}
