import { statSync } from 'node:fs';
import { createCallMetrics } from '../api/call-observer.ts';
import { createCalls } from '../api/pipeline.ts';
import type { Part, ReadOverview, Reload } from '../api/services/dependencies.ts';
import { type Config, type MasterKeySource, reloadableMasterKeys, settings } from '../config/config.ts';
import { readKeyRing } from '../config/master-key.ts';
import { unavailable } from '../domain/reason.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { createClockPart } from '../health/clock-part.ts';
import { createReadiness } from '../health/readiness.ts';
import { createStorePart, findDamage } from '../health/store-part.ts';
import { OpenCalls } from '../http/listen/open-calls.ts';
import { openTlsListeners, type TlsListeners } from '../http/listen/tls-listeners.ts';
import { checkSealedSecrets } from '../keys/sealed-secrets.ts';
import { refuseChangeableByOthers } from '../lib/file-access.ts';
import type { Logger } from '../lib/log.ts';
import { createClientOf } from '../lib/networks.ts';
import type { BackupCommands } from '../operations/backup/commands.ts';
import type { BackupSchedule } from '../operations/backup/schedule.ts';
import { watchBackups } from '../operations/backup/standing.ts';
import { checkPlainListeners } from '../operations/check/listeners.ts';
import { joinInstances } from '../operations/instances.ts';
import { openForServing, type Registry, systemClock } from '../operations/registry.ts';
import { removeServingRecord, writeServingRecord } from '../operations/serving-record.ts';
import type { Snapshot } from '../telemetry/metrics/definition.ts';
import { createMetricsListener } from '../telemetry/metrics/metrics-listener.ts';
import { createOverview } from '../telemetry/metrics/overview.ts';
import { createProcessWatch } from '../telemetry/metrics/process-metrics.ts';
import { createScrape, createSnapshots, type ReadSnapshot } from '../telemetry/metrics/scrape.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { type CallParts, createListeners, type ListenerAddresses, listenAt } from './listeners.ts';
import { type Core, openCore, type Simulated, type Start } from './start.ts';

/** How long the start waits for the provider to check the credentials, in milliseconds. */
const providerTimeoutMs = 1_000;

/** How long the start waits until the evidence log is verified, in milliseconds; after that the service is not ready. */
const verificationTimeoutMs = 500;

/** A serving process. */
export type App = Awaited<ReturnType<typeof startApp>>;

/**
 * Starts serving with an opened registry. Resolves when both listeners accept connections. Closing the app closes the
 * registry, as does a failed start.
 */
export async function startApp(
  config: Config,
  log: Logger,
  simulated: Simulated = {},
  opening: Promise<Registry> = openForServing(config, simulated),
  traces?: Traces,
) {
  await using opened = new AsyncDisposableStack();
  const { clock = systemClock } = simulated;
  const start: Start = { config, log, clock, simulated, traces, opened };
  const registry = await opening;
  const starting = async () => {
    throw unavailable('The server is starting.');
  };
  let [reload, readOverview]: [Reload, ReadOverview] = [starting, starting];
  const running = { reload: () => reload(), readOverview: () => readOverview() };
  const core = await openCore(start, registry, running);
  const assembly = await assemble(start, core);
  const { readiness, tls, metricsAddress } = assembly;
  readOverview = assembly.readOverview;
  const addresses = await openListeners(start, core, assembly);
  const { publicAddress, internalAddress } = addresses;
  const publish = publishRecord(start, core, [publicAddress, internalAddress, metricsAddress]);
  reload = createReload(start, registry, tls, publish);
  const closing = opened.move();
  return {
    ...{ ...registry, ...addresses, reload },
    /** host:port of the metrics as bound; undefined if they are off. */
    metricsAddress,
    /** What is published of the evidence log. */
    publication: core.publication,
    /** Makes the service not ready; it still accepts calls. */
    drain: () => {
      readiness.drain();
      // Notifies those who watch the health now.
      void readiness.check();
    },
    /** Accepts no more calls, finishes those in flight and closes the database. */
    close: () => closing.disposeAsync(),
  };
}

