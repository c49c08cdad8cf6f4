import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { TestService } from '../../support/service.ts';

/** How long closing may take when it waits for no client; a service that takes longer hangs. */
const giveUpMs = 60_000;
/** How long closing waits for open connections: `drainTimeoutMs` of src/app/listeners.ts. */
export const drainTimeoutMs = 10_000;

const realSetTimeout = setTimeout;

/** Begins to close a service, which waits for open connections until `force`. */
function beginClosing(test: TestContext, service: TestService) {
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

/** Closes a service. Returns whether it closed before the time for open connections was over. */
export async function closesByItself(
  test: TestContext,
  service: TestService,
  clients: readonly Socket[] = [],
): Promise<boolean> {
  const { closed, force } = beginClosing(test, service);
  const isClosed = await Promise.race([closed, hung()]);
  if (!isClosed) force();
  for (const client of clients) client.destroy();
  await closed;
  return isClosed;
}

/** Closes a service and ends the time for open connections. Returns whether it closed before its clients went. */
export async function endsByForce(
  test: TestContext,
  service: TestService,
  clients: readonly { destroy(): void }[] = [],
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
