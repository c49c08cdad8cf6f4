import { ApiError } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import { everyWhileLeading, type Repetition } from '../../lib/timing.ts';
import type { DueOrder } from '../../store/reconciliation-commands.ts';
import { leads, type Store } from '../../store/store.ts';
import { type OrderUpdateDependencies, reasonOf } from './order-updates.ts';
import type { Reconciler } from './reconciler.ts';

interface RecoveryDependencies extends Pick<OrderUpdateDependencies, 'execute' | 'clock' | 'limits' | 'log'> {
  readonly reconciler: Reconciler;
  readonly store: Pick<Store, 'instances'>;
}

/** How often to look for holds that end within a day, in milliseconds. */
const warnEveryMs = 60_000;
/** Orders of one store request that warns of ending holds. Other requests wait for it. */
const warningsMax = 200;
/** How long the turn of each share of the released orders lasts, in milliseconds. */
const turnMs = 60_000;
/** How often to check for a new turn, in milliseconds: missed turns are made up for at twice the pace. */
const turnCheckMs = turnMs / 2;

/**
 * Reconciles orders without a call: recovers those that are due, warns of holds that end soon, looks up released ones. The
 * three share nothing, so no order that is due waits for a released one. Only the instance that leads does this.
 */
export function createRecovery(dependencies: RecoveryDependencies) {
  const { execute, clock, store } = dependencies;
  const stopping = new AbortController();
  const polls = pollDue(dependencies);
  const warnings = warnOfEndingHolds(dependencies, stopping.signal);
  const turns = lookUpReleased(dependencies, stopping.signal);
  return {
    /** Makes all orders with an open instruction due, unless other instances may be sending some, and begins. */
    start: async (): Promise<void> => {
      if (store.instances === undefined) await execute({ kind: 'ResumeOpen', nowMs: clock.nowMs() });
      await polls.start();
      await warnings.start();
      void turns.start();
    },
    /** Looks now for what is due, after a command made an order due or set the clock ahead. Does nothing before `start`. */
    wake: (): void => {
      polls.wake();
      warnings.wake();
    },
    /** Starts nothing further. */
    stop: (): void => {
      stopping.abort();
      for (const part of [polls, warnings, turns]) void part.stop();
    },
  };
}

/** Recovers the orders that are due. It polls, because time makes orders due. */
function pollDue({ execute, reconciler, store, clock, limits, log }: RecoveryDependencies): Repetition {
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

  async function recover(order: DueOrder, free: () => void): Promise<void> {
    const { escrowId } = order;
    try {
      await reconciler.recover(order);
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

  return everyWhileLeading(
    clock,
    () => leads(store),
    () => limits.pollMs,
    () => startDue().then(() => noteFault(), noteFault),
  );
}

/** Sends the events that warn callers of holds that end soon. */
function warnOfEndingHolds(
  { execute, store, clock, log }: RecoveryDependencies,
  stopping: AbortSignal,
): Repetition {
  async function warn(): Promise<void> {
    let warned: number;
    do {
      warned = await execute({ kind: 'WarnOfEndingHolds', nowMs: clock.nowMs(), limit: warningsMax });
    } while (warned === warningsMax && !stopping.aborted);
  }

  return everyWhileLeading(
    clock,
    () => leads(store),
    () => warnEveryMs,
    () =>
      warn().catch((error) =>
        log.warn({ why: reasonOf(error) }, 'holds that end soon cannot be read now; it is tried again'),
      ),
  );
}

/**
 * Looks up RELEASED orders rarely, one after the other, to find a dispute or a return whose notification was lost. The wall
 * clock alone says which share of the orders has its turn, so a restart neither begins again nor needs to know what was done
 * before. An instance that begins to lead repeats the last turn, since the earlier leader may not have completed it.
 */
function lookUpReleased(
  { execute, reconciler, store, clock, limits, log }: RecoveryDependencies,
  stopping: AbortSignal,
): Repetition {
  const shares = Math.ceil(limits.releasedLookUpMs / turnMs);
  const turnNow = () => Math.floor(clock.nowMs() / turnMs);
  let next = turnNow();

  async function takeTurn(turn: number): Promise<void> {
    const sinceMs = clock.nowMs() - limits.releasedLookUpsMs;
    for (const escrowId of await execute({ kind: 'ListReleased', share: turn % shares, shares, sinceMs })) {
      if (stopping.aborted || !leads(store)) return;
      try {
        await reconciler.lookUpReleased(escrowId);
      } catch (error) {
        log.info(
          { escrowId, why: reasonOf(error) },
          'a released order could not be looked up; it is looked up again at its next turn',
        );
      }
    }
  }

  async function takeNextTurn(): Promise<void> {
    const now = turnNow();
    // At most one round is made up for, whatever the clock is set to and however long the machine was suspended.
    next = Math.max(Math.min(next, now + 1), now - shares + 1);
    if (next > now) return;
    await takeTurn(next);
    next += 1;
  }

  return everyWhileLeading(
    clock,
    () => leads(store),
    () => turnCheckMs,
    () =>
      takeNextTurn().catch((error) =>
        log.warn({ why: reasonOf(error) }, 'the released orders cannot be read now; it is tried again'),
      ),
    () => {
      next = turnNow() - 1;
    },
  );
}

/** The first order of each caller, then the second one of each, and so on. */
function inRounds(orders: readonly DueOrder[]): DueOrder[][] {
  const queues = [...Map.groupBy(orders, ({ callerId }) => callerId).values()];
  const count = Math.max(0, ...queues.map(({ length }) => length));
  return Array.from({ length: count }, (_, nth) => queues.flatMap((queue) => queue[nth] ?? []));
}

/** Whether the store is unavailable, which needs no stack in the log. */
const isStoreAway = (error: unknown): boolean => error instanceof ApiError && error.reason === 'UNAVAILABLE';
