import type { Reason } from '../domain/reason.ts';
import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../lib/distribution.ts';

/** The listener that takes a call. */
export type ListenerName = 'public' | 'internal';

/** How a call ended: successfully, or with an error. */
export type CallEnd = 'OK' | Reason;

/** The duration in seconds of all calls with the same listener, operation and end. */
export interface CallMetric {
  readonly listener: ListenerName;
  /** Name of an RPC or of a route; `none` if the request named neither. */
  readonly operation: string;
  readonly end: CallEnd;
  readonly seconds: DistributionData;
}

/** Counts the calls of both listeners. */
export interface CallMetrics {
  add(listener: ListenerName, operation: string | undefined, end: CallEnd, seconds: number): void;
  /** An entry for each combination that occurred. */
  data(): readonly CallMetric[];
}

const noOperation = 'none';

export function createCallMetrics(): CallMetrics {
  // Operation, then end. The names are interned, so a lookup compares no text.
  const counted: Readonly<Record<ListenerName, Map<string, Map<CallEnd, Distribution>>>> = {
    public: new Map(),
    internal: new Map(),
  };

  function distributionOf(listener: ListenerName, operation: string, end: CallEnd): Distribution {
    const ends = counted[listener].get(operation) ?? new Map<CallEnd, Distribution>();
    const made = ends.get(end) ?? createDistribution(durationBoundsS);
    counted[listener].set(operation, ends.set(end, made));
    return made;
  }

  return {
    add: (listener, operation = noOperation, end, seconds) => {
      const known = counted[listener].get(operation)?.get(end) ?? distributionOf(listener, operation, end);
      known.add(seconds);
    },
    data: () =>
      (Object.keys(counted) as ListenerName[]).flatMap((listener) =>
        [...counted[listener]].flatMap(([operation, ends]) =>
          [...ends].map(([end, distribution]) => ({
            listener,
            operation,
            end,
            seconds: distribution.data(),
          })),
        ),
      ),
  };
}
