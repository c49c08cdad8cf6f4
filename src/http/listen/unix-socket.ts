import { once } from 'node:events';
import { chmodSync, lstatSync, type Stats, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';

/** Who may connect: the user and the group of the process, since to connect is to write. */
const socketMode = 0o660;
/** What a socket is not open for from the moment that it is made until it has its mode. */
const closedToAllOthers = 0o177;

/** The longest path of a socket, in bytes: the least that a system of those with Unix sockets takes. */
export const socketPathBytesMax = 103;

/**
 * Has a server listen on a Unix socket, mode 0660; Node removes it when the server closes. The socket of a process that
 * was killed is replaced. Rejects where somebody listens on it, and where the path is taken by anything else.
 */
export async function listenOnUnixSocket(server: Server, path: string): Promise<void> {
  try {
    await bind(server, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    await removeStale(path);
    await bind(server, path);
  }
  chmodSync(path, socketMode);
}

async function bind(server: Server, path: string): Promise<void> {
  // It is made in this turn; tightened and not set, since whatever another thread makes meanwhile has this mask, too.
  const mask = process.umask();
  process.umask(mask | closedToAllOthers);
  try {
    server.listen({ path });
  } finally {
    process.umask(mask);
  }
  await once(server, 'listening');
}

/** Removes a socket on which nobody listens. Rejects for anything else. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error('there is a file that is no socket');
  if (!(await isRefused(path))) throw new Error('another process listens on it');
  // Another process may have put its own in place meanwhile.
  if (isSame(found, lstatSync(path, { throwIfNoEntry: false }))) unlinkSync(path);
}

/** Whether nobody listens on a socket: then alone is a connection refused. */
async function isRefused(path: string): Promise<boolean> {
  const socket = connect({ path });
  try {
    await once(socket, 'connect');
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.dev === other?.dev && one.ino === other.ino;
}
