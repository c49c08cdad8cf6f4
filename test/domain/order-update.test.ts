import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OrderUnderWay, planUpdate } from '../../src/domain/order-update.ts';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';

const sum = { amount: 4n, currency: 'CNY' } as const;
const paidOut: PaymentSnapshot = { status: 'PAID_OUT', ...sum };
const disputed: PaymentSnapshot = { status: 'DISPUTED', ...sum };
const partly: PaymentSnapshot = { status: 'PARTLY_RETURNED', amount: 3n, currency: 'CNY' };
const less: PaymentSnapshot = { ...partly, amount: 2n };
const returned: PaymentSnapshot = { status: 'RETURNED', ...sum };
const held: PaymentSnapshot = { status: 'HELD', ...sum };

const released: OrderUnderWay = {
  ...{ state: 'RELEASED', ...sum, accepted: undefined, afterPayout: undefined, isInReview: false, open: [] },
};
const contested = { afterPayout: { payment: 'DISPUTED' } } as const;
const left = { afterPayout: { payment: 'PARTLY_RETURNED', amount: 3n } } as const;
const waits = { isInReview: true } as const;

/** What was known of a RELEASED order, what is said of it then, and whether that is recorded and a person called. */
const table: readonly [string, Partial<OrderUnderWay>, PaymentSnapshot, 'NEWS' | 'REVIEW' | 'NOTHING'][] = [
  ['nothing, and nothing is new', {}, paidOut, 'NOTHING'],
  ['nothing', {}, disputed, 'NEWS'],
  ['nothing', {}, partly, 'NEWS'],
  ['nothing', {}, returned, 'NEWS'],
  ['nothing, and what is said cannot be', {}, held, 'REVIEW'],
  ['the same, and a person has it already', { ...contested, ...waits }, disputed, 'NOTHING'],
  ['the same, and a person accepted it', { ...contested, accepted: disputed }, disputed, 'NOTHING'],
  ['the same, and a person had it asked again', contested, disputed, 'REVIEW'],
  ['the same part, and a person has it already', { ...left, ...waits }, partly, 'NOTHING'],
  ['another part, and a person has it already', { ...left, ...waits }, less, 'NEWS'],
  ['a dispute that a person has already, and it is lost', { ...contested, ...waits }, returned, 'NEWS'],
  ['a dispute that a person has already, and it is won', { ...contested, ...waits }, paidOut, 'NEWS'],
  ['a dispute that a person accepted, and it is won', { ...contested, accepted: disputed }, paidOut, 'NEWS'],
  ['what cannot be, and a person has it already', waits, held, 'NOTHING'],
];

for (const [known, before, payment, expected] of table) {
  test(`a RELEASED order of which was known: ${known}; ${payment.status} is ${expected}`, () => {
    const plan = planUpdate({ ...released, ...before }, payment);
    assert.equal(plan.afterPayout?.payment, expected === 'NEWS' ? payment.status : undefined);
    assert.equal(plan.review !== undefined, expected !== 'NOTHING');
    assert.deepEqual(
      [plan.to, plan.ended, plan.givesBack, plan.nextLookUp],
      ['RELEASED', [], false, 'NEVER'],
    );
  });
}
