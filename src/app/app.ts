import type { Logger } from 'pino';
import { createCallMetrics } from '../api/call-observer.ts';
import { createCalls } from '../api/pipeline.ts';
import type { Config } from '../config/config.ts';
import type { Publication } from '../evidence/log/publication.ts';
import { createClientOf } from '../http/listen/clients.ts';
import { OpenCalls } from '../http/listen/open-calls.ts';
import { openTlsListeners, type TlsListeners } from '../http/listen/tls-listeners.ts';
import { checkPlainListeners } from '../operations/check/listeners.ts';
import { openForServing, type Registry, systemClock } from '../operations/registry.ts';
import { createServingRecordPublisher, type ServingRecordPublisher } from '../operations/serving-record.ts';
import type { Traces } from '../telemetry/traces/traces.ts';
import { createListeners, type ListenerAddresses, type Listeners } from './listeners.ts';
import {
  type Backups,
  type DrainableReadiness,
  followBackups,
  listenForMetrics,
  openReadiness,
} from './monitoring.ts';
import { listenForRefreshes } from './refresh-socket.ts';
import { createReload, type Reload } from './reload.ts';
import { type Core, isDamaged, openCore, type Simulated, type Start } from './start.ts';

/** How long the start waits for the provider to check the credentials, in milliseconds. */
const providerTimeoutMs = 1_000;

/** How long the start waits until the evidence log is verified, in milliseconds; after that the service is not ready. */
const verificationTimeoutMs = 500;

/** A serving process. */
export interface App extends Registry, ListenerAddresses {
  /** Makes the service not ready; it still accepts calls. */
  drain(): void;
  readonly reload: Reload;
  /** host:port of the metrics as bound; undefined if they are off. */
  readonly metricsAddress: string | undefined;
  /** What is published of the evidence log. */
  readonly publication: Publication;
  /** Accepts no more calls, finishes those in flight and closes the database. */
  close(): Promise<void>;
}

/** All parts of a service that is about to listen. */
interface Assembly {
  readonly core: Core;
  readonly readiness: DrainableReadiness;
  readonly tls: TlsListeners;
  readonly listeners: Listeners;
  readonly metricsAddress: string | undefined;
  readonly backups: Backups;
}

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
): Promise<App> {
  await using opened = new AsyncDisposableStack();
  const { clock = systemClock } = simulated;
  const start: Start = { config, log, clock, simulated, traces, opened };
  const registry = await opening;
  const assembly = await assemble(start, registry);
  const { core, readiness, tls, metricsAddress } = assembly;
  const { publication } = core;
  const addresses = await openListeners(start, assembly);
  const serving = await joinCommands(start, core, { ...addresses, metricsAddress });
  const running = opened.move();
  return {
    ...{ ...registry, ...addresses, metricsAddress, publication },
    reload: createReload({ registry, tls, serving, clock, log }),
    drain: () => {
      readiness.drain();
      // Notifies those who watch the health now.
      void readiness.check();
    },
    close: () => running.disposeAsync(),
  };
}

/** Creates all parts. Only metrics are served after it, so that they are served until the other listeners are closed. */
async function assemble(start: Start, registry: Registry): Promise<Assembly> {
  const { config, log, clock, traces, opened } = start;
  const core = await openCore(start, registry);
  const { store, calendar, service, nonceGap } = core;
  const clientOf = createClientOf(config.trustedProxies);
  const tls = openTlsListeners(
    { public: config.publicTls, internal: config.internalTls },
    { clientOf, clock, log },
  );
  opened.defer(tls.end);
  const readiness = await openReadiness(start, core);
  const { dispatcher } = service;
  const calls = createCalls({
    ...{ store, keyRing: registry.keyRing, clock, calendar, dispatcher },
    nonceGapUntilS: nonceGap.untilS,
  });
  const callMetrics = createCallMetrics();
  const openCalls = new OpenCalls();
  const backups = followBackups(start);
  const monitored = { readiness, calls, callMetrics, openCalls, tls, backups };
  const metricsAddress = await listenForMetrics(start, core, monitored);
  const listeners = createListeners({
    ...{ store, clock, service, calls, readiness, clientOf, openCalls, tls },
    observers: { log, metrics: callMetrics, tracer: traces },
    startedAt: calendar.timestamp(clock.nowMs()),
  });
  opened.defer(() => {
    readiness.drain();
    service.endWaiting();
    return listeners.close();
  });
  return { core, readiness, tls, listeners, metricsAddress, backups };
}

/** Accepts calls, and starts what works in the background. Before that, waits a moment until the service is ready. */
async function openListeners(
  { config, log }: Start,
  { core, readiness, listeners, backups }: Assembly,
): Promise<ListenerAddresses> {
  const verifying = core.logVerification.start(verificationTimeoutMs);
  await Promise.all([core.payments.watch.answeredWithin(providerTimeoutMs), verifying]);
  await readiness.start();
  const addresses = await listeners.open(config);
  await core.nonceGap.served();
  await core.service.start();
  await backups.start();
  for (const { level, text } of await checkPlainListeners(config))
    if (level === 'warning') log.warn({ reason: text }, 'a listener has no TLS');
  return addresses;
}

/** Lets commands find this process and have it read what they change. */
async function joinCommands(
  { config: { dataDir }, log, clock, opened }: Start,
  { store, registry, filingClock, publication, service }: Core,
  listening: Pick<App, 'publicAddress' | 'internalAddress' | 'metricsAddress'>,
): Promise<ServingRecordPublisher> {
  const { publicAddress, internalAddress, metricsAddress } = listening;
  const addresses = [publicAddress, internalAddress, metricsAddress].filter(
    (address) => address !== undefined,
  );
  const serving = createServingRecordPublisher({
    ...{ dataDir, keyRing: registry.keyRing, addresses, clock, log },
  });
  const refresh = async () => {
    await store.refresh();
    await Promise.all([filingClock.refresh(), publication.refresh(), service.refresh()]);
  };
  opened.defer(await listenForRefreshes(dataDir, refresh, log));
  opened.defer(() => {
    if (!isDamaged(store)) serving.retract();
  });
  serving.publish();
  // A command that found neither the socket nor the record did not wait.
  await refresh();
  return serving;
}
