import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../../src/payments/provider.ts';
import { openBooks } from '../../src/payments/simulated/books.ts';
import { happen, type MoneyEvent } from '../../src/payments/simulated/hold.ts';
import { createSimulatedProvider } from '../../src/payments/simulated/provider.ts';
import { createManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { paymentOrder } from './provider-suite.ts';

/** The time at which the clock of each test starts. */
export const startMs = Date.UTC(2026, 0, 2, 3, 4, 5);

/** Opens the simulated provider, on a clock that stands still, on a file or on a new one; closed after the test. */
export function openProvider(
  test: Pick<TestContext, 'after'>,
  file = join(temporaryFolder(test), 'provider.db'),
  accept: () => Promise<void> = async () => {},
) {
  const clock = createManualClock(startMs);
  /** The notifications, accepted or not. */
  const events: Notification[] = [];
  const notify = (notification: Notification) => {
    events.push(notification);
    return accept();
  };
  const provider = createSimulatedProvider({ file, clock, notify });
  test.after(() => provider.close());
  return {
    ...{ provider, clock, file, events },
    /** Moves the clock in small steps, and lets everything happen that follows. */
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= 10) {
        clock.advance(Math.min(left, 10));
        await turn();
      }
    },
    /** Makes an event happen to the money of an order. */
    befall: (of: PaymentOrder, event: MoneyEvent) => {
      const books = openBooks(file);
      books.change(of, (hold) => happen(hold, event, clock.nowMs()));
      books.close();
    },
  };
}

/** Returns an order; its ids end in the name. */
export function order(name = '1', parties: Partial<PaymentOrder> = {}): PaymentOrder {
  return paymentOrder({ holdId: `hold-${name}`, amount: 128_000_000n, openedAtMs: startMs, ...parties });
}

/** Returns an instruction for an order, under an id of its own. */
export function instruction(
  kind: InstructionKind,
  of: PaymentOrder = order(),
  attempt = '',
): PaymentInstruction {
  return { ...of, kind, instructionId: `${of.holdId}/${kind}${attempt}` };
}

/** A signal that nobody aborts. */
export const never = new AbortController().signal;

/** Lets everything happen that needs no time. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The state of a promise now. */
export async function fate(promise: Promise<unknown>): Promise<'RESOLVED' | 'REJECTED' | 'PENDING'> {
  const settled = promise.then(
    () => 'RESOLVED' as const,
    () => 'REJECTED' as const,
  );
  return Promise.race([settled, turn().then(() => 'PENDING' as const)]);
}
