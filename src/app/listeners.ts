import { once } from 'node:events';
import type { Server } from 'node:http';
import { createBearerCheck } from '../api/authentication.ts';
import { type CallMetrics, createCallObserver } from '../api/call-observer.ts';
import { identifyLocal, userHeader } from '../api/operation.ts';
import type { Calls } from '../api/pipeline.ts';
import { settings } from '../config/config.ts';
import type { Readiness } from '../health/readiness.ts';
import { createConsolePage } from '../http/connect/console-page.ts';
import { createInternalListener } from '../http/connect/internal-listener.ts';
import { createTypedCalls, type Identify, type TypedCalls } from '../http/connect/typed-calls.ts';
import {
  addressText,
  adminSocketMode,
  type ListenAddress,
  listen,
  listenOnUnixSocket,
  openAdminSocket,
  urlOf,
} from '../http/listen/address.ts';
import type { OpenCalls } from '../http/listen/open-calls.ts';
import type { TlsListeners } from '../http/listen/tls-listeners.ts';
import { createOpenRoutes } from '../http/rest/open-routes.ts';
import { createPublicListener } from '../http/rest/public-listener.ts';
import { createRoutes, createSignedCalls } from '../http/rest/routes.ts';
import type { Logger } from '../lib/log.ts';
import type { ClientOf } from '../lib/networks.ts';
import { buildInfo } from '../packaging/build-info.ts';
import { readPackaged } from '../packaging/packaged-files.ts';
import type { Setting } from '../payments/provider.ts';
import type { Core, Start } from './start.ts';

/** How long closing waits for the calls in flight, in milliseconds. */
const drainTimeoutMs = 10_000;
/** How often closing closes the connections that are idle, in milliseconds. */
const idleCheckMs = 50;

/** What the listeners work with besides the core. */
export interface CallParts {
  readonly calls: Calls;
  readonly callMetrics: CallMetrics;
  readonly readiness: Readiness;
  readonly clientOf: ClientOf;
  readonly openCalls: OpenCalls;
  readonly tls: TlsListeners;
}

/** The addresses of the public and the internal listener. */
export type ListenerAddresses = Awaited<ReturnType<ReturnType<typeof createListeners>['open']>>;

/** Creates the listeners of a service: public, internal, and that of the admin socket. */
export function createListeners(start: Start, core: Core, parts: CallParts) {
  const { config, clock, log, traces } = start;
  const { calls, callMetrics, readiness, clientOf, openCalls, tls } = parts;
  const { dispatcher, notifications, publicLog, sharedEvidence, publicAccess, recentRequests } = core.service;
  const { services } = dispatcher;
  const observers = { log, metrics: callMetrics, requests: recentRequests, tracer: traces };
  const draining = new AbortController();
  const { version, commit = '' } = buildInfo;
  const publicListener = createPublicListener({
    signedCalls: createSignedCalls(calls, createRoutes(services)),
    openRoutes: createOpenRoutes({
      openApi: readPackaged('openapi.yaml'),
      version: { version, commit, startedAt: core.calendar.timestamp(clock.nowMs()) },
      readiness,
      log: publicLog,
      evidence: sharedEvidence,
      access: config.hasAccessForm ? publicAccess : { ...publicAccess, form: undefined },
      readFile: readPackaged,
      notifications,
    }),
    ...{ clientOf, openCalls },
    tls: tls.public,
    observer: createCallObserver('public', observers),
  });
  const typedListener = (name: 'internal' | 'admin', identify: Identify) => {
    // Created with the first call: the methods take a megabyte, and few servers are called through both listeners.
    let typedCalls: TypedCalls | undefined;
    return createInternalListener({
      typedCalls: (...call) => {
        typedCalls ??= createTypedCalls({ calls, services, identify, readiness, draining: draining.signal });
        typedCalls(...call);
      },
      ...{ clientOf, openCalls },
      tls: name === 'internal' ? tls.internal : undefined,
      consolePage:
        name === 'internal' ? createConsolePage(readPackaged('src/console/console.html')) : undefined,
      observer: createCallObserver(name, observers),
    });
  };
  const bearerCheck = createBearerCheck(core.store, clock);
  const internal = typedListener('internal', (header) => bearerCheck(header('authorization')));
  const admin = typedListener('admin', (header) => identifyLocal(header(userHeader)));
  const adminSocket = openAdminSocket(config.dataDir);
  return {
    /** Starts to accept connections. Rejects with a message that names the setting of an address that cannot be used. */
    open: async () => {
      const publicAddress = await listenAt(publicListener, config.publicAddress, settings.publicAddress);
      const internalAddress = await listenAt(
        internal.server,
        config.internalAddress,
        settings.internalAddress,
      );
      await listenForCommands(admin.server, adminSocket.path);
      return {
        /** host:port as bound. */
        publicAddress,
        /** With http or https. */
        publicUrl: urlOf(publicAddress, tls.public !== undefined),
        /** host:port as bound, or unix:/path. */
        internalAddress,
        /** With http or https, or unix:/path. */
        internalUrl: urlOf(internalAddress, tls.internal !== undefined),
      };
    },
    /** Accepts no more connections. Waits at most `drainTimeoutMs` for the calls in flight. */
    close: async (): Promise<void> => {
      draining.abort();
      const typed = [internal, admin];
      const closed = [
        stop(publicListener, log),
        ...typed.map(({ server, destroy }) => stop(server, log, destroy)),
      ];
      tls.public?.endHandshakes();
      for (const { drain } of typed) drain();
      await Promise.all(closed);
      adminSocket[Symbol.dispose]();
    },
  };
}

/** Listens on the admin socket. Rejects with a message that names its path. */
async function listenForCommands(server: Server, path: string): Promise<void> {
  try {
    await listenOnUnixSocket(server, path, adminSocketMode);
  } catch (error) {
    throw new Error(`cannot listen on ${path}, through which commands call the server.`, { cause: error });
  }
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
