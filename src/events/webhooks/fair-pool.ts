import { createCounts } from '../../lib/concurrency.ts';
import type { SendingLimits } from './limits.ts';

/** The permission to send one request to an endpoint. */
export interface Permit {
  readonly id: number;
  readonly callerId: number;
  /** Whether it comes from the pool for failing endpoints. */
  readonly isFailing: boolean;
}

/** See `createFairPool`. */
export type FairPool = ReturnType<typeof createFairPool>;

type Pool = ReturnType<typeof newPool>;

function newPool(isFailing: boolean, perEndpoint: number, free: number) {
  /** Endpoints that want permits, by caller. Those that waited longest come first, in both. */
  const waiting = new Map<number, Set<number>>();
  return { isFailing, perEndpoint, free, waiting };
}

/**
 * Limits concurrent requests and shares them fairly: callers take turns, and so do the endpoints of a caller. Failing
 * endpoints have a pool of their own, so that endpoints that never respond do not delay the others.
 */
export function createFairPool(
  limits: Pick<SendingLimits, 'atOnce' | 'atOnceFailing' | 'atOncePerEndpoint' | 'atOncePerCaller'>,
) {
  const { atOnce, atOnceFailing, atOncePerEndpoint, atOncePerCaller } = limits;
  const healthy = newPool(false, atOncePerEndpoint, atOnce);
  const failing = newPool(true, 1, atOnceFailing);
  const pools = [healthy, failing];
  const takenByEndpoint = createCounts<number>();
  const takenByCaller = createCounts<number>();

  function cancel({ id, callerId }: Pick<Permit, 'id' | 'callerId'>): void {
    for (const { waiting } of pools) {
      const own = waiting.get(callerId);
      own?.delete(id);
      if (own?.size === 0) waiting.delete(callerId);
    }
  }

  function takeFrom({ isFailing, perEndpoint, free, waiting }: Pool): Permit | undefined {
    if (free === 0) return undefined;
    for (const [callerId, own] of waiting) {
      if (takenByCaller.of(callerId) >= atOncePerCaller) continue;
      const id = own.values().find((id) => takenByEndpoint.of(id) < perEndpoint);
      if (id === undefined) continue;
      // Both go to the end of their line.
      own.delete(id);
      waiting.delete(callerId);
      waiting.set(callerId, own.add(id));
      return { id, callerId, isFailing };
    }
    return undefined;
  }

  function count({ id, callerId, isFailing }: Permit, by: 1 | -1): void {
    takenByEndpoint.add(id, by);
    takenByCaller.add(callerId, by);
    (isFailing ? failing : healthy).free -= by;
  }

  return {
    /** Adds an endpoint to those that want permits, until it is cancelled. */
    request: ({ id, callerId, isFailing }: Permit): void => {
      const { waiting } = isFailing ? failing : healthy;
      if (waiting.get(callerId)?.has(id)) return;
      cancel({ id, callerId });
      waiting.set(callerId, (waiting.get(callerId) ?? new Set()).add(id));
    },
    cancel,
    /** Returns the next permit; undefined if no endpoint that wants one may have one. */
    take: (): Permit | undefined => {
      // The pools alternate: the throttle limits how many permits are taken, and one pool could use all of them.
      pools.reverse();
      const [first, second] = pools as [Pool, Pool];
      const permit = takeFrom(first) ?? takeFrom(second);
      if (permit !== undefined) count(permit, 1);
      return permit;
    },
    release: (permit: Permit) => count(permit, -1),
    /** How many permits are taken. */
    taken: () => atOnce - healthy.free + atOnceFailing - failing.free,
  };
}
