import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import { every } from '../../lib/timing.ts';
import type { DueOrder } from '../../store/reconciliation-commands.ts';
import type { Execute } from '../../store/store.ts';
import type { ReconciliationLimits } from './limits.ts';
import { reasonOf } from './order-updates.ts';
import type { Reconciler } from './reconciler.ts';

/** Recovers the orders that are due until nothing is left to do for them. */
export interface Recovery {
  /** Makes all orders with an open instruction due, and polls from now on. */
  start(): Promise<void>;
  /** Starts no further recovery. */
  stop(): void;
}

/** What the recovery works with. */
export interface RecoveryDependencies {
  readonly execute: Execute;
  readonly reconciler: Reconciler;
  readonly clock: Clock;
  readonly limits: ReconciliationLimits;
  readonly log: Logger;
}

/** Polls, because a notification, another process and time can make an order due. */
export function createRecovery(dependencies: RecoveryDependencies): Recovery {
  const { execute, reconciler, clock, limits, log } = dependencies;
  /** Orders that have not failed have slots of their own, so that none of them waits for an order that failed before. */
  const queues = [false, true].map((hasFailed) => ({
    hasFailed,
    slots: createKeyedLimit<number>({
      perKey: limits.atOncePerCaller,
      total: limits.atOnce,
      keptForOthers: limits.keptForOthers,
    }),
    /** The caller that had its turn last; 0 at first. */
    lastCaller: 0,
  }));
  /** Why the last poll failed; undefined if it did not. */
  let fault: string | undefined;

  /** Logs the first failure and the first success after it: polls are too frequent for a line each. */
  function noteFault(error?: unknown): void {
    const why = error === undefined ? undefined : reasonOf(error);
    const known = fault;
    fault = why;
    if (why === known) return;
    if (why === undefined) log.info('the orders that are due are read again');
    else if (isStoreAway(error)) log.warn({ why }, 'the orders that are due cannot be read');
    else log.error({ err: error }, 'the orders that are due cannot be read');
  }

  async function recover({ escrowId }: DueOrder, free: () => void): Promise<void> {
    try {
      await reconciler.recover(escrowId);
    } catch (error) {
      log.warn({ escrowId, why: reasonOf(error) }, 'an order is not settled yet');
    } finally {
      free();
    }
  }

  /** Starts the recovery of due orders that get a slot. */
  async function startDue(): Promise<void> {
    const nowMs = clock.nowMs();
    // Nothing is due later than this, unless the clock was set back.
    const horizonMs = nowMs + 2 * Math.max(limits.quietLookUpMs, limits.longestRetryMs);
    const { atOnce: callers, atOncePerCaller: perCaller } = limits;
    for (const queue of queues) {
      const { hasFailed, slots, lastCaller: after } = queue;
      const due = await execute({ kind: 'ListDue', hasFailed, nowMs, horizonMs, after, callers, perCaller });
      const idle = due.filter(({ escrowId }) => !reconciler.isBusy(escrowId));
      for (const [round, orders] of inRounds(idle).entries()) {
        for (const order of orders) {
          // A caller has its turn also if it has no slot left, so that the same callers are not listed forever.
          if (round === 0 && slots.taken() < limits.atOnce) queue.lastCaller = order.callerId;
          const free = slots.tryTake(order.callerId);
          if (free !== undefined) void recover(order, free);
        }
      }
    }
  }

  async function poll(): Promise<void> {
    try {
      await startDue();
      noteFault();
    } catch (error) {
      noteFault(error);
    }
  }

  const polls = every(clock, () => limits.pollMs, poll);
  return {
    start: async () => {
      await execute({ kind: 'ResumeOpen', nowMs: clock.nowMs() });
      await polls.start();
    },
    stop: () => void polls.stop(),
  };
}

/** The first order of each caller, then the second one of each, and so on. */
function inRounds(orders: readonly DueOrder[]): DueOrder[][] {
  const queues = [...Map.groupBy(orders, ({ callerId }) => callerId).values()];
  const count = Math.max(0, ...queues.map(({ length }) => length));
  return Array.from({ length: count }, (_, nth) => queues.flatMap((queue) => queue[nth] ?? []));
}

/** Whether the store is unavailable, which needs no stack in the log. */
const isStoreAway = (error: unknown): boolean => error instanceof ApiError && error.reason === 'UNAVAILABLE';
