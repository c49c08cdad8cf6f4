import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Decision } from '../../../src/domain/resolution.ts';
import { frozen, type Kit, kitLimits, openKit } from './kit.ts';

async function decide(kit: Kit, escrowId: string, decision: Decision): Promise<void> {
  await kit.decide(escrowId, decision);
  await kit.pass(2 * kitLimits.pollMs);
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
  const expiresAtMs = kit.clock.nowMs() + 86_400_000 + kitLimits.quietLookUpMs / 2;
  kit.provider.report((_, truth) => ({ ...truth, holdExpiresAtMs: expiresAtMs }));
  const escrowId = await kit.open();
  const warnings = () => kit.logged.filter(({ msg }) => /lapses soon/.test(msg)).length;
  assert.equal((await kit.case(escrowId)).order.holdExpiresAtMs, Math.floor(expiresAtMs / 1_000) * 1_000);
  assert.equal(warnings(), 0);
  await kit.pass(2 * kitLimits.quietLookUpMs);
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
