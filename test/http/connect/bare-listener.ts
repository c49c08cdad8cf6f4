import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createDispatcher, type Implementation } from '../../../src/api/operation.ts';
import { createCalls } from '../../../src/api/pipeline.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import type { ConnectionTimeouts } from '../../../src/http/connect/connections.ts';
import { createInternalListener } from '../../../src/http/connect/internal-listener.ts';
import { createTypedCalls, type Identify, type TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { type AnyResponse, OpenCalls } from '../../../src/http/listen/open-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-listeners.ts';
import { createKeyRing, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import { createLog } from '../../../src/lib/log.ts';
import { createClientOf } from '../../../src/lib/networks.ts';
import { systemClock } from '../../../src/operations/registry.ts';
import type { Store } from '../../../src/store/store.ts';
import { listenLocally } from '../../support/local-server.ts';
import { openObserver } from '../../support/observer.ts';
import { createSwitchedReadiness } from '../../support/readiness.ts';
import { ledger } from '../../support/tokens.ts';

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
  const log = createLog({ write: (line) => logLines.push(line) });
  const listener = createInternalListener({
    ...{ typedCalls, tls, ...timeouts },
    clientOf: createClientOf([]),
    openCalls: new OpenCalls(stalledMs),
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

/** The options of a listener with operations of a test. */
export interface OperationsOptions {
  /** Stores nothing and succeeds by default. */
  readonly execute?: Store['execute'];
  /** Accepts every token by default. */
  readonly identify?: Identify;
  readonly draining?: AbortSignal;
  readonly stalledMs?: number | undefined;
}

const stored: Store['execute'] = async () => ({
  outcome: { kind: 'DONE', result: undefined as never, isReplay: false },
});

/** The internal listener and the pipeline with operations of a test; also the responses so far. */
export async function openOperations(
  t: TestContext,
  implementation: Implementation,
  { execute = stored, identify = () => ledger, draining, stalledMs }: OperationsOptions = {},
) {
  const dispatcher = createDispatcher([implementation]);
  const calls = createCalls({
    ...{ dispatcher, clock: systemClock, calendar: createCalendar('UTC'), store: { execute } as Store },
    keyRing: createKeyRing(parseMasterKeys('0'.repeat(64))),
  });
  const typedCalls = createTypedCalls({
    ...{ calls, services: dispatcher.services, identify, readiness: createSwitchedReadiness() },
    draining: draining ?? new AbortController().signal,
  });
  const responses: AnyResponse[] = [];
  const recorded: TypedCalls = (...call) => {
    responses.push(call[1]);
    typedCalls(...call);
  };
  return { ...(await openBareListener(t, recorded, { ...(stalledMs && { stalledMs }) })), responses };
}

/** The internal listener without operations: a call that gets as far as one fails. */
export async function openWithoutOperations(
  t: TestContext,
  over: Partial<Parameters<typeof createTypedCalls>[0]> = {},
) {
  const [draining, readiness] = [new AbortController(), createSwitchedReadiness()];
  const typedCalls = createTypedCalls({
    calls: {
      checkScope: () => {},
      identified: () => Promise.reject(new Error('The operation has begun.')),
      streamed: () => assert.fail('Nothing streams here.'),
    },
    ...{ services: [], identify: () => ledger, readiness, draining: draining.signal, ...over },
  });
  return { ...(await openBareListener(t, typedCalls)), draining, readiness };
}
