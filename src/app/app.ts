import { randomBytes, randomUUIDv7 } from 'node:crypto';
import type { Logger } from 'pino';
import { createCallMetrics, type ListenerName } from '../api/call-metrics.ts';
import { findNonceGap } from '../api/nonce-gap.ts';
import { createCalls } from '../api/pipeline.ts';
import { type Config, type ReloadableSettings, settings } from '../config/config.ts';
import { createCalendar } from '../domain/calendar.ts';
import type { Clock } from '../domain/clock.ts';
import { createCheckpointFile } from '../evidence/log/checkpoint-file.ts';
import { madeUpOrigin } from '../evidence/log/origin.ts';
import type { Publication } from '../evidence/log/publication.ts';
import { createSigner, type Signer } from '../evidence/log/signer.ts';
import { startTimeStamping } from '../evidence/log/time-stamping.ts';
import { createLogVerification } from '../evidence/log/verification.ts';
import { createWitnesses } from '../evidence/log/witness.ts';
import { createClockPart } from '../health/clock-part.ts';
import { createDamagePart } from '../health/damage-part.ts';
import { watchFilingClock } from '../health/filing-clock-watch.ts';
import { type ProviderWatch, watchProvider } from '../health/provider-watch.ts';
import { createReadiness, type ReadinessPart } from '../health/readiness.ts';
import { createStorePart } from '../health/store-part.ts';
import { watchStore } from '../health/store-watch.ts';
import { createClientOf } from '../http/listen/clients.ts';
import { createOpenCalls, type OpenCalls } from '../http/listen/open-calls.ts';
import { openTlsListeners, type TlsListeners } from '../http/listen/tls-listeners.ts';
import { readableByOthers } from '../lib/file-access.ts';
import type { BackupSchedule } from '../operations/backup/schedule.ts';
import { watchBackups } from '../operations/backup/watch.ts';
import { checkPlainListeners } from '../operations/check/listeners.ts';
import { confidentialFiles, openForServing, type Registry, systemClock } from '../operations/registry.ts';
import {
  createServingRecordPublisher,
  removeServingRecord,
  type ServingRecordPublisher,
} from '../operations/serving-record.ts';
import type { PaymentProvider, Surroundings } from '../payments/provider.ts';
import { type ReconciliationLimits, reconciliationLimits } from '../payments/reconciliation/limits.ts';
import type { Notifications } from '../payments/reconciliation/notifications.ts';
import type { Execute, Store } from '../store/store.ts';
import { createMetricsListener } from '../telemetry/metrics/metrics-listener.ts';
import { createProcessWatch } from '../telemetry/metrics/process-metrics.ts';
import { createProviderMetrics } from '../telemetry/metrics/provider-metrics.ts';
import { createScrape, type MetricSources } from '../telemetry/metrics/scrape.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { createListeners, type ListenerAddresses, listenAt } from './listeners.ts';
import { listenForRefreshes } from './refresh-socket.ts';
import { masterKeyPart } from './reload/parts.ts';
import { createReload } from './reload/reload.ts';
import { createService, type Service, type ServiceParts } from './service.ts';

/** How long the start waits for the provider's word on the credentials, in milliseconds. */
const providerTimeoutMs = 1_000;

/** How long the start waits until the evidence log is verified, in milliseconds; after that the service is not ready. */
const verificationTimeoutMs = 500;

/** What tests replace: time, timeout, the provider, and the thread of the store, which takes long to start. */
export interface Simulated {
  readonly clock?: Clock;
  readonly provider?: PaymentProvider;
  readonly limits?: Partial<ReconciliationLimits>;
  /** Whether the store works in this thread. */
  readonly isStoreInThisThread?: boolean;
}

/** A serving process. */
export interface App extends Registry, ListenerAddresses {
  /** Says from now on that it is not ready; calls are taken as before. */
  drain(): void;
  /** Reads anew what can be, certificates included, and logs what came of it: each part in full, or as it was. */
  reload(settings: ReloadableSettings): Promise<void>;
  /** Until when the certificates in force are good, in Unix milliseconds, by the doors that speak TLS. */
  certificateEnds(): ReadonlyMap<ListenerName, number>;
  /** host:port of the metrics as bound; undefined if they are off. */
  readonly metricsAddress: string | undefined;
  /** What is published of the evidence log. */
  readonly publication: Publication;
  /** Accepts no more calls, answers those in flight, makes all durable and lets go of the database. */
  close(): Promise<void>;
}

