import type { CallMetrics } from '../../api/call-metrics.ts';
import { type Calendar, yearOf } from '../../domain/calendar.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Readiness } from '../../health/readiness.ts';
import { buildInfo } from '../../packaging/build-info.ts';
import { perform, type Store } from '../../store/store.ts';
import { expose } from './exposition.ts';
import type { ProcessWatch } from './process-metrics.ts';
import type { ProviderMetrics } from './provider-metrics.ts';
import type { Snapshot } from './snapshot.ts';

/** Where metrics come from. */
export interface MetricSources {
  readonly store: Pick<Store, 'execute' | 'metrics'>;
  readonly calls: CallMetrics;
  readonly provider: ProviderMetrics;
  readonly process: ProcessWatch;
  /** As `Snapshot.certificateEnds`. */
  readonly certificateEnds: () => Snapshot['certificateEnds'];
  /** As `Snapshot.cutOffs`. */
  readonly cutOffs: () => Snapshot['cutOffs'];
  /** As `Snapshot.access`. */
  readonly access: () => Snapshot['access'];
  /** As `Snapshot.backups`. */
  readonly backups: () => Snapshot['backups'];
  readonly evidenceLog: () => Snapshot['evidenceLog'];
  readonly feed: () => Snapshot['feed'];
  readonly sending: () => Snapshot['sending'];
  /** As `Snapshot.clockFault`. */
  readonly clockFault: () => Snapshot['clockFault'];
  readonly readiness: Pick<Readiness, 'parts' | 'check'>;
  readonly clock: Clock;
  readonly calendar: Calendar;
}

/** Returns all metrics in Prometheus' text format. Calls within a second share one result. */
export type Scrape = () => Promise<string>;

/** How long an answer is good for, in milliseconds. */
const sharedMs = 1_000;
/** How long the store is waited for, in milliseconds; its metrics are left out then. Prometheus waits ten seconds. */
const storeTimeoutMs = 2_000;

/** Reads metrics from these sources. */
export function createScrape(sources: MetricSources): Scrape {
  const { store, calls, provider, process, readiness, clock, calendar } = sources;
  let latest: { readonly atMs: number; readonly text: Promise<string> } | undefined;
  /** What the store was asked and has not answered: it is asked one thing at a time, however long it takes. */
  let asked: Promise<Pick<Snapshot, 'store' | 'registry'>> | undefined;

  async function askStore(nowMs: number): Promise<Pick<Snapshot, 'store' | 'registry'>> {
    const year = yearOf(calendar.timestamp(nowMs));
    const [registry, metrics] = await Promise.allSettled([
      perform(store, { kind: 'ReadMetrics', nowMs, year }),
      store.metrics(),
    ]);
    return {
      registry: registry.status === 'fulfilled' ? registry.value : undefined,
      store: metrics.status === 'fulfilled' ? metrics.value : undefined,
    };
  }

  /** The metrics of the store, if it responds in time. */
  async function storeMetrics(nowMs: number): Promise<Pick<Snapshot, 'store' | 'registry'>> {
    asked ??= askStore(nowMs).finally(() => {
      asked = undefined;
    });
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(storeTimeoutMs, resolve);
    const read = await Promise.race([asked, late]);
    cancel();
    return read ?? { store: undefined, registry: undefined };
  }

  async function read(): Promise<string> {
    const nowMs = clock.nowMs();
    const [read, faults] = await Promise.all([storeMetrics(nowMs), readiness.check()]);
    const failing = new Set(faults.map(({ part }) => part));
    return expose({
      ...{ nowMs, build: buildInfo, ...read },
      readiness: Object.fromEntries(readiness.parts.map((part) => [part, !failing.has(part)])),
      certificateEnds: sources.certificateEnds(),
      cutOffs: sources.cutOffs(),
      access: sources.access(),
      backups: sources.backups(),
      evidenceLog: sources.evidenceLog(),
      feed: sources.feed(),
      sending: sources.sending(),
      clockFault: sources.clockFault(),
      calls: calls.data(),
      provider: provider.data(),
      process: process.read(),
    });
  }

  return () => {
    const atMs = clock.monotonicMs();
    if (latest === undefined || atMs - latest.atMs >= sharedMs) latest = { atMs, text: read() };
    return latest.text;
  };
}
