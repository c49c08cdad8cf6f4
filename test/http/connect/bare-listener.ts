import type { TestContext } from 'node:test';
import pino from 'pino';
import type { ConnectionTimeouts } from '../../../src/http/connect/connections.ts';
import { createInternalListener } from '../../../src/http/connect/internal-listener.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { createClientOf } from '../../../src/http/listen/clients.ts';
import { createOpenCalls } from '../../../src/http/listen/open-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-front.ts';
import { listenLocally } from '../../support/local-server.ts';
import { openObserver } from '../../support/observer.ts';

/** The timeouts of the connections of a test's listener. */
export interface ListenerTimeouts extends Partial<ConnectionTimeouts> {
  /** How long the headers of a request may take, in milliseconds. */
  readonly headersMs?: number;
  /** How long a client may read nothing of a response, in milliseconds. */
  readonly stalledMs?: number;
  readonly tls?: TlsFront | undefined;
}

/** The internal listener alone, with the typed calls of a test. */
export async function openBareListener(
  t: TestContext,
  typedCalls: TypedCalls,
  { headersMs, stalledMs, tls, ...timeouts }: ListenerTimeouts = {},
) {
  const logLines: string[] = [];
  const log = pino({ base: null }, { write: (line) => logLines.push(line) });
  const listener = createInternalListener({
    ...{ typedCalls, tls, ...timeouts },
    clientOf: createClientOf([]),
    openCalls: createOpenCalls(stalledMs),
    observer: openObserver('internal', log),
  });
  const { server } = listener;
  if (headersMs !== undefined) {
    // The server reads the interval when it begins to listen.
    Object.assign(server, { headersTimeout: headersMs, connectionsCheckingInterval: headersMs });
  }
  const baseUrl = await listenLocally(t, server, () => listener.destroy());
  return { server, baseUrl: tls === undefined ? baseUrl : baseUrl.replace('http:', 'https:'), logLines };
}