/** What each step of a start works with. */
interface Start {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly simulated: Simulated;
  readonly traces: Traces | undefined;
  /** Closes what was opened, in the reverse order. */
  readonly opened: AsyncDisposableStack;
}

/**
 * Starts serving on what was opened for it; resolves once both listeners accept connections. What was opened is closed
 * with it, or if it cannot start.
 */
export async function startApp(
  config: Config,
  log: Logger,
  simulated: Simulated = {},
  opening: Promise<Registry> = openForServing(config, simulated),
  traces?: Traces,
): Promise<App> {
  // What was opened is closed here if the start fails.
  await using opened = new AsyncDisposableStack();
  const { clock = systemClock } = simulated;
  const start = { config, log, clock, simulated, traces, opened };
  const registry = await opening;
  const store = await beginServing(start, registry);
  const { signer: publication, findFault: findRollback } = await publishLog(start, registry);
  const logVerification = createLogVerification({ ...registry, dataDir: config.dataDir, clock, log });
  opened.defer(logVerification.stop);
  const nonceGap = await findNonceGap(registry.execute, clock, log);
  const clientOf = createClientOf(config.trustedProxies);
  const tls = openTlsListeners(
    { public: config.publicTls, internal: config.internalTls },
    { clientOf, clock, log },
  );
  opened.defer(tls.end);
  let notifications: Notifications | undefined;
  const payments = await openProvider(start, async (notification) => {
    if (notifications === undefined) throw new Error('The service has not started yet.');
    await notifications.accept(notification);
  });
  const filingClock = await watchFilingClock(registry.execute, clock, log);
  opened.defer(filingClock.stop);
  const shared = { store, keyRing: registry.keyRing, clock, calendar: createCalendar(config.timeZone) };
  const service = openService(
    start,
    {
      ...{ ...shared, publication, clockSetByS: filingClock.setByS },
      isRolledBack: () => findRollback() !== undefined,
    },
    payments.observed,
  );
  notifications = service.notifications;
  const readiness = await openReadiness(start, store, registry.execute, payments.watch, [
    { name: 'evidence', findFault: logVerification.findFault },
    { name: 'witnesses', findFault: findRollback },
    { name: 'restored', isPublic: true, findFault: nonceGap.findFault },
  ]);
  const { dispatcher } = service;
  const calls = createCalls({ ...shared, dispatcher, nonceGapUntilS: nonceGap.untilS });
  const callMetrics = createCallMetrics();
  const openCalls = createOpenCalls();
  const backups = followBackups(start);
  // It is the last to stop, so that metrics can be read while the doors close.
  const metricsAddress = await listenForMetrics(start, openCalls, {
    ...{ ...shared, readiness, calls: callMetrics, provider: payments.metrics },
    certificateEnds: tls.ends,
    cutOffs: openCalls.cutOffs,
    access: payments.watch.state,
    clockFault: filingClock.fault,
    backups: backups.metrics,
    evidenceLog: publication.metrics,
    feed: () => ({ streams: calls.openStreams(), polls: service.waitingCalls() }),
    sending: service.sending,
  });
  const doors = createListeners({
    ...{ store, clock, service, calls, readiness, clientOf, openCalls, tls },
    observers: { log, metrics: callMetrics, tracer: traces },
    startedAt: shared.calendar.timestamp(clock.nowMs()),
  });
  opened.defer(() => {
    readiness.drain();
    service.endWaiting();
    return doors.close();
  });

  const verifying = logVerification.start(verificationTimeoutMs);
  await Promise.all([payments.watch.answeredWithin(providerTimeoutMs), verifying]);
  await readiness.start();
  const addresses = await doors.open(config);
  await nonceGap.served();
  await service.start();
  await backups.start();
  for (const { level, text } of await checkPlainListeners(config))
    if (level === 'warning') log.warn({ reason: text }, 'a listener has no TLS');
  const { publicAddress, internalAddress } = addresses;
  const serving = createServingRecordPublisher({
    ...{ dataDir: config.dataDir, keyRing: registry.keyRing, clock, log },
    addresses: [publicAddress, internalAddress, metricsAddress].filter((address) => address !== undefined),
  });
  const refresh = async () => {
    await store.refresh();
    await Promise.all([filingClock.refresh(), publication.refresh(), service.refresh()]);
  };
  opened.defer(await listenForRefreshes(config.dataDir, refresh, log));
  opened.defer(() => {
    if (!isDamaged(store)) serving.retract();
  });
  serving.publish();
  // A command that found neither the socket nor the record did not wait.
  await refresh();
  const running = opened.move();
  return {
    ...{ ...registry, ...addresses, metricsAddress, publication },
    certificateEnds: tls.ends,
    reload: reloading(start, { registry, tls, serving }),
    drain: () => {
      readiness.drain();
      // Those who watch are told at once.
      void readiness.check();
    },
    close: () => running.disposeAsync(),
  };
}

