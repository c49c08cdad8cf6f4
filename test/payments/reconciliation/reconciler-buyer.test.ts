import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import type { ReconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { kitLimits, openKit } from './kit.ts';

const { buyerDeadlineMs, buyerLookUpMs, freezeDeadlineMs } = kitLimits;
const url = 'https://bank.example/confirm/1';

/** An order whose buyer has to act. */
async function awaiting(t: TestContext, limits?: Partial<ReconciliationLimits>) {
  const kit = await openKit(t, limits);
  kit.provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: url }));
  const escrowId = await kit.open();
  assert.equal(await kit.stateOf(escrowId), 'UNPAID');
  return { kit, escrowId };
}

test('an order whose buyer has to act stays UNPAID with page and deadline, and its FREEZE stays open', async (t) => {
  const { kit, escrowId } = await awaiting(t);
  const { order, open } = await kit.case(escrowId);
  assert.deepEqual(order.nextAction, { url, untilMs: kit.clock.nowMs() + buyerDeadlineMs });
  assert.equal(order.pending, 'FREEZE');
  assert.deepEqual(
    open.map(({ kind, status }) => [kind, status]),
    [['FREEZE', 'SENT']],
  );
});

test('the deadline of the provider ends the wait for the buyer', async (t) => {
  const kit = await openKit(t);
  const nextActionExpiresAtMs = kit.clock.nowMs() + 600_000;
  kit.provider.report(() => ({ status: 'AWAITING_BUYER', nextActionUrl: url, nextActionExpiresAtMs }));
  const escrowId = await kit.open();
  assert.equal((await kit.case(escrowId)).order.nextAction?.untilMs, nextActionExpiresAtMs);
});

test('the FREEZE is not sent again while the buyer is awaited, and the order continues when the buyer has acted', async (t) => {
  const { kit, escrowId } = await awaiting(t);
  const untilMs = kit.clock.nowMs() + buyerDeadlineMs;
  await kit.pass(freezeDeadlineMs + 2 * buyerLookUpMs);
  assert.deepEqual(kit.kindsSent(), ['FREEZE']);
  assert.ok(kit.provider.lookUps.length > 1);
  assert.equal((await kit.case(escrowId)).order.nextAction?.untilMs, untilMs);

  kit.provider.report();
  await kit.pass(buyerLookUpMs);
  const { order, open } = await kit.case(escrowId);
  assert.deepEqual([order.state, order.nextAction, open], ['FROZEN', undefined, []]);
});

test('an order whose buyer does not act is cancelled at its deadline', async (t) => {
  const { kit, escrowId } = await awaiting(t, { buyerDeadlineMs: 600_000 });
  await kit.pass(599_000);
  assert.deepEqual(kit.kindsSent(), ['FREEZE']);
  kit.provider.report(
    (question): PaymentSnapshot =>
      'kind' in question && question.kind === 'CANCEL'
        ? { status: 'VOID' }
        : { status: 'AWAITING_BUYER', nextActionUrl: url },
  );
  await kit.pass(2_000);
  const { order } = await kit.case(escrowId);
  assert.deepEqual([order.state, order.nextAction, order.pending], ['CLOSED', undefined, undefined]);
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'CANCEL']);
});

test('a declined buyer ends the order, with the reason', async (t) => {
  const { kit, escrowId } = await awaiting(t);
  const declined = {
    code: 'authentication_failed',
    words: 'The bank did not confirm it.',
    detail: 'pi_1 failed',
  };
  kit.provider.report(() => ({ status: 'VOID', declined }));
  await kit.pass(buyerLookUpMs);
  const { order, holdId: instructionId } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  const freeze = await kit.execute({ kind: 'FindInstruction', instructionId });
  assert.deepEqual([freeze?.status, freeze?.reason], ['DECLINED', declined.words]);
  const [line = assert.fail()] = kit.logged.filter(({ msg }) => /declined an instruction/.test(msg));
  assert.partialDeepStrictEqual(line, { escrowId, code: declined.code, detail: declined.detail });
});
