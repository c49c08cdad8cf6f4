import { ApiError, unavailable } from '../domain/reason.ts';

/** Counts by key, from 0. A key whose count is 0 takes no memory. */
export function createCounts<Key>() {
  const counts = new Map<Key, number>();
  const of = (key: Key) => counts.get(key) ?? 0;
  return {
    of,
    add: (key: Key, by: number): void => {
      const count = of(key) + by;
      if (count === 0) counts.delete(key);
      else counts.set(key, count);
    },
  };
}

/** The bounds of a keyed limit. */
export interface KeyedLimits {
  readonly perKey: number;
  readonly total?: number;
  /** Slots of the total that only keys without another slot may take. */
  readonly keptForOthers?: number;
}

/** Starts a call that waited, with the function that frees its slot. */
type Start = (free: () => void) => void;

/** Limits how much runs at the same time, for each key and in total. The function that frees a slot works once. */
export function createKeyedLimit<Key>(limits: KeyedLimits) {
  const { perKey, total = Number.POSITIVE_INFINITY, keptForOthers = 0 } = limits;
  const counts = createCounts<Key>();
  /** The calls that wait, the oldest first. The key that waited longest comes first. */
  const queues = new Map<Key, Set<Start>>();
  const idleWaiters: (() => void)[] = [];
  let taken = 0;

  function tryTake(key: Key): (() => void) | undefined {
    const own = counts.of(key);
    const isFree = own === 0 ? taken < total : own < perKey && total - taken > keptForOthers;
    if (!isFree) return undefined;
    count(key, 1);
    let isTaken = true;
    return () => {
      if (isTaken) count(key, -1);
      isTaken = false;
    };
  }

  function count(key: Key, by: 1 | -1): void {
    taken += by;
    counts.add(key, by);
    if (by === -1) startNext();
    if (taken === 0) for (const resolve of idleWaiters.splice(0)) resolve();
  }

  function startNext(): void {
    for (const [key, queue] of queues) {
      const free = tryTake(key);
      if (free === undefined) continue;
      const [start] = queue;
      queues.delete(key);
      queues.set(key, queue);
      leave(key, start);
      start?.(free);
      return;
    }
  }

  function leave(key: Key, start: Start | undefined): void {
    const queue = queues.get(key);
    if (start !== undefined) queue?.delete(start);
    if (queue?.size === 0) queues.delete(key);
  }

  return {
    /** Takes a slot. Returns the function that frees it; undefined if no slot is free for the key. */
    tryTake,
    /**
     * Waits for a slot: keys take turns, and a key's calls keep their order. Resolves to the function that frees the slot.
     * `onWait` gets a function that leaves the queue; the promise then never resolves.
     */
    take: (key: Key, onWait?: (leave: () => void) => void): Promise<() => void> => {
      const { promise, resolve } = Promise.withResolvers<() => void>();
      const free = tryTake(key);
      if (free !== undefined) resolve(free);
      else {
        queues.set(key, (queues.get(key) ?? new Set()).add(resolve));
        onWait?.(() => leave(key, resolve));
      }
      return promise;
    },
    /** How many slots are taken. */
    taken: () => taken,
    takenBy: counts.of,
    /** Resolves when no slot is taken. */
    idle: (): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (taken === 0) resolve();
      else idleWaiters.push(resolve);
      return promise;
    },
  };
}

/** The limits, and the messages of their errors. */
export interface ConcurrencyLimitRules {
  /** For each key. */
  readonly ofEach: number;
  /** Message of RATE_LIMITED, for a key that has reached `ofEach`. */
  readonly tooMany: string;
  /** Unlimited by default. */
  readonly ofAll?: number;
  /** Message of UNAVAILABLE, when `ofAll` is reached. */
  readonly full?: string;
}

/** `Retry-After` of RATE_LIMITED, in seconds. */
const retryAfterS = 1;

/** Limits how much runs at the same time: for each key, so that one cannot use up the others' share, and in all. */
export function createConcurrencyLimit<Key>({
  ofEach,
  tooMany,
  ofAll = Number.POSITIVE_INFINITY,
  full = '',
}: ConcurrencyLimitRules) {
  const limit = createKeyedLimit<Key>({ perKey: ofEach, total: ofAll });
  return {
    /** Counts one more. Call the returned function when it ends. Throws RATE_LIMITED, UNAVAILABLE. */
    enter: (key: Key): (() => void) => {
      if (limit.takenBy(key) >= ofEach) throw new ApiError('RATE_LIMITED', tooMany, { retryAfterS });
      const leave = limit.tryTake(key);
      if (leave === undefined) throw unavailable(full);
      return leave;
    },
    /** How many run now. */
    taken: limit.taken,
  };
}
