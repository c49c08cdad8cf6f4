import type { DueOrder } from '../../store/reconciliation-commands.ts';
import type { ReconciliationLimits } from './limits.ts';

/** FairPool for orders in recovery, which callers have in turns. */
export interface FairQueue {
  /**
   * Takes slots for those of the orders that are due that have one, in the order in which they are given: one of each
   * caller, then a second one of each, and so on. All are in recovery until `end`.
   */
  begin(due: readonly DueOrder[]): DueOrder[];
  /** Gives the slot of an order back. */
  end(order: DueOrder): void;
  /** The caller that had its turn last, behind which the next `begin` has to go on; 0 at first. */
  lastCaller(): number;
}

/** FairQueue within limits. */
export function createFairQueue(
  limits: Pick<ReconciliationLimits, 'atOnce' | 'atOncePerCaller' | 'keptForOthers'>,
): FairQueue {
  const { atOnce, atOncePerCaller, keptForOthers } = limits;
  const taken = new Map<number, number>();
  let free = atOnce;
  let last = 0;

  const takenBy = (callerId: number) => taken.get(callerId) ?? 0;

  function take(callerId: number, slots: 1 | -1): void {
    const own = takenBy(callerId) + slots;
    if (own === 0) taken.delete(callerId);
    else taken.set(callerId, own);
    free -= slots;
  }

  function hasSlot(callerId: number): boolean {
    const own = takenBy(callerId);
    return own === 0 ? free > 0 : own < atOncePerCaller && free > keptForOthers;
  }

  return {
    begin: (due) => {
      const begun: DueOrder[] = [];
      const queues = Map.groupBy(due, ({ callerId }) => callerId);
      for (let place = 0; place < atOncePerCaller; place += 1) {
        for (const [callerId, queue] of queues) {
          // It has its turn although it has no slot more, so that the same callers are not asked for ever.
          if (place === 0 && free > 0) last = callerId;
          const order = queue[place];
          if (order === undefined || !hasSlot(callerId)) continue;
          take(callerId, 1);
          begun.push(order);
        }
      }
      return begun;
    },
    end: ({ callerId }) => take(callerId, -1),
    lastCaller: () => last,
  };
}
