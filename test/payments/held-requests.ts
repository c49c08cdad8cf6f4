import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { PaymentOrder, PaymentProvider } from '../../src/payments/provider.ts';

/** A fault that holds a request up until it is let through. `there` resolves when the request has arrived. */
export function heldUp(t: TestContext) {
  const there = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  t.after(() => gate.resolve());
  const wait = () => {
    there.resolve();
    return gate.promise;
  };
  return { wait, there: there.promise, letThrough: () => gate.resolve() };
}

/** Sends a FREEZE, and aborts it when its request has arrived. */
export async function abortFreeze(provider: PaymentProvider, order: PaymentOrder, there: Promise<void>) {
  const abort = new AbortController();
  const instruction = { ...order, kind: 'FREEZE', instructionId: order.holdId } as const;
  const rejected = assert.rejects(provider.instruct(instruction, abort.signal), /aborted by the test/);
  await there;
  abort.abort(new Error('aborted by the test'));
  await rejected;
}
