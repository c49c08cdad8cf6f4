import assert from 'node:assert/strict';
import { test } from 'node:test';
import { payoutEvent } from '../../src/domain/event.ts';

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
