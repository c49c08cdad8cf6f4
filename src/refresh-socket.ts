import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import type { Logger } from 'pino';
import { listenOnUnixSocket, socketPathBytesMax } from './listening/unix-socket.ts';

/** The Unix socket in the data folder at which a command has the server read what the command changed. */
const refreshSocketName = 'admin.sock';

/** Commands that wait at the same time. */
const connectionsMax = 64;
/** What the server answers when it has read all changes. */
export const refreshed = 'done\n';

/** The path of the socket: relative where the system would not take the absolute one. */
export function refreshSocket(dataDir: string): string {
  const path = join(resolve(dataDir), refreshSocketName);
  return Buffer.byteLength(path) <= socketPathBytesMax ? path : relative(process.cwd(), path);
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
    refresh().then(
      () => socket.end(refreshed),
      () => socket.destroy(),
    );
  });
  server.maxConnections = connectionsMax;
  try {
    await listenOnUnixSocket(server, refreshSocket(dataDir));
    server.unref();
  } catch (error) {
    log.warn(
      { err: error },
      `${refreshSocketName} cannot be opened: commands cannot wait until this server has read a change`,
    );
  }
  return () => server.close();
}
