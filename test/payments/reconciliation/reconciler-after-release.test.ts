import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../../../src/domain/resolution.ts';
import { frozen, type Kit, kitLimits, openKit } from './kit.ts';

async function decide(kit: Kit, escrowId: string, decision: Decision): Promise<void> {
  await kit.decide(escrowId, decision);
  await kit.pass(2 * kitLimits.pollMs);
}

/** Returns the history after the release. */
async function since(kit: Kit, escrowId: string) {
  const { order } = await kit.case(escrowId);
  assert.equal(order.state, 'RELEASED');
  return order.history.slice(3).map(({ state, payment, amount }) => [state, payment, amount]);
}

test('a capture that was returned in full before a look-up is no release', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.report((_, truth) => ({ ...truth, status: 'RETURNED' }));
  const { status, order } = await kit.resolve('RELEASE', escrowId);
  assert.deepEqual([status, order.state], ['DECLINED', 'REFUNDED']);
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED']);
});

for (const status of ['DISPUTED', 'PARTLY_RETURNED'] as const) {
  test(`a capture that is ${status} before a look-up needs review, and an operator can accept it as a release`, async (t) => {
    const { kit, escrowId } = await frozen(t);
    kit.provider.report((_, truth) => ({ ...truth, status, amount: 1n }));
    await kit.resolve('RELEASE', escrowId);
    const stopped = await kit.case(escrowId);
    assert.equal(stopped.order.state, 'FROZEN');
    assert.match(stopped.review ?? '', new RegExp(status));
    assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED']);
    await decide(kit, escrowId, 'ACCEPT');
    assert.equal((await since(kit, escrowId)).length, 1);
    assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED', 'TRANSFER']);
  });
}

test('the end of a hold is stored, and each look-up logs a warning from a day before', async (t) => {
  const kit = await openKit(t);
  const expiresAtMs = kit.clock.nowMs() + 86_400_000 + kitLimits.quietLookUpMs / 2;
  kit.provider.report((_, truth) => ({ ...truth, holdExpiresAtMs: expiresAtMs }));
  const escrowId = await kit.open();
  const warnings = () => kit.logged.filter(({ msg }) => /lapses soon/.test(msg)).length;
  assert.equal((await kit.case(escrowId)).order.holdExpiresAtMs, Math.floor(expiresAtMs / 1_000) * 1_000);
  assert.equal(warnings(), 0);
  await kit.pass(2 * kitLimits.quietLookUpMs);
  assert.ok(warnings() >= 1);
});

test('an operator stops an order that waits for the provider; a look-up resumes it', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.treat({ RELEASE: 'LOST' });
  await kit.resolve('RELEASE', escrowId);
  await kit.decide(escrowId, 'STOP');
  assert.match((await kit.case(escrowId)).review ?? '', /An operator stopped it/);
  const asked = kit.provider.lookUps.length;
  await kit.pass(kitLimits.longestRetryMs);
  assert.equal(kit.provider.lookUps.length, asked);
  kit.provider.treat({ RELEASE: 'CONFIRMED' });
  await decide(kit, escrowId, 'LOOK_AGAIN');
  assert.equal(await kit.stateOf(escrowId), 'RELEASED');
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
