import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { every } from '../../lib/timing.ts';
import type { Execute } from '../../store/store.ts';
import type { ReconciliationLimits } from './limits.ts';
import { reasonOf } from './order-updates.ts';
import type { Reconciler } from './reconciler.ts';

/**
 * Looks up RELEASED orders rarely, to find a dispute or a return whose notification was lost. These look-ups share nothing with
 * recovery, so no order that is due waits for them.
 */
export interface ReleasedLookUps {
  start(): void;
  /** Starts no further look-up. */
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
/** How often to check for a new turn, in milliseconds: missed turns are made up for at twice the pace. */
const checkEveryMs = turnMs / 2;

/**
 * Looks up one order after the other. The wall clock alone says which share of the orders has its turn, so a restart neither
 * begins again nor needs to know what was done before.
 */
export function createReleasedLookUps(dependencies: ReleasedLookUpDependencies): ReleasedLookUps {
  const { execute, reconciler, clock, limits, log } = dependencies;
  const shares = Math.ceil(limits.releasedLookUpMs / turnMs);
  const turnNow = () => Math.floor(clock.nowMs() / turnMs);
  let next = turnNow();
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
    // At most one round is made up for, whatever the clock is set to and however long the machine was suspended.
    next = Math.max(Math.min(next, now + 1), now - shares + 1);
    if (next > now) return;
    await takeTurn(next);
    next += 1;
  }

  const turns = every(
    clock,
    () => checkEveryMs,
    () =>
      takeNextTurn().catch((error) =>
        log.warn({ why: reasonOf(error) }, 'the released orders cannot be read now; it is tried again'),
      ),
  );
  return {
    start: () => void turns.start(),
    stop: () => {
      isStopped = true;
      void turns.stop();
    },
  };
}
