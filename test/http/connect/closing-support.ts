import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { TestService } from '../../support/service.ts';

/** How long a service may take over an end that it waits for nobody for, before it is taken to hang. */
const giveUpMs = 60_000;

/** How a service came to its end. */
export type Ending = 'by itself' | 'by force' | 'when the clients were gone';

const realSetTimeout = setTimeout;

interface Closing {
  readonly closed: Promise<true>;
  /** Lets the time for calls in flight go by. */
  force(): void;
}

/** Begins to close a service whose timeout does not end until `force`: the timers that it then sets stand still. */
function beginClosing(test: TestContext, service: TestService): Closing {
  const held: (() => void)[] = [];
  const mocked = test.mock.method(globalThis, 'setTimeout', ((callback: () => void) => {
    held.push(callback);
    return realSetTimeout(() => {}).unref();
  }) as typeof setTimeout);
  const closed = service.close().then((): true => true);
  mocked.mock.restore();
  return {
    closed,
    force: () => {
      for (const callback of held) callback();
    },
  };
}

/**
 * Closes a service whose timeout does not end, then ends its timeout, and then destroys the clients: which of them
 * it took.
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

/** Closes a service and ends its timeout at once: whether it ended before its clients went. */
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
