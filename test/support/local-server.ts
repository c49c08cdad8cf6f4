import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import type { TestContext } from 'node:test';
import { eventually } from './eventually.ts';

/**
 * Listens at a free port of loopback until the test is over; `endConnections` then ends the connections. Returns
 * http://host:port.
 */
export async function listenLocally(
  test: Pick<TestContext, 'after'>,
  server: Server,
  endConnections: () => void,
): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.after(() => {
    server.close();
    endConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends a response that never ends, as fast as it is read. */
export function sendEndlessly(response: ServerResponse): void {
  response.writeHead(200);
  // By a timer: Node now and then loses 'drain' and the callback of a write.
  const timer = setInterval(() => {
    if (response.writableLength < 1_048_576) response.write('\u2014 '.repeat(16_384));
  }, 1);
  response.on('close', () => clearInterval(timer));
}

/** Returns the number of connections of a server. */
export function heldConnections(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  return promise;
}

/** Resolves when a server has no connection. Rejects after `limitMs`. */
export function holdsNone(server: Server, limitMs: number): Promise<boolean> {
  return eventually('all connections are closed', limitMs, async () => (await heldConnections(server)) === 0);
}
