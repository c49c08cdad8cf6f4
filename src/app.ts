import { randomUUIDv7 } from 'node:crypto';
import type { Logger } from 'pino';
import type { BackupStatus } from './backup/schedule.ts';
import { createCalls } from './calls/pipeline.ts';
import { createCalendar } from './domain/calendar.ts';
import type { Clock } from './domain/clock.ts';
import { createDoors, type DoorAddresses, listenAt } from './doors.ts';
import { readableByOthers } from './file-access.ts';
import type { ListenAddress } from './listening/address.ts';
import { createClientOf } from './listening/clients.ts';
import { type DoorName, openTlsDoors } from './listening/tls-doors.ts';
import { findNonceGap } from './nonce-gap.ts';
import { createCallFigures } from './observe/call-figures.ts';
import { createInstitutionFigures } from './observe/metrics/institution-figures.ts';
import { createMetricsListener } from './observe/metrics/metrics-listener.ts';
import { createProcessWatch } from './observe/metrics/process-figures.ts';
import { createScrape, type FigureSources } from './observe/metrics/scrape.ts';
import type { Traces } from './observe/traces/traces.ts';
import type { Institution } from './payment/institution.ts';
import { createClockPart } from './readiness/clock-part.ts';
import { type InstitutionWatch, watchInstitution } from './readiness/institution-watch.ts';
import { createReadiness, type ReadinessPart } from './readiness/readiness.ts';
import { createStorePart } from './readiness/store-part.ts';
import { watchStore } from './readiness/store-watch.ts';
import { type ReconciliationLimits, reconciliationLimits } from './reconciliation/limits.ts';
import { confidentialFiles, openForServing, type Registry, systemClock } from './registry.ts';
import { institutionPart, masterKeyPart } from './reload/parts.ts';
import { createReload } from './reload/reload.ts';
import { notificationPath } from './rest/notification-call.ts';
import { createService } from './service.ts';
import { createServingTeller, removeServingRecord } from './serving-record.ts';
import { type Config, type RegularBackups, type ReloadableSettings, settings } from './settings/config.ts';
import type { Execute } from './store/store.ts';

/** How long the start waits for the institution's word on the credentials, in milliseconds. */
const institutionPatienceMs = 1_000;

/** What tests replace: time, patience, the institution, and the thread of the store, which takes long to start. */
export interface Simulated {
  readonly clock?: Clock;
  readonly institution?: Institution;
  readonly limits?: Partial<ReconciliationLimits>;
  /** Whether the store works in this thread. */
  readonly isStoreInThisThread?: boolean;
}

/** A serving process. */
export interface App extends Registry, DoorAddresses {
  /** Says from now on that it is not ready; calls are taken as before. */
  drain(): void;
  /** What is known of the credentials at the institution. */
  readonly institutionWatch: Pick<InstitutionWatch, 'state' | 'findFault'>;
  /** Reads anew what can be, certificates included, and logs what came of it: each part in full, or as it was. */
  reload(settings: ReloadableSettings): Promise<void>;
  /** Until when the certificates in force are good, in Unix milliseconds, by the doors that speak TLS. */
  certificateEnds(): ReadonlyMap<DoorName, number>;
  /** host:port of the figures as bound; undefined if they are off. */
  readonly metricsAddress: string | undefined;
  /** How the backups stand that are taken regularly; undefined if none are. */
  backupStatus(): BackupStatus | undefined;
  /** Accepts no more calls, answers those in flight, makes all durable and lets go of the database. */
  close(): Promise<void>;
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
  const { clock = systemClock } = simulated;
  // What was opened is closed in the reverse order, here if the start fails.
  await using opened = new AsyncDisposableStack();
  const registry = await opening;
  const { execute, keyRing } = registry;
  const store = traces?.observeStore(registry.store) ?? registry.store;
  opened.defer(() => store.close());
  for (const file of readableByOthers(confidentialFiles(config)))
    log.warn(file, 'every user of this machine may read this file or folder: chmod o-r');
  opened.defer(watchStore(store, clock, log));
  await store.beginServing();
  // Not before: it may be that of another process that serves. An earlier one may have left it behind.
  removeServingRecord(config.dataDir);
  opened.defer(() => removeServingRecord(config.dataDir));
  await execute({ kind: 'UseInstitution', name: config.institution.name });
  const nonceGap = await findNonceGap(execute, clock, log);

  const clientOf = createClientOf(config.trustedProxies);
  const tls = openTlsDoors(
    { public: config.publicTls, internal: config.internalTls },
    { clientOf, clock, log },
  );
  opened.defer(tls.end);

