import { createCounts } from '../../lib/concurrency.ts';
import type { SendingLimits } from './limits.ts';

/** The permission to send one request to an endpoint. */
export interface Permit {
  readonly id: number;
  readonly callerId: number;
  /** Whether it comes from the pool for failing endpoints. */
  readonly isFailing: boolean;
}

/**
 * Limits concurrent requests and shares them fairly: callers take turns, and so do the endpoints of a caller. Failing
 * endpoints have a pool of their own, so that endpoints that never respond do not delay the others.
 */
export interface FairPool {
  /** Adds an endpoint to those that want permits, until it is cancelled. */
  request(permit: Permit): void;
  cancel(endpoint: Pick<Permit, 'id' | 'callerId'>): void;
  /** Returns the next permit; undefined if no endpoint that wants one may have one. */
  take(): Permit | undefined;
  release(permit: Permit): void;
  /** How many permits are taken. */
  taken(): number;
}

interface Pool {
  readonly isFailing: boolean;
  readonly perEndpoint: number;
  free: number;
  /** Endpoints that want permits, by caller. Those that waited longest come first, in both. */
  readonly waiting: Map<number, Set<number>>;
}

export function createFairPool(
  limits: Pick<SendingLimits, 'atOnce' | 'atOnceFailing' | 'atOncePerEndpoint' | 'atOncePerCaller'>,
): FairPool {
  const healthy = newPool(false, limits.atOnce, limits.atOncePerEndpoint);
  const failing = newPool(true, limits.atOnceFailing, 1);
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
      if (takenByCaller.of(callerId) >= limits.atOncePerCaller) continue;
      const id = own.values().find((id) => takenByEndpoint.of(id) < perEndpoint);
      if (id === undefined) continue;
      // Both go to the end of their line.
      own.delete(id);
      own.add(id);
      waiting.delete(callerId);
      waiting.set(callerId, own);
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
    request: ({ id, callerId, isFailing }) => {
      const { waiting } = isFailing ? failing : healthy;
      if (waiting.get(callerId)?.has(id)) return;
      cancel({ id, callerId });
      const own = waiting.get(callerId);
      if (own === undefined) waiting.set(callerId, new Set([id]));
      else own.add(id);
    },
    cancel,
    take: () => {
      // The pools alternate: the throttle limits how many permits are taken, and one pool could use all of them.
      pools.reverse();
      const [first, second] = pools as [Pool, Pool];
      const permit = takeFrom(first) ?? takeFrom(second);
      if (permit !== undefined) count(permit, 1);
      return permit;
    },
    release: (permit) => count(permit, -1),
    taken: () => limits.atOnce - healthy.free + limits.atOnceFailing - failing.free,
  };
}

const newPool = (isFailing: boolean, free: number, perEndpoint: number): Pool => ({
  ...{ isFailing, free, perEndpoint },
  waiting: new Map(),
});
