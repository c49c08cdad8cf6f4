import type { TestContext } from 'node:test';
import { OpenCalls } from '../../../src/http/listen/open-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-listeners.ts';
import { createOpenRoutes, type OpenRouteDependencies } from '../../../src/http/rest/open-routes.ts';
import { createPublicListener } from '../../../src/http/rest/public-listener.ts';
import type { SignedCalls } from '../../../src/http/rest/routes.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createClientOf, type Network } from '../../../src/lib/networks.ts';
import { readPackaged } from '../../../src/packaging/packaged-files.ts';
import { listenLocally } from '../../support/local-server.ts';
import { openObserver } from '../../support/observer.ts';

/** What the routes of the evidence log publish; by default nothing. */
type OfLog = Pick<OpenRouteDependencies, 'log' | 'evidence' | 'access'>;

const nothingPublished: OfLog = {
  log: { checkpoint: async () => undefined, verifierKeys: () => [], tile: async () => undefined },
  evidence: { open: async () => undefined },
  access: { form: undefined, findLink: async () => undefined, claimLink: async () => undefined },
};

interface ListenerOptions extends Partial<OfLog> {
  readonly openApi?: Uint8Array;
  /** How long a request may take, in milliseconds; by default as long as in the service. */
  readonly requestMs?: number;
  /** How long a client may read nothing of a response, in milliseconds. */
  readonly stalledMs?: number;
  /** The networks whose X-Forwarded-For is trusted. */
  readonly proxies?: readonly Network[];
  /** Undefined for plain HTTP. */
  readonly tls?: TlsFront | undefined;
}

export type BareListener = Awaited<ReturnType<typeof openBareListener>>;

/** The public listener without the service: the test responds to its signed calls. */
export async function openBareListener(
  t: Pick<TestContext, 'after'>,
  signedCalls: SignedCalls,
  {
    openApi = Buffer.from('openapi: 3.1.0'),
    requestMs,
    stalledMs,
    proxies = [],
    tls,
    ...published
  }: ListenerOptions = {},
) {
  const logLines: string[] = [];
  const log = createLog({ write: (line) => logLines.push(line) });
  const notifications = { method: 'POST', take: async () => {} } as const;
  const version = { version: '1.0.0', commit: '', startedAt: '' };
  const readiness = { check: async () => [] };
  const openRoutes = createOpenRoutes({
    ...{ openApi, version, readiness, readFile: readPackaged, notifications },
    ...{ ...nothingPublished, ...published },
  });
  const server = createPublicListener({
    ...{ signedCalls, openRoutes, tls },
    openCalls: new OpenCalls(stalledMs),
    ...{ clientOf: createClientOf(proxies), observer: openObserver('public', log) },
  });
  if (requestMs !== undefined) {
    const limits = { headersTimeout: requestMs, requestTimeout: requestMs };
    // The server reads the interval when it begins to listen.
    Object.assign(server, limits, { connectionsCheckingInterval: requestMs / 10 });
  }
  const baseUrl = await listenLocally(t, server, () => {
    server.closeAllConnections();
    tls?.endHandshakes();
  });
  return { server, baseUrl: tls === undefined ? baseUrl : baseUrl.replace('http:', 'https:'), logLines };
}
