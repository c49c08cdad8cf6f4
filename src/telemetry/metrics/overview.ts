import type { CallMetrics } from '../../api/call-observer.ts';
import type { Clock } from '../../domain/clock.ts';
import { reasons } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { countOf } from '../../lib/distribution.ts';
import { every } from '../../lib/timing.ts';
import { metrics } from './metrics.ts';
import type { ReadSnapshot } from './scrape.ts';

/** The period of samples, in milliseconds. */
const sampleEveryMs = 60_000;
/** How many samples are kept: a day of them. */
const samplesMax = 1_440;

const createFiling = 'artseal.v1.FilingService/CreateFiling';

/** What an overview reads. */
export interface OverviewSources {
  readonly readSnapshot: ReadSnapshot;
  readonly readiness: Pick<Readiness, 'check'>;
  readonly callMetrics: Pick<CallMetrics, 'data'>;
  readonly clock: Clock;
}

/** Samples the call metrics once a minute. `read` returns the overview of now, as GetOverview does. */
export function createOverview({ readSnapshot, readiness, callMetrics, clock }: OverviewSources) {
  const samples: ReturnType<typeof sample>[] = [];

  function sample() {
    const calls = callMetrics.data();
    const total = (counts: (call: (typeof calls)[number]) => boolean) =>
      calls.reduce((sum, call) => (counts(call) ? sum + countOf(call.seconds) : sum), 0);
    const ended = (from: number, below: number) =>
      total(({ listener, operation, end }) => {
        const status = end === 'OK' ? 200 : reasons[end].http;
        // The routes without signature, such as pages and health checks, are named by their paths.
        const isCall = listener === 'public' && !operation.startsWith('/');
        return isCall && status >= from && status < below;
      });
    return {
      atS: Math.floor(clock.nowMs() / 1_000),
      calls: ended(200, 600),
      rejected: ended(400, 500),
      failed: ended(500, 600),
      filings: total(({ operation, end }) => operation === createFiling && end === 'OK'),
    };
  }

  const sampling = every(
    clock,
    () => sampleEveryMs,
    () => {
      samples.push(sample());
      if (samples.length > samplesMax) samples.shift();
    },
  );
  void sampling.start();
  return {
    read: async () => {
      const [snapshot, faults] = await Promise.all([readSnapshot(), readiness.check()]);
      const values = metrics.flatMap((metric) =>
        metric.type === 'histogram'
          ? []
          : metric.read(snapshot).map(({ labels = {}, value }) => ({ name: metric.name, labels, value })),
      );
      return { faults, metrics: values, samples: [...samples, sample()] };
    },
    stop: sampling.stop,
  };
}
