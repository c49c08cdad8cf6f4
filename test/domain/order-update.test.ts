import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payoutEvent } from '../../src/domain/event.ts';
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

/** A RELEASED order, its new provider status, and whether that is recorded (NEWS), only reviewed, or nothing. */
const table: readonly [string, Partial<OrderUnderWay>, PaymentSnapshot, 'NEWS' | 'REVIEW' | 'NOTHING'][] = [
  ['paid out', {}, paidOut, 'NOTHING'],
  ['paid out', {}, disputed, 'NEWS'],
  ['paid out', {}, partly, 'NEWS'],
  ['paid out', {}, returned, 'NEWS'],
  ['paid out', {}, held, 'REVIEW'],
  ['disputed and in review', { ...contested, ...waits }, disputed, 'NOTHING'],
  ['disputed and accepted', { ...contested, accepted: disputed }, disputed, 'NOTHING'],
  ['disputed and looked up again', contested, disputed, 'REVIEW'],
  ['partly returned and in review', { ...left, ...waits }, partly, 'NOTHING'],
  ['partly returned and in review, by another part', { ...left, ...waits }, less, 'NEWS'],
  ['partly returned and accepted, by another part', { ...left, accepted: partly }, less, 'NEWS'],
  ['disputed and in review', { ...contested, ...waits }, returned, 'NEWS'],
  ['disputed and in review', { ...contested, ...waits }, paidOut, 'NEWS'],
  ['disputed and accepted', { ...contested, accepted: disputed }, paidOut, 'NEWS'],
  ['in review', waits, held, 'NOTHING'],
];

for (const [known, before, payment, expected] of table) {
  test(`the status ${payment.status} of a RELEASED order that is ${known}: ${expected}`, () => {
    const plan = planUpdate({ ...released, ...before }, payment);
    assert.equal(plan.afterPayout?.payment, expected === 'NEWS' ? payment.status : undefined);
    assert.equal(plan.review !== undefined, expected !== 'NOTHING');
    assert.deepEqual(
      [plan.to, plan.ended, plan.givesBack, plan.nextLookUp],
      ['RELEASED', [], false, 'NEVER'],
    );
  });
}

for (const [before, now, event] of [
  ['PAID_OUT', 'DISPUTED', 'escrow.payment_disputed'],
  ['PARTLY_RETURNED', 'DISPUTED', 'escrow.payment_disputed'],
  ['DISPUTED', 'PAID_OUT', 'escrow.dispute_won'],
  ['DISPUTED', 'RETURNED', 'escrow.dispute_lost'],
  ['DISPUTED', 'PARTLY_RETURNED', 'escrow.payment_returned'],
  ['PAID_OUT', 'RETURNED', 'escrow.payment_returned'],
  ['PAID_OUT', 'PARTLY_RETURNED', 'escrow.payment_returned'],
  ['PARTLY_RETURNED', 'PARTLY_RETURNED', 'escrow.payment_returned'],
  ['RETURNED', 'PAID_OUT', 'escrow.payment_restored'],
  ['PARTLY_RETURNED', 'PAID_OUT', 'escrow.payment_restored'],
] as const)
  test(`${now} after ${before} is ${event}`, () => assert.equal(payoutEvent(before, now), event));
