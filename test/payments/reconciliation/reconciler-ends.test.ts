import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import type { OrderEnd } from '../../../src/domain/resolution.ts';
import { tester } from '../../support/audit-log.ts';
import { frozen, type Kit, kitLimits } from './kit.ts';

const { longestRetryMs, pollMs } = kitLimits;
const evidence = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

async function end(kit: Kit, escrowId: string, as: OrderEnd): Promise<void> {
  const at = { atMs: kit.clock.nowMs(), timestamp: '2026-11-21T12:00:00+00:00' };
  await kit.execute({ kind: 'EndOrder', by: tester, escrowId, end: as, evidence, at });
}

test('no instruction is sent for an order that an operator ended, not even an open RELEASE', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.treat({ RELEASE: 'LOST' });
  kit.provider.treatLookUps({ kind: 'SILENT' });
  await kit.resolve('RELEASE', escrowId);
  await end(kit, escrowId, 'REFUNDED');
  kit.provider.treat({});
  kit.provider.treatLookUps({ kind: 'NONE' });
  await kit.pass(2 * longestRetryMs);
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'RELEASE']);
  assert.equal(kit.provider.carriedOut('RELEASE'), 0);
});

for (const [as, said, then] of [
  ['RELEASED', 'RETURNED', 'review'],
  ['RELEASED', 'PAID_OUT', 'nothing'],
  ['REFUNDED', 'PAID_OUT', 'review'],
  ['CLOSED', 'HELD', 'REFUND'],
  ['CLOSED', 'VOID', 'nothing'],
] as const) {
  test(`an order that an operator ended as ${as}, and the provider reports as ${said}: ${then}`, async (t) => {
    const { kit, escrowId } = await frozen(t);
    await end(kit, escrowId, as);
    kit.provider.report((_, truth): PaymentSnapshot => ({ ...truth, status: said }));
    await kit.pass(2 * pollMs);
    const { order, review, open } = await kit.case(escrowId);
    assert.equal(order.state, as);
    assert.equal(order.history.at(-1)?.state, as);
    if (then === 'review') assert.match(review ?? '', new RegExp(`The order (is|was) ${as}`));
    if (then === 'nothing') assert.deepEqual([review, open], [undefined, []]);
    assert.deepEqual(kit.kindsSent(), then === 'REFUND' ? ['FREEZE', 'REFUND'] : ['FREEZE']);
    const sale = as === 'RELEASED' ? ['TRANSFER'] : [];
    assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED', ...sale]);
  });
}

for (const [as, waits] of [
  ['RELEASED', false],
  ['REFUNDED', false],
  ['CLOSED', true],
] as const) {
  test(`an order that an operator ended as ${as} ${waits ? 'needs' : 'does not need'} review again after missing responses`, async (t) => {
    const { kit, escrowId } = await frozen(t, { attemptsMax: 3 });
    kit.provider.treatLookUps({ kind: 'SILENT' });
    await end(kit, escrowId, as);
    await kit.pass(10 * longestRetryMs);
    const asked = kit.provider.lookUps.length;
    const { order, review } = await kit.case(escrowId);
    assert.deepEqual([order.state, review !== undefined], [as, waits]);
    assert.equal(kit.logged.filter(({ msg }) => /needs a person/.test(msg)).length, waits ? 1 : 0);
    await kit.pass(10 * longestRetryMs);
    assert.equal(kit.provider.lookUps.length, asked, 'nobody is asked any more');
    if (!waits) return;
    await end(kit, escrowId, as);
    await kit.pass(10 * longestRetryMs);
    assert.deepEqual([(await kit.case(escrowId)).review, kit.provider.lookUps.length], [undefined, asked]);
    // A notification has it asked all the same, and the hold that is there goes back, once.
    kit.provider.treatLookUps({ kind: 'NONE' });
    await kit.notify(escrowId);
    await kit.pass(2 * pollMs);
    assert.deepEqual(kit.kindsSent(), ['FREEZE', 'REFUND']);
    assert.equal(await kit.stateOf(escrowId), 'CLOSED');
  });
}