/** Creates all parts. Only metrics are served after it, so that they are served until the other listeners are closed. */
async function assemble(start: Start, core: Core) {
  const { config, log, clock, opened } = start;
  const { store, registry, calendar, service } = core;
  const clientOf = createClientOf(config.trustedProxies);
  const tls = openTlsListeners(
    { public: config.publicTls, internal: config.internalTls },
    { clientOf, clock, log },
  );
  opened.defer(tls.end);
  const readiness = await openReadiness(start, core);
  const { keyRing } = registry;
  const calls = createCalls({
    ...{ store, keyRing, clock, calendar, dispatcher: service.dispatcher },
    nonceGapUntilS: core.nonceGap.untilS,
    aheadMs: core.businessClock.aheadMs,
  });
  const openCalls = new OpenCalls();
  const parts = { calls, callMetrics: createCallMetrics(), readiness, clientOf, openCalls, tls };
  const backups = followBackups(start, core.backups);
  const readSnapshot = readMetrics(core, parts, backups);
  const { callMetrics } = parts;
  const overview = createOverview({ readSnapshot, readiness, callMetrics, clock });
  opened.defer(overview.stop);
  const metricsAddress = await listenForMetrics(start, readSnapshot, openCalls);
  const listeners = createListeners(start, core, parts);
  opened.defer(() => {
    readiness.drain();
    service.endWaiting();
    return listeners.close();
  });
  return { readiness, tls, listeners, metricsAddress, backups, readOverview: overview.read };
}

/** Accepts calls, and starts what works in the background. Before that, waits a moment until the service is ready. */
async function openListeners(
  { config, log }: Start,
  core: Core,
  { readiness, listeners, backups }: Awaited<ReturnType<typeof assemble>>,
): Promise<ListenerAddresses> {
  const verifying = core.logVerification.start(verificationTimeoutMs);
  await Promise.all([core.payments.watch.answeredWithin(providerTimeoutMs), verifying]);
  await readiness.start();
  const addresses = await listeners.open();
  await core.nonceGap.served();
  await core.service.start();
  await backups.start();
  for (const { level, text } of await checkPlainListeners(config))
    if (level === 'warning') log.warn({ reason: text }, 'a listener has no TLS');
  return addresses;
}

/** Says in the serving record that this process serves the folder, and at which addresses. */
function publishRecord(
  { config: { dataDir }, log, opened }: Start,
  { store, registry: { keyRing } }: Core,
  addresses: readonly (string | undefined)[],
): () => void {
  opened.defer(() => {
    // With damage it stays, and the next start checks the whole database.
    if (store.storageErrors().damage === undefined) removeServingRecord(dataDir);
  });
  const bound = addresses.filter((address) => address !== undefined);
  const publish = () =>
    writeServingRecord(dataDir, { addresses: bound, masterKeys: keyRing.masterKeys }, log);
  publish();
  return publish;
}

/** Creates the readiness of all parts. After `drain` the server is not ready any more. */
async function openReadiness({ log, clock, opened }: Start, core: Core) {
  const { store, registry, payments, nonceGap, publication, logVerification, findRollback } = core;
  const { datedS } = await registry.execute({ kind: 'ReadLogClock' });
  let isDraining = false;
  const parts = [
    createStorePart(store, clock),
    { name: 'database', findFault: () => findDamage(store) },
    createClockPart(clock, datedS && datedS * 1_000),
    { name: 'payment_provider', findFault: payments.watch.findFault },
    { name: 'evidence', findFault: () => logVerification.findFault() ?? publication.rollback() },
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

/** Reads the metrics of all parts. */
function readMetrics(
  core: Core,
  { readiness, calls, callMetrics, openCalls, tls }: CallParts,
  backups: ReturnType<typeof followBackups>,
): ReadSnapshot {
  const { store, businessClock, calendar, payments, filingClock, publication, service } = core;
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
  });
  return createSnapshots({ store, readiness, clock: businessClock, calendar, readOthers });
}

