import type { Reason } from '../domain/reason.ts';
import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../lib/distribution.ts';

/** The API that a call came through. */
export type ListenerName = 'public' | 'internal';

/** How a call ended: OK, or the reason of its error. */
export type CallEnd = 'OK' | Reason;

/** The calls of one operation through one API with the same end, by their duration. */
export interface CallMetric {
  readonly api: ListenerName;
  /** Name of an RPC or of a route; `none` if the call named neither. */
  readonly operation: string;
  readonly end: CallEnd;
  readonly seconds: DistributionData;
}

/** Counts the calls of both APIs. */
export interface CallMetrics {
  add(api: ListenerName, operation: string | undefined, end: CallEnd, seconds: number): void;
  /** Returns an entry for each combination that occurred. */
  data(): readonly CallMetric[];
}

const noOperation = 'none';

export function createCallMetrics(): CallMetrics {
  // By operation, then by end: names that are in memory once, so looking them up compares no text.
  const apis: Readonly<Record<ListenerName, Map<string, Map<CallEnd, Distribution>>>> = {
    public: new Map(),
    internal: new Map(),
  };

  function distributionOf(api: ListenerName, operation: string, end: CallEnd): Distribution {
    const ends = apis[api].get(operation) ?? new Map<CallEnd, Distribution>();
    const made = ends.get(end) ?? createDistribution(durationBoundsS);
    apis[api].set(operation, ends.set(end, made));
    return made;
  }

  return {
    add: (api, operation = noOperation, end, seconds) => {
      const known = apis[api].get(operation)?.get(end) ?? distributionOf(api, operation, end);
      known.add(seconds);
    },
    data: () =>
      (Object.keys(apis) as ListenerName[]).flatMap((api) =>
        [...apis[api]].flatMap(([operation, ends]) =>
          [...ends].map(([end, distribution]) => ({ api, operation, end, seconds: distribution.data() })),
        ),
      ),
  };
}
