import { once } from 'node:events';
import { chmodSync, closeSync, lstatSync, openSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, type Server } from 'node:net';
import { join, relative, resolve } from 'node:path';

/** A host and a port to listen on. */
export interface TcpAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** An address to listen on: TCP, or the absolute path of a Unix socket. */
export type ListenAddress = TcpAddress | { readonly path: string };

/** The text of an address: `host:port`, `[host]:port` for IPv6, `unix:/path`. */
export function addressText(address: ListenAddress): string {
  if ('path' in address) return `unix:${address.path}`;
  const { host, port } = address;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The URL of an address: http, or https with TLS; `unix:/path` stays as it is. */
export function urlOf(address: string, isTls: boolean): string {
  return address.startsWith('unix:') ? address : `${isTls ? 'https' : 'http'}://${address}`;
}

/** Starts listening. Returns the text of the bound address; rejects with the error of the system. */
export async function listen(server: Server, address: ListenAddress): Promise<string> {
  if ('path' in address) {
    await listenOnUnixSocket(server, address.path);
    return addressText(address);
  }
  const { host, port } = address;
  server.listen({ host, port });
  await once(server, 'listening');
  const bound = server.address() as AddressInfo;
  return addressText({ host: bound.address, port: bound.port });
}

/** The user and the group of the process may connect, which takes write permission. */
const sharedMode = 0o660;
/** The umask while a socket is created, until it has its mode. */
const closedToAllOthers = 0o177;

/** The longest path of a socket, in bytes: the smallest limit among systems with Unix sockets. */
export const socketPathBytesMax = 103;

/**
 * Listens on a Unix socket, which Node removes when the server closes. Replaces the socket of a killed process. Rejects if
 * another process listens on it, or if the path is another file.
 */
export async function listenOnUnixSocket(server: Server, path: string, mode = sharedMode): Promise<void> {
  try {
    await bind(server, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    await removeStale(path);
    await bind(server, path);
  }
  chmodSync(path, mode);
}

async function bind(server: Server, path: string): Promise<void> {
  // The socket is created synchronously. Other threads share the umask, so it is only tightened.
  const mask = process.umask();
  process.umask(mask | closedToAllOthers);
  try {
    server.listen({ path });
  } finally {
    process.umask(mask);
  }
  await once(server, 'listening');
}

/** Removes a socket on which no process listens. Rejects for any other file. */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error('the path exists and is no socket');
  if (!(await hasNoListener(path))) throw new Error('another process listens on it');
  // Another process may have replaced it meanwhile.
  const now = lstatSync(path, { throwIfNoEntry: false });
  if (now?.dev === found.dev && now.ino === found.ino) unlinkSync(path);
}

/** Whether no process listens on a socket: only then the system refuses a connection. */
async function hasNoListener(path: string): Promise<boolean> {
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

/** The Unix socket in the data folder through which commands call the server. */
const adminSocketName = 'admin.sock';

/** Only the user of the process may connect. */
export const adminSocketMode = 0o600;

/** The path of the socket; valid until it is disposed. */
export interface AdminSocket extends Disposable {
  readonly path: string;
}

/** Opens the path of the socket. If the absolute path is too long for a socket, it leads through the open folder. */
export function openAdminSocket(dataDir: string): AdminSocket {
  const path = join(resolve(dataDir), adminSocketName);
  if (Buffer.byteLength(path) <= socketPathBytesMax) return { path, [Symbol.dispose]: () => {} };
  // Only Linux has a path for an open folder. Elsewhere the relative path may be short enough.
  if (process.platform !== 'linux')
    return { path: relative(process.cwd(), path), [Symbol.dispose]: () => {} };
  const folder = openSync(dataDir, 'r');
  return {
    path: `/proc/self/fd/${folder}/${adminSocketName}`,
    [Symbol.dispose]: () => closeSync(folder),
  };
}
