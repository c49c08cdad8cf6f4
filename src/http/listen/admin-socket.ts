import { closeSync, openSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { socketPathBytesMax } from './address.ts';

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
