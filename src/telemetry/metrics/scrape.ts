import { type Calendar, yearOf } from '../../domain/calendar.ts';
import type { BusinessClock, Clock } from '../../domain/clock.ts';
import type { Readiness } from '../../health/readiness.ts';
import { countOf } from '../../lib/distribution.ts';
import { withTimeout } from '../../lib/timing.ts';
import { buildInfo } from '../../packaging/build-info.ts';
import { perform, type Store } from '../../store/store.ts';
import type { Labels, MetricDefinition, Snapshot } from './definition.ts';
import { metrics } from './metrics.ts';
import type { ProcessMetrics } from './process-metrics.ts';

/** What a snapshot reads. */
export interface MetricSources {
  readonly store: Pick<Store, 'execute' | 'metrics'>;
  readonly readiness: Pick<Readiness, 'parts' | 'check'>;
  readonly clock: BusinessClock;
  readonly calendar: Calendar;
  /** Reads the metrics of all other parts. */
  readonly readOthers: () => Omit<
    Snapshot,
    'nowMs' | 'build' | 'store' | 'registry' | 'readiness' | 'process'
  >;
}

/** Reads all metrics now, except those of the process: reading these ends the period of their delays. */
export type ReadSnapshot = () => Promise<Snapshot>;

/** Returns all metrics in Prometheus' text format. Calls within a second share one result. */
export type Scrape = () => Promise<string>;

/** How long a result is shared, in milliseconds. */
const sharedMs = 1_000;
/** How long a scrape waits for the store, in milliseconds. Then it omits its metrics. Prometheus waits ten seconds. */
const storeTimeoutMs = 2_000;
const tooLate = new Error('The store does not respond.');

/** Reads metrics from these sources. */
export function createSnapshots({
  store,
  readiness,
  clock,
  calendar,
  readOthers,
}: MetricSources): ReadSnapshot {
  const readMetrics = inTime(clock, () => store.metrics());
  const readRegistry = inTime(clock, (nowMs) =>
    perform(store, { kind: 'ReadMetrics', nowMs, year: yearOf(calendar.timestamp(nowMs)) }),
  );
  return async () => {
    const nowMs = clock.nowMs();
    const [ofStore, registry, faults] = await Promise.all([
      readMetrics(nowMs),
      readRegistry(nowMs - clock.aheadMs()),
      readiness.check(),
    ]);
    const failing = new Set(faults.map(({ part }) => part));
    return {
      ...{ nowMs, build: buildInfo, store: ofStore, registry, process: undefined },
      readiness: Object.fromEntries(readiness.parts.map((part) => [part, !failing.has(part)])),
      ...readOthers(),
    };
  };
}

/** Returns a scrape of the snapshots, with the metrics of the process. */
export function createScrape(
  readSnapshot: ReadSnapshot,
  readProcess: () => ProcessMetrics,
  clock: Pick<Clock, 'monotonicMs'>,
): Scrape {
  let latest: { readonly atMs: number; readonly text: Promise<string> } | undefined;
  const read = async () => expose({ ...(await readSnapshot()), process: readProcess() });
  return () => {
    const atMs = clock.monotonicMs();
    if (latest === undefined || atMs - latest.atMs >= sharedMs) latest = { atMs, text: read() };
    return latest.text;
  };
}

/** Reads from the store, one request at a time, however long it takes. Returns undefined if it fails or is not in time. */
function inTime<T>(
  clock: Clock,
  read: (nowMs: number) => Promise<T>,
): (nowMs: number) => Promise<T | undefined> {
  let request: Promise<T> | undefined;
  return (nowMs) => {
    request ??= read(nowMs).finally(() => {
      request = undefined;
    });
    const reading = request;
    return withTimeout(clock, { ms: storeTimeoutMs, reason: tooLate }, () => reading).catch(() => undefined);
  };
}

/** The content type of Prometheus' text format. */
export const contentType = 'text/plain; version=0.0.4; charset=utf-8';

/** Writes all metrics in Prometheus' text format. A metric without samples is left out. */
function expose(snapshot: Snapshot): string {
  return metrics.map((metric) => linesOf(metric, snapshot)).join('');
}

function linesOf(metric: MetricDefinition, snapshot: Snapshot): string {
  const { name, help, type } = metric;
  const lines = type === 'histogram' ? histogramLines(metric, snapshot) : valueLines(metric, snapshot);
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function valueLines(metric: Exclude<MetricDefinition, { type: 'histogram' }>, snapshot: Snapshot): string[] {
  return metric.read(snapshot).map(({ labels = {}, value }) => line(metric.name, labels, value));
}

function histogramLines(
  { name, read }: Extract<MetricDefinition, { type: 'histogram' }>,
  snapshot: Snapshot,
): string[] {
  return read(snapshot).flatMap(({ labels = {}, value }) => {
    const count = countOf(value);
    let cumulated = 0;
    const buckets = value.bounds.map((bound, index) => {
      cumulated += value.counts[index] ?? 0;
      return line(`${name}_bucket`, { ...labels, le: String(bound) }, cumulated);
    });
    return [
      ...buckets,
      line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
      line(`${name}_sum`, labels, value.sum),
      line(`${name}_count`, labels, count),
    ];
  });
}

/** Label values need no escaping: they are of closed sets, without quotes, backslashes and newlines. */
function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}
