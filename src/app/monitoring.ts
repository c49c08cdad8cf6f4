import type { CallMetrics } from '../api/call-observer.ts';
import type { Calls } from '../api/pipeline.ts';
import { settings } from '../config/config.ts';
import { createClockPart } from '../health/clock-part.ts';
import { createDamagePart } from '../health/damage-part.ts';
import { createReadiness, type Readiness } from '../health/readiness.ts';
import { createStorePart } from '../health/store-part.ts';
import type { OpenCalls } from '../http/listen/open-calls.ts';
import type { TlsListeners } from '../http/listen/tls-listeners.ts';
import type { BackupSchedule } from '../operations/backup/schedule.ts';
import { watchBackups } from '../operations/backup/standing.ts';
import { createMetricsListener } from '../telemetry/metrics/metrics-listener.ts';
import { createProcessWatch } from '../telemetry/metrics/process-metrics.ts';
import { createScrape } from '../telemetry/metrics/scrape.ts';
import type { RegularBackupMetrics } from '../telemetry/metrics/snapshot.ts';
import { listenAt } from './listeners.ts';
import type { Core, Start } from './start.ts';

/** Readiness of all parts. After `drain` the server is not ready any more. */
export interface DrainableReadiness extends Readiness {
  drain(): void;
}

/** Creates the readiness of all parts. */
export async function openReadiness({ log, clock, opened }: Start, core: Core): Promise<DrainableReadiness> {
  const { store, registry, payments, nonceGap, logVerification, findRollback } = core;
  const { datedS } = await registry.execute({ kind: 'ReadLogClock' });
  let isDraining = false;
  const parts = [
    createStorePart(store, clock),
    createDamagePart(store),
    createClockPart(clock, datedS && datedS * 1_000),
    { name: 'payment_provider', findFault: payments.watch.findFault },
    { name: 'evidence', findFault: logVerification.findFault },
    { name: 'witnesses', findFault: findRollback },
    { name: 'restored', isPublic: true, findFault: nonceGap.findFault },
    { name: 'draining', findFault: () => (isDraining ? 'the server is stopping' : undefined) },
  ];
  const readiness = createReadiness(parts, clock, log);
  opened.defer(readiness.stop);
  payments.watch.onChange(() => void readiness.check());
  opened.defer(store.onStorageError(() => void readiness.check()));
  const drain = () => {
    isDraining = true;
  };
  return { ...readiness, drain };
}

/** The parts whose metrics are not those of the core. */
export interface Monitored {
  readonly readiness: Readiness;
  readonly calls: Calls;
  readonly callMetrics: CallMetrics;
  readonly openCalls: OpenCalls;
  readonly tls: TlsListeners;
  readonly backups: Backups;
}

/** Serves metrics at the address of the settings. Returns the address as bound; undefined if metrics are off. */
export async function listenForMetrics(
  { config, clock, log, opened }: Start,
  core: Core,
  { readiness, calls, callMetrics, openCalls, tls, backups }: Monitored,
): Promise<string | undefined> {
  if (config.metricsAddress === undefined) return undefined;
  const { store, calendar, payments, filingClock, publication, service } = core;
  const watch = createProcessWatch();
  const readOthers = () => ({
    certificateEnds: tls.ends(),
    cutOffs: openCalls.cutOffs,
    access: payments.watch.state(),
    clockFault: filingClock.fault(),
    backups: backups.metrics(),
    evidenceLog: publication.metrics(),
    feed: { streams: calls.openStreams(), polls: service.waitingCalls() },
    sending: service.sending(),
    calls: callMetrics.data(),
    provider: payments.metrics.data(),
    process: watch.read(),
  });
  const scrape = createScrape({ store, readiness, clock, calendar, readOthers });
  const listener = createMetricsListener({ scrape, openCalls, log, host: config.metricsAddress.host });
  opened.defer(() => {
    watch.stop();
    listener.close();
    listener.closeAllConnections();
  });
  return listenAt(listener, config.metricsAddress, settings.metricsAddress);
}

/** The backups of the data folder. */
export interface Backups {
  metrics(): RegularBackupMetrics | undefined;
  /** Starts to take backups if the settings name a folder. */
  start(): Promise<void>;
}

/** Watches the backups. */
export function followBackups({ config, clock, log, opened }: Start): Backups {
  const { dataDir, environment } = config;
  const { folder, everyMs, keep } = config.backups;
  const isRequired = environment === 'production';
  const watch = watchBackups({ dataDir, folder, everyMs, isRequired }, clock, log);
  opened.defer(watch.stop);
  let schedule: BackupSchedule | undefined;
  return {
    metrics: () => {
      const known = watch.standing();
      return known && { everyMs, last: known.last, failure: schedule?.failure() ?? known.failure };
    },
    start: async () => {
      if (folder === undefined) return;
      // Few deployments need this module.
      const { inChild, startBackups } = await import('../operations/backup/schedule.ts');
      schedule = startBackups(inChild(dataDir, { folder, everyMs, keep }), everyMs, clock, log);
      opened.defer(schedule.stop);
    },
  };
}
