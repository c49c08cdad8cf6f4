import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { TestService } from '../../support/service.ts';

/** How long closing may take when it waits for no client; a service that takes longer hangs. */
const giveUpMs = 60_000;
/** How long closing waits for open connections: `drainTimeoutMs` of src/app/listeners.ts. */
const drainTimeoutMs = 10_000;

/** What ended the closing of a service. */
export type Ending = 'by itself' | 'by force' | 'when the clients were gone';

const realSetTimeout = setTimeout;

interface Closing {
  readonly closed: Promise<true>;
  /** Ends the time for open connections. */
  force(): void;
}

/** Begins to close a service, which waits for open connections until `force`. */
function beginClosing(test: TestContext, service: TestService): Closing {
  const { promise: forced, resolve: force } = Promise.withResolvers<void>();
  const mocked = test.mock.method(globalThis, 'setTimeout', ((callback: () => void, ms?: number) => {
    if (ms !== drainTimeoutMs) return realSetTimeout(callback, ms);
    void forced.then(callback);
    return realSetTimeout(() => {}).unref();
  }) as typeof setTimeout);
  const closed = service.close().then((): true => {
    mocked.mock.restore();
    return true;
  });
  return { closed, force };
}

/**
 * Closes a service. If it waits for open connections, ends their time, and if it still waits, destroys the clients.
 * Returns which of them was needed.
 */
export async function closingOf(
  test: TestContext,
  service: TestService,
  clients: readonly Socket[] = [],
): Promise<Ending> {
  const { closed, force } = beginClosing(test, service);
  if (await Promise.race([closed, hung()])) return 'by itself';
  force();
  if (await Promise.race([closed, hung()])) return 'by force';
  for (const client of clients) client.destroy();
  await closed;
  return 'when the clients were gone';
}

/** Closes a service and ends the time for open connections. Returns whether it closed before its clients went. */
export async function endsByForce(
  test: TestContext,
  service: TestService,
  clients: readonly Socket[] = [],
): Promise<boolean> {
  const { closed, force } = beginClosing(test, service);
  force();
  const ended = await Promise.race([closed, hung()]);
  for (const client of clients) client.destroy();
  await closed;
  return ended;
}

function hung(): Promise<false> {
  const { promise, resolve } = Promise.withResolvers<false>();
  realSetTimeout(() => resolve(false), giveUpMs).unref();
  return promise;
}
