import type { TestContext } from 'node:test';
import pino from 'pino';
import type { ConnectionPatience } from '../../src/internal/connections.ts';
import { createInternalListener } from '../../src/internal/internal-listener.ts';
import type { TypedCalls } from '../../src/internal/typed-calls.ts';
import { listenLocally } from '../support/local-server.ts';

interface DoorPatience extends Partial<ConnectionPatience> {
  /** How long the headers of a request may take, in milliseconds. */
  readonly headersMs?: number;
}

/** The internal listener alone, with calls of the test's own. */
export async function openBareDoor(
  t: TestContext,
  typedCalls: TypedCalls,
  { headersMs, ...patience }: DoorPatience = {},
) {
  const listener = createInternalListener({ typedCalls, log: pino({ level: 'silent' }), ...patience });
  const { server } = listener;
  if (headersMs !== undefined) {
    // The server takes the interval as it begins to listen.
    Object.assign(server, { headersTimeout: headersMs, connectionsCheckingInterval: headersMs });
  }
  return { server, baseUrl: await listenLocally(t, server, () => listener.destroy()) };
}
