import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { createBearerCheck } from '../api/authentication.ts';
import { createCallObserver, type Observers } from '../api/call-observer.ts';
import type { Calls } from '../api/pipeline.ts';
import { type Config, settings } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import type { Readiness } from '../health/readiness.ts';
import { createInternalListener, type InternalListener } from '../http/connect/internal-listener.ts';
import { createTypedCalls } from '../http/connect/typed-calls.ts';
import { addressText, type ListenAddress, listen, urlOf } from '../http/listen/address.ts';
import type { ClientOf } from '../http/listen/clients.ts';
import type { OpenCalls } from '../http/listen/open-calls.ts';
import type { TlsListeners } from '../http/listen/tls-listeners.ts';
import { createOpenRoutes } from '../http/rest/open-routes.ts';
import { createPublicListener } from '../http/rest/public-listener.ts';
import { createRoutes } from '../http/rest/routes.ts';
import { createSignedCalls } from '../http/rest/signed-call.ts';
import { buildInfo } from '../packaging/build-info.ts';
import { readPackaged } from '../packaging/packaged-files.ts';
import type { Setting } from '../payments/provider.ts';
import type { Store } from '../store/store.ts';
import type { Service } from './service.ts';

/** How long closing waits for the calls in flight, in milliseconds. */
const drainTimeoutMs = 10_000;
/** How often closing closes the connections that are idle, in milliseconds. */
const idleCheckMs = 50;

/** The addresses of both listeners. */
export interface ListenerAddresses {
  /** host:port as bound. */
  readonly publicAddress: string;
  /** With http or https. */
  readonly publicUrl: string;
  /** host:port as bound, or unix:/path. */
  readonly internalAddress: string;
  /** With http or https, or unix:/path. */
  readonly internalUrl: string;
}

/** Both listeners of a service. */
export interface Listeners {
  /** Starts to accept connections. Rejects with a message that names the setting of an address that cannot be used. */
  open(addresses: Pick<Config, 'publicAddress' | 'internalAddress'>): Promise<ListenerAddresses>;
  /** Accepts no more connections. Waits at most `drainTimeoutMs` for the calls in flight. */
  close(): Promise<void>;
}

/** What the listeners work with. */
export interface ListenerDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly service: Pick<Service, 'dispatcher' | 'notifications' | 'publicLog' | 'sharedEvidence'>;
  readonly calls: Calls;
  readonly readiness: Readiness;
  readonly clientOf: ClientOf;
  readonly openCalls: OpenCalls;
  readonly tls: TlsListeners;
  readonly observers: Observers;
  /** RFC 3339; shown at /version. */
  readonly startedAt: string;
}

/** Creates both listeners; `open` opens them. */
export function createListeners(dependencies: ListenerDependencies): Listeners {
  const { tls, observers } = dependencies;
  const { log } = observers;
  const draining = new AbortController();
  const publicListener = publicListenerOf(dependencies);
  const internalListener = internalListenerOf(dependencies, draining.signal);
  const { server, destroy, drain } = internalListener;
  return {
    open: async (addresses) => {
      const publicAddress = await listenAt(publicListener, addresses.publicAddress, settings.publicAddress);
      const internalAddress = await listenAt(server, addresses.internalAddress, settings.internalAddress);
      return {
        publicAddress,
        publicUrl: urlOf(publicAddress, tls.public !== undefined),
        internalAddress,
        internalUrl: urlOf(internalAddress, tls.internal !== undefined),
      };
    },
    close: async () => {
      draining.abort();
      const closed = [stop(publicListener, log), stop(server, log, destroy)];
      tls.public?.endHandshakes();
      drain();
      await Promise.all(closed);
    },
  };
}

function publicListenerOf(dependencies: ListenerDependencies): Server {
  const { service, calls, readiness, clientOf, openCalls, tls, observers, startedAt } = dependencies;
  const { version, commit = '' } = buildInfo;
  return createPublicListener({
    signedCalls: createSignedCalls(calls, createRoutes(service.dispatcher.services)),
    openRoutes: createOpenRoutes({
      openApi: readPackaged('openapi.yaml'),
      version: { version, commit, startedAt },
      readiness,
      log: service.publicLog,
      evidence: service.sharedEvidence,
      verifierPage: readPackaged('docs/verify.html'),
      notifications: service.notifications,
    }),
    ...{ clientOf, openCalls },
    tls: tls.public,
    observer: createCallObserver('public', observers),
  });
}

function internalListenerOf(dependencies: ListenerDependencies, draining: AbortSignal): InternalListener {
  const { store, clock, service, calls, readiness, clientOf, openCalls, tls, observers } = dependencies;
  const { services } = service.dispatcher;
  const bearerCheck = createBearerCheck(store, clock);
  return createInternalListener({
    typedCalls: createTypedCalls({ calls, services, bearerCheck, readiness, draining }),
    ...{ clientOf, openCalls },
    tls: tls.internal,
    observer: createCallObserver('internal', observers),
  });
}

/** Listens, and returns the address as bound. Rejects with a message that names the setting. */
export async function listenAt(
  server: Server,
  address: ListenAddress,
  { variable }: Setting,
): Promise<string> {
  try {
    return await listen(server, address);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `cannot serve on ${addressText(address)}: ${reason}; set ${variable} to a free address of this machine.`,
    );
  }
}

/** Accepts no more connections, waits for the calls in flight, and cuts off those that take too long. */
async function stop(server: Server, log: Logger, destroyMore: () => void = () => {}): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  // Node closes a connection only if it is idle at that moment.
  const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs);
  const force = setTimeout(() => {
    log.warn({ waitedMs: drainTimeoutMs }, 'the connections that are still open are cut off');
    server.closeAllConnections();
    destroyMore();
  }, drainTimeoutMs);
  await closed;
  clearInterval(idle);
  clearTimeout(force);
}
