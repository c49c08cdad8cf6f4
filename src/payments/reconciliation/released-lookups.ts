import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import type { ReconciliationLimits } from './limits.ts';
import { type Reconciler, reasonOf } from './reconciler.ts';

/**
 * Asks the provider about RELEASED orders, rarely: a dispute or a return is learned although its notification was lost.
 * These look-ups share nothing with recovery, so no order that waits for money waits for them, and none of them is due.
 */
export interface ReleasedLookUps {
  /** Begins with the turn of now, and goes on. */
  start(): void;
  /** Begins nothing more. */
  stop(): void;
}

/** What the look-ups need. */
export interface ReleasedLookUpDependencies {
  readonly execute: Execute;
  readonly reconciler: Pick<Reconciler, 'lookUpReleased'>;
  readonly clock: Clock;
  readonly limits: Pick<ReconciliationLimits, 'releasedLookUpMs' | 'releasedLookUpsMs'>;
  readonly log: Logger;
}

/** How long the turn of each share of the orders lasts, in milliseconds. */
const turnMs = 60_000;
/** How often it is looked whether a turn has come, in milliseconds: missed turns are made up for at twice the pace. */
const lookEveryMs = turnMs / 2;

/**
 * Look-ups of one order after the other. The wall clock alone says which share of them has its turn, so that a restart
 * neither begins again nor has to know what was done before.
 */
export function createReleasedLookUps(dependencies: ReleasedLookUpDependencies): ReleasedLookUps {
  const { execute, reconciler, clock, limits, log } = dependencies;
  const shares = Math.ceil(limits.releasedLookUpMs / turnMs);
  const turnNow = () => Math.floor(clock.nowMs() / turnMs);
  let next = turnNow();
  let cancel = () => {};
  let isStopped = false;

  async function lookUp(escrowId: string): Promise<void> {
    try {
      await reconciler.lookUpReleased(escrowId);
    } catch (error) {
      const why = reasonOf(error);
      log.info(
        { escrowId, why },
        'a released order could not be looked up; it is looked up again at its next turn',
      );
    }
  }

  async function takeTurn(turn: number): Promise<void> {
    const sinceMs = clock.nowMs() - limits.releasedLookUpsMs;
    const share = turn % shares;
    for (const escrowId of await execute({ kind: 'ListReleased', share, shares, sinceMs })) {
      if (isStopped) return;
      await lookUp(escrowId);
    }
  }

  async function takeNextTurn(): Promise<void> {
    const now = turnNow();
    // Wherever the clock was set, and however long the machine was suspended, one round at most is made up for.
    next = Math.max(Math.min(next, now + 1), now - shares + 1);
    if (next > now) return;
    await takeTurn(next);
    next += 1;
  }

  async function lookRegularly(): Promise<void> {
    const beganMs = clock.monotonicMs();
    await takeNextTurn().catch((error) =>
      log.warn({ why: reasonOf(error) }, 'the released orders cannot be read now; it is tried again'),
    );
    const tookMs = clock.monotonicMs() - beganMs;
    if (!isStopped) cancel = clock.after(Math.max(0, lookEveryMs - tookMs), () => void lookRegularly());
  }

  return {
    start: () => void lookRegularly(),
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