/** Has the store to itself from now on, and takes the place of whoever served before; the store as it is traced. */
async function beginServing(
  { config, log, clock, traces, opened }: Start,
  registry: Registry,
): Promise<Store> {
  const store = traces?.observeStore(registry.store) ?? registry.store;
  opened.defer(() => store.close());
  for (const file of readableByOthers(confidentialFiles(config)))
    log.warn(file, 'every user of this machine may read this file or folder: chmod o-r');
  opened.defer(watchStore(store, clock, log));
  const { checkedMs: ms, upgrade } = store;
  if (upgrade !== undefined) log.info(upgrade, 'the database was upgraded to the schema of this version');
  if (ms !== undefined)
    log.warn(
      { ms },
      'the database was not closed when it was served last, or was found damaged: it was checked, and it is sound',
    );
  await store.beginServing();
  // Not before: it may be that of another process that serves. An earlier one may have left it behind.
  removeServingRecord(config.dataDir);
  opened.defer(() => {
    // The next start checks the whole database if the record is still there.
    if (!isDamaged(store)) removeServingRecord(config.dataDir);
  });
  await registry.execute({ kind: 'UseProvider', name: config.provider.name });
  return store;
}

/** Whether damage was found in a store since it was opened. */
const isDamaged = (store: Store): boolean => store.storageErrors().damage !== undefined;

/**
 * Signs the evidence log, and what it grows to, until what was opened is closed; then once more. Others attest to it if asked
 * to. `findFault` says why filings are refused: a witness finds the log rolled back, and the settings say to refuse then.
 */
async function publishLog(
  { config, clock, log, opened }: Start,
  { execute, keyRing, store }: Registry,
): Promise<{ readonly signer: Signer; readonly findFault: () => string | undefined }> {
  const { logWitnesses, logTimeStamps } = config;
  const refuseRolledBack = logWitnesses?.refuseRolledBack;
  const witnesses = logWitnesses && createWitnesses({ ...logWitnesses, execute, clock, log });
  opened.defer(() => witnesses?.stop());
  const signer = createSigner({
    ...{ execute, keyRing, witnesses, clock, log },
    origin: config.logOrigin,
    madeUpOrigin: madeUpOrigin(store),
    file: createCheckpointFile(config.dataDir),
    // The first filing must not take a number that is in the log which they know.
    awaitsWitnesses: refuseRolledBack,
  });
  await signer.start();
  opened.defer(signer.stop);
  if (logTimeStamps !== undefined) {
    const parts = { terms: logTimeStamps, publication: signer, execute, randomBytes, clock, log };
    opened.defer(startTimeStamping(parts).stop);
  }
  return { signer, findFault: () => (refuseRolledBack ? witnesses?.rolledBack()[0] : undefined) };
}

/** Opens the provider, and begins to ask it about the credentials; `observed` is the same, counted and traced. */
async function openProvider(
  { config, log, clock, simulated, traces, opened }: Start,
  notify: Surroundings['notify'],
) {
  const { provider: kind, providerSettings, dataDir } = config;
  const provider = simulated.provider ?? (await kind.open(providerSettings, { dataDir, clock, notify }));
  opened.defer(() => provider.close());
  const watch = watchProvider({ provider, name: kind.name, clock, random: Math.random, log });
  opened.defer(watch.stop);
  const metrics = createProviderMetrics();
  const counted = metrics.observe(provider);
  return { watch, metrics, observed: traces?.observeProvider(counted) ?? counted };
}

