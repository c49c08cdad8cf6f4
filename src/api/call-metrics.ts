import type { Reason } from '../domain/reason.ts';
import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../lib/distribution.ts';

/** Where calls come in. */
export type ListenerName = 'public' | 'internal';

/** How a call ended: answered, or refused, and why. */
export type CallEnd = 'OK' | Reason;

/** The calls to one operation, through one door, that ended in one way, by the seconds that they took. */
export interface CallMetric {
  readonly door: ListenerName;
  /** Name of an operation of the schema or of a route of the door; `none` where none was found. */
  readonly operation: string;
  readonly end: CallEnd;
  readonly seconds: DistributionData;
}

/** Counts the calls of both doors. */
export interface CallMetrics {
  add(door: ListenerName, operation: string | undefined, end: CallEnd, seconds: number): void;
  /** What was counted, an entry for each combination that occurred. */
  data(): readonly CallMetric[];
}

/** The operation of calls for which none was found. */
const noOperation = 'none';

/** Nothing is counted so far. */
export function createCallMetrics(): CallMetrics {
  // By operation, then by end: names that are in memory once, so looking them up compares no text.
  const doors: Readonly<Record<ListenerName, Map<string, Map<CallEnd, Distribution>>>> = {
    public: new Map(),
    internal: new Map(),
  };

  function distributionOf(door: ListenerName, operation: string, end: CallEnd): Distribution {
    const ends = doors[door].get(operation) ?? new Map<CallEnd, Distribution>();
    const made = ends.get(end) ?? createDistribution(durationBoundsS);
    doors[door].set(operation, ends.set(end, made));
    return made;
  }

  return {
    add: (door, operation = noOperation, end, seconds) => {
      const known = doors[door].get(operation)?.get(end) ?? distributionOf(door, operation, end);
      known.add(seconds);
    },
    data: () =>
      (Object.keys(doors) as ListenerName[]).flatMap((door) =>
        [...doors[door]].flatMap(([operation, ends]) =>
          [...ends].map(([end, distribution]) => ({ door, operation, end, seconds: distribution.data() })),
        ),
      ),
  };
}