  let addresses: DoorAddresses | undefined;
  const ownDoor = () =>
    addresses && {
      url: `${addresses.publicUrl}${notificationPath}`,
      certificate: tls.public?.certificate(),
    };
  const surroundings = { dataDir: config.dataDir, clock, ownDoor };
  const institution =
    simulated.institution ?? (await config.institution.open(config.institutionSettings, surroundings));
  opened.defer(() => institution.close());
  const institutionWatch = watchInstitution({
    ...{ institution, clock, log },
    name: config.institution.name,
    random: Math.random,
  });
  opened.defer(institutionWatch.stop);
  const institutionFigures = createInstitutionFigures();
  const counted = institutionFigures.observe(institution);
  const calendar = createCalendar(config.timeZone);
  const service = createService({
    ...{ store, keyRing, clock, calendar, log },
    institution: traces?.observeInstitution(counted) ?? counted,
    environment: config.environment,
    currency: config.currency,
    random: Math.random,
    newInstructionId: randomUUIDv7,
    limits: { ...reconciliationLimits, ...simulated.limits },
  });
  opened.defer(service.stop);

  const callFigures = createCallFigures();
  const observers = { log, figures: callFigures, tracer: traces };
  const calls = createCalls({
    ...{ store, keyRing, clock, calendar },
    dispatcher: service.dispatcher,
    nonceGapUntilS: nonceGap.untilS,
  });
  let isDraining = false;
  const parts: readonly ReadinessPart[] = [
    createStorePart(store, clock),
    createClockPart(clock, await newestFilingMs(execute)),
    { name: 'institution', findFault: institutionWatch.findFault },
    { name: 'draining', findFault: () => (isDraining ? 'the process was told to stop' : undefined) },
  ];
  const readiness = createReadiness(parts, clock, log);
  opened.defer(readiness.stop);
  institutionWatch.onChange(() => void readiness.check());
  const sources = {
    ...{ store, calls: callFigures, institution: institutionFigures, clock, calendar, readiness },
    certificateEnds: tls.ends,
  };
  // It is the last to stop, so that figures can be read while the doors close.
  const metricsAddress = await listenForMetrics(config.metricsAddress, sources, log, opened);
  const doors = createDoors({
    ...{ store, service, calls, readiness, clientOf, tls, observers },
    startedAt: calendar.timestamp(clock.nowMs()),
  });
  opened.defer(() => {
    isDraining = true;
    return doors.close();
  });

  await institutionWatch.answeredWithin(institutionPatienceMs);
  await readiness.start();
  addresses = await doors.open(config);
  await nonceGap.served();
  await service.start();
  const backups = config.backups && (await startBackupsOf(config.dataDir, config.backups, clock, log));
  if (backups !== undefined) opened.defer(backups.stop);
  const listening = [addresses.publicAddress, addresses.internalAddress, metricsAddress];
  const bound = listening.filter((address) => address !== undefined);
  const tellServing = createServingTeller(config.dataDir, keyRing, bound, log);
  tellServing();
  const reload = createReload(log);
  const running = opened.move();
  return {
    ...registry,
    ...addresses,
    ...{ metricsAddress, institutionWatch },
    certificateEnds: tls.ends,
    reload: async ({ masterKeys, institution: named }) => {
      tls.reload();
      await reload([
        masterKeyPart(masterKeys, registry, clock, tellServing),
        // Most institutions have no file.
        ...(named.files.length === 0 ? [] : [institutionPart(named, config.institution.name, institution)]),
      ]);
    },
    drain: () => {
      isDraining = true;
      // Those who watch are told at once.
      void readiness.check();
    },
    backupStatus: () => backups?.status(),
    close: () => running.disposeAsync(),
  };
}

/** When the newest filing was made, Unix milliseconds; undefined if there is none. */
async function newestFilingMs(execute: Execute): Promise<number | undefined> {
  const filter = { owner: undefined, year: undefined };
  const { items } = await execute({ kind: 'ListFilings', filter, page: { from: undefined, size: 1 } });
  return items[0] && Date.parse(items[0].timestamp);
}

/** Has figures read at an address, if there is one, until what was `opened` is closed; the address as bound. */
async function listenForMetrics(
  address: ListenAddress | undefined,
  sources: Omit<FigureSources, 'process'>,
  log: Logger,
  opened: AsyncDisposableStack,
): Promise<string | undefined> {
  if (address === undefined) return undefined;
  const watch = createProcessWatch();
  const listener = createMetricsListener({ scrape: createScrape({ ...sources, process: watch }), log });
  opened.defer(() => {
    watch.stop();
    listener.close();
    listener.closeAllConnections();
  });
  return listenAt(listener, address, settings.metricsAddress);
}

async function startBackupsOf(dataDir: string, regular: RegularBackups, clock: Clock, log: Logger) {
  // Loaded where it is asked for.
  const [{ inChild }, { startBackups }] = await Promise.all([
    import('./backup/in-child.ts'),
    import('./backup/schedule.ts'),
  ]);
  return startBackups(inChild(dataDir, regular), regular.everyMs, clock, log);
}
