import type { Clock } from '../domain/clock.ts';
import { type Command, executorOf, type Result, type Store } from '../store/store.ts';

/** Runs the command by which instances share the rates of callers. */
export type MergeRates = (command: Command<'MergeRates'>) => Promise<Result<'MergeRates'>>;

/** That function of a store; undefined if no other instance can serve. It reports nothing while no other one does. */
export function mergeRatesOf(store: Pick<Store, 'execute' | 'instances'>): MergeRates | undefined {
  const { instances } = store;
  const execute = executorOf(store);
  return instances && (async (command) => (instances.others() > 0 ? execute(command) : []));
}

/** How long an instance collects allowed calls before it reports them, in milliseconds. */
const collectMs = 200;

/**
 * Shares the rates of callers with other instances. An allowed call is reported 200 ms later. The response sets `arrivals` to what
 * all instances have allowed. So a caller that turns to another instance may send a further burst there, which counts against its
 * later calls. If a report fails, its calls count at this instance only. The returned function takes the interval of each allowed call
 * and the time of the call.
 */
export function shareRates(
  { monotonicMs, after }: Pick<Clock, 'monotonicMs' | 'after'>,
  arrivals: Map<number, number>,
  merge: MergeRates,
) {
  /** The intervals of allowed calls that were not reported yet, by caller. */
  let unsent = new Map<number, number>();
  /** Whether a report is due or under way. */
  let isCollecting = false;

  async function report(startMs: number): Promise<void> {
    const sentMs = monotonicMs();
    const used = [...unsent].map(([callerId, usedMs]) => ({ callerId, usedMs }));
    unsent = new Map();
    const merged = await merge({ kind: 'MergeRates', periodMs: sentMs - startMs, used }).catch(() => []);
    for (const { callerId, arrivalMs } of merged) {
      const arrival = startMs + arrivalMs + (unsent.get(callerId) ?? 0);
      arrivals.set(callerId, Math.max(arrivals.get(callerId) ?? 0, arrival));
    }
    isCollecting = unsent.size > 0;
    if (isCollecting) collect(sentMs);
  }

  function collect(startMs: number): void {
    isCollecting = true;
    after(collectMs, () => void report(startMs));
  }

  return (callerId: number, intervalMs: number, nowMs: number): void => {
    unsent.set(callerId, (unsent.get(callerId) ?? 0) + intervalMs);
    if (!isCollecting) collect(nowMs);
  };
}