/** The service between its store and its provider, until it is stopped. */
function openService(
  { config, log, simulated, opened }: Start,
  shared: Pick<
    ServiceParts,
    'store' | 'keyRing' | 'clock' | 'calendar' | 'publication' | 'clockSetByS' | 'isRolledBack'
  >,
  provider: PaymentProvider,
): Service {
  const service = createService({
    ...{ ...shared, provider, log },
    environment: config.environment,
    partyRules: config.provider.parties,
    currency: config.currency,
    random: Math.random,
    newInstructionId: randomUUIDv7,
    webhooks: config.webhooks,
    limits: { ...reconciliationLimits, buyerDeadlineMs: config.buyerDeadlineMs, ...simulated.limits },
  });
  opened.defer(service.stop);
  return service;
}

/** Readiness of all parts; `drain` has it say from then on that it is not ready. */
async function openReadiness(
  { log, clock, opened }: Start,
  store: Store,
  execute: Execute,
  provider: ProviderWatch,
  otherParts: readonly ReadinessPart[],
) {
  let isDraining = false;
  const parts: readonly ReadinessPart[] = [
    createStorePart(store, clock),
    createDamagePart(store),
    createClockPart(clock, await newestFilingMs(execute)),
    { name: 'payment_provider', findFault: provider.findFault },
    ...otherParts,
    { name: 'draining', findFault: () => (isDraining ? 'the process was told to stop' : undefined) },
  ];
  const readiness = createReadiness(parts, clock, log);
  opened.defer(readiness.stop);
  provider.onChange(() => void readiness.check());
  opened.defer(store.onStorageError(() => void readiness.check()));
  const drain = () => {
    isDraining = true;
  };
  return { ...readiness, drain };
}

/** When the newest filing was made, or what an operator accepted since, Unix milliseconds; undefined if there is neither. */
async function newestFilingMs(execute: Execute): Promise<number | undefined> {
  const { datedS } = await execute({ kind: 'ReadLogClock' });
  return datedS && datedS * 1_000;
}

/** Has metrics read at the address of the settings, if there is one, until what was opened is closed; the address as bound. */
async function listenForMetrics(
  { config, log, opened }: Start,
  openCalls: OpenCalls,
  sources: Omit<MetricSources, 'process'>,
): Promise<string | undefined> {
  if (config.metricsAddress === undefined) return undefined;
  const watch = createProcessWatch();
  const { host } = config.metricsAddress;
  const listener = createMetricsListener({
    ...{ scrape: createScrape({ ...sources, process: watch }), openCalls, log, host },
  });
  opened.defer(() => {
    watch.stop();
    listener.close();
    listener.closeAllConnections();
  });
  return listenAt(listener, config.metricsAddress, settings.metricsAddress);
}

/** Follows the backups until what was opened is closed; `start` has them taken, where the settings ask for that. */
function followBackups({ config, clock, log, opened }: Start): {
  readonly metrics: MetricSources['backups'];
  readonly start: () => Promise<void>;
} {
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
      // Loaded where it is asked for.
      const [{ inChild }, { startBackups }] = await Promise.all([
        import('../operations/backup/in-child.ts'),
        import('../operations/backup/schedule.ts'),
      ]);
      schedule = startBackups(inChild(dataDir, { folder, everyMs, keep }), everyMs, clock, log);
      opened.defer(schedule.stop);
    },
  };
}

/** What is read anew while it serves. */
interface Reloaded {
  readonly registry: Registry;
  readonly tls: TlsListeners;
  readonly serving: ServingRecordPublisher;
}

function reloading({ clock, log }: Start, { registry, tls, serving }: Reloaded): App['reload'] {
  const reload = createReload(log);
  return async ({ masterKeys }) => {
    tls.reload();
    await reload([masterKeyPart(masterKeys, registry, clock, serving)]);
  };
}
