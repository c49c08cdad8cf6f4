import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import type { Logger } from 'pino';
import { listenOnUnixSocket, socketPathBytesMax } from '../http/listen/address.ts';

/** The Unix socket in the data folder. A command that connects makes the server read what the command changed. */
const refreshSocketName = 'refresh.sock';

/** How long a connection may stay open, in milliseconds: as long as a command waits. */
const connectionMs = 10_000;
/** Commands that wait at the same time. */
const connectionsMax = 64;
/** The response when the server has read all changes. */
export const refreshed = 'done\n';

/** The path of the socket; valid until it is disposed. */
export interface RefreshSocket extends Disposable {
  readonly path: string;
}

/** Opens the path of the socket. If the absolute path is too long for a socket, it leads through the open folder. */
export function openRefreshSocket(dataDir: string): RefreshSocket {
  const path = join(resolve(dataDir), refreshSocketName);
  if (Buffer.byteLength(path) <= socketPathBytesMax) return { path, [Symbol.dispose]: () => {} };
  // Only Linux has a path for an open folder. Elsewhere the relative path may be short enough.
  if (process.platform !== 'linux')
    return { path: relative(process.cwd(), path), [Symbol.dispose]: () => {} };
  const folder = openSync(dataDir, 'r');
  return {
    path: `/proc/self/fd/${folder}/${refreshSocketName}`,
    [Symbol.dispose]: () => closeSync(folder),
  };
}

/**
 * Calls `refresh` for each connection, and responds when it has resolved. Logs a warning if the socket cannot be created.
 * Returns a function that closes the socket.
 */
export async function listenForRefreshes(
  dataDir: string,
  refresh: () => Promise<void>,
  log: Logger,
): Promise<() => void> {
  const server = createServer((socket) => {
    // A command may end at any time.
    socket.on('error', () => {});
    socket.setTimeout(connectionMs, () => socket.destroy());
    refresh().then(
      // A client that never closes its side must not keep the connection.
      () => socket.end(refreshed, () => socket.destroy()),
      () => socket.destroy(),
    );
  });
  server.maxConnections = connectionsMax;
  const opened = openRefreshSocket(dataDir);
  try {
    await listenOnUnixSocket(server, opened.path);
    server.unref();
  } catch (error) {
    log.warn(
      { err: error },
      `${refreshSocketName} cannot be opened: commands cannot wait until this server has read a change`,
    );
  }
  return () => {
    // Node removes the socket by its path, so the path must still be open.
    server.close();
    opened[Symbol.dispose]();
  };
}