/** Serves metrics at the address of the settings. Returns the address as bound; undefined if metrics are off. */
async function listenForMetrics(
  { config, clock, log, opened }: Start,
  readSnapshot: ReadSnapshot,
  openCalls: OpenCalls,
): Promise<string | undefined> {
  if (config.metricsAddress === undefined) return undefined;
  const watch = createProcessWatch();
  const scrape = createScrape(readSnapshot, watch.read, clock);
  const listener = createMetricsListener({ scrape, openCalls, log, host: config.metricsAddress.host });
  opened.defer(() => {
    watch.stop();
    listener.close();
    listener.closeAllConnections();
  });
  return listenAt(listener, config.metricsAddress, settings.metricsAddress);
}

/** Watches the backups. `start` begins to take them if the settings name a folder. */
function followBackups({ config, clock, log, opened }: Start, { runInTurn }: BackupCommands) {
  const { dataDir, environment, database } = config;
  const { folder, everyMs, keep } = config.backups;
  const isRequired = environment === 'production' && database === undefined;
  const watch = watchBackups({ dataDir, folder, everyMs, isRequired }, clock, log);
  opened.defer(watch.stop);
  let schedule: BackupSchedule | undefined;
  return {
    metrics: (): Snapshot['backups'] => {
      // The folder may have been one of SQLite.
      const known = database === undefined ? watch.standing() : undefined;
      return known && { everyMs, last: known.last, failure: schedule?.failure() ?? known.failure };
    },
    start: async () => {
      if (folder === undefined) return;
      // Few deployments need this module.
      const { inChild, startBackups } = await import('../operations/backup/schedule.ts');
      schedule = startBackups(inChild(runInTurn, { folder, everyMs, keep }), everyMs, clock, log);
      opened.defer(schedule.stop);
    },
  };
}

/**
 * Returns a reload that runs once at a time. Calls that wait for the same run share it, so that many signals queue no more than
 * one. It logs what it returns, and calls `publish` when there are other master keys.
 */
function createReload(
  { config, clock, log }: Start,
  registry: Registry,
  tls: TlsListeners,
  publish: () => void,
): Reload {
  let running: Promise<unknown> = Promise.resolve();
  let waiting: Promise<readonly Part[]> | undefined;

  /** Uses the new keys if every secret opens with them. Returns their names. */
  async function replaceKeys(source: MasterKeySource): Promise<string[]> {
    const next = readKeyRing(source);
    await checkSealedSecrets(registry.execute, next, Math.floor(clock.nowMs() / 1000));
    await joinInstances(config, next, registry.execute).catch(async (error) => {
      // The others must see the keys that this instance still uses.
      await joinInstances(config, registry.keyRing, registry.execute);
      throw error;
    });
    registry.keyRing.replace(next);
    publish();
    return next.masterKeys.map(({ name }) => name);
  }

  async function reloadKeys(): Promise<Part> {
    const name = 'master keys';
    const { files, read } = reloadableMasterKeys(config.variables);
    if (files.length === 0) {
      const detail = 'they come from a variable, so a change needs a restart';
      log.info(`master keys not reloaded: ${detail}`);
      return { name, result: 'NOT_RELOADABLE', detail };
    }
    try {
      rejectIrregular(files);
      refuseChangeableByOthers(files);
      const names = await replaceKeys(read());
      log.info({ files, names }, 'master keys reloaded');
      return { name, result: 'RELOADED', detail: names.join(', ') };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.error({ files, why }, 'master keys not reloaded: the old ones stay');
      return { name, result: 'FAILED', detail: why };
    }
  }

  async function reload(): Promise<readonly Part[]> {
    const certificates = tls.reload().map(({ listener, endsAtMs, failure }): Part => {
      const result = failure === undefined ? 'RELOADED' : 'FAILED';
      return { name: `${listener} certificate`, result, detail: failure ?? utcTimestamp(endsAtMs) };
    });
    return [await reloadKeys(), ...certificates];
  }

  return () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      const current = reload();
      running = current.catch(() => {});
      return current;
    });
    return waiting;
  };
}

/** Rejects pipes and the like: they can be read once, and opening one could wait for ever. */
function rejectIrregular(files: readonly string[]): void {
  for (const file of files) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
      throw new Error(`${file} is no regular file: it can be read only at the start`);
  }
}
