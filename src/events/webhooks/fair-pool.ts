import type { SendingLimits } from './limits.ts';

/** Whose turn it is: a request to this endpoint may be begun. */
export interface Slot {
  readonly id: number;
  readonly callerId: number;
  /** Whether it is one of those for endpoints that fail. */
  readonly isFailing: boolean;
}

/**
 * FairPool for requests, which callers have in turns, and endpoints within those of their caller. Endpoints that fail have slots of
 * their own, so that those that never answer hold up no others.
 */
export interface FairPool {
  /** Has an endpoint take part, as failing or not, until it is called off. */
  ask(slot: Slot): void;
  cancel(slot: Pick<Slot, 'id' | 'callerId'>): void;
  /** Takes a slot for whoever is next; undefined if nobody who takes part may have one. */
  take(): Slot | undefined;
  /** Gives it back. */
  give(slot: Slot): void;
  /** How many are taken. */
  taken(): number;
}

/** FairPool of which some endpoints may have some, by caller. */
interface Pool {
  readonly isFailing: boolean;
  readonly perEndpoint: number;
  free: number;
  /** Endpoints that take part, by caller; both in the order of their turns. */
  readonly asking: Map<number, Set<number>>;
}

export function createFairPool(
  limits: Pick<SendingLimits, 'atOnce' | 'atOnceFailing' | 'atOncePerEndpoint' | 'atOncePerCaller'>,
): FairPool {
  const healthy = newPool(false, limits.atOnce, limits.atOncePerEndpoint);
  const failing = newPool(true, limits.atOnceFailing, 1);
  const pools = [healthy, failing];
  const ofEndpoint = createCounts();
  const ofCaller = createCounts();

  function cancel({ id, callerId }: Pick<Slot, 'id' | 'callerId'>): void {
    for (const { asking } of pools) {
      const own = asking.get(callerId);
      own?.delete(id);
      if (own?.size === 0) asking.delete(callerId);
    }
  }

  function takeFrom({ isFailing, perEndpoint, free, asking }: Pool): Slot | undefined {
    if (free === 0) return undefined;
    for (const [callerId, own] of asking) {
      if (ofCaller.of(callerId) >= limits.atOncePerCaller) continue;
      const id = own.values().find((id) => ofEndpoint.of(id) < perEndpoint);
      if (id === undefined) continue;
      // Both have their next turn behind all others.
      own.delete(id);
      own.add(id);
      asking.delete(callerId);
      asking.set(callerId, own);
      return { id, callerId, isFailing };
    }
    return undefined;
  }

  function count({ id, callerId, isFailing }: Slot, by: 1 | -1): void {
    ofEndpoint.add(id, by);
    ofCaller.add(callerId, by);
    (isFailing ? failing : healthy).free -= by;
  }

  return {
    ask: ({ id, callerId, isFailing }) => {
      const { asking } = isFailing ? failing : healthy;
      if (asking.get(callerId)?.has(id)) return;
      cancel({ id, callerId });
      const own = asking.get(callerId);
      if (own === undefined) asking.set(callerId, new Set([id]));
      else own.add(id);
    },
    cancel,
    take: () => {
      // By turns, for whoever takes slots may take only so many in a time, and one pool could have all of them.
      pools.reverse();
      const [first, second] = pools as [Pool, Pool];
      const slot = takeFrom(first) ?? takeFrom(second);
      if (slot !== undefined) count(slot, 1);
      return slot;
    },
    give: (slot) => count(slot, -1),
    taken: () => limits.atOnce - healthy.free + limits.atOnceFailing - failing.free,
  };
}

const newPool = (isFailing: boolean, free: number, perEndpoint: number): Pool => ({
  ...{ isFailing, free, perEndpoint },
  asking: new Map(),
});

/** Counts by id, from 0; those that are 0 take no memory. */
export function createCounts() {
  const counts = new Map<number, number>();
  const of = (id: number) => counts.get(id) ?? 0;
  return {
    of,
    add: (id: number, by: number) => {
      const count = of(id) + by;
      if (count === 0) counts.delete(id);
      else counts.set(id, count);
    },
  };
}
