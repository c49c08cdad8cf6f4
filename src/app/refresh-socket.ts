import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import type { Logger } from 'pino';
import { listenOnUnixSocket, socketPathBytesMax } from '../http/listen/unix-socket.ts';

/** The Unix socket in the data folder at which a command has the server read what the command changed. */
const refreshSocketName = 'admin.sock';

/** How long a connection may stay open, in milliseconds: as long as a command waits. */
const connectionMs = 10_000;
/** Commands that wait at the same time. */
const connectionsMax = 64;
/** What the server answers when it has read all changes. */
export const refreshed = 'done\n';

/** The path of the socket, for as long as it is not disposed of. */
export interface RefreshSocket extends Disposable {
  readonly path: string;
}

/** Opens the path of the socket. Where the absolute one is too long for a socket, it leads through the open folder. */
export function openRefreshSocket(dataDir: string): RefreshSocket {
  const path = join(resolve(dataDir), refreshSocketName);
  if (Buffer.byteLength(path) <= socketPathBytesMax) return { path, [Symbol.dispose]: () => {} };
  // Only Linux names an open folder; elsewhere the relative path may be short enough.
  if (process.platform !== 'linux')
    return { path: relative(process.cwd(), path), [Symbol.dispose]: () => {} };
  const folder = openSync(dataDir, 'r');
  return {
    path: `/proc/self/fd/${folder}/${refreshSocketName}`,
    [Symbol.dispose]: () => closeSync(folder),
  };
}

/**
 * Calls `refresh` for each connection, and answers once it has resolved. Logs a warning and goes on where no socket can be made.
 * Returns what closes it.
 */
export async function listenForRefreshes(
  dataDir: string,
  refresh: () => Promise<void>,
  log: Logger,
): Promise<() => void> {
  const server = createServer((socket) => {
    // A command that is gone is no fault of the server.
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
    // The socket is removed by its path.
    server.close();
    opened[Symbol.dispose]();
  };
}
