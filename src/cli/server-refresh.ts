import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { openRefreshSocket, refreshed } from '../app/refresh-socket.ts';
import { isServingRecordThere } from '../operations/serving-record.ts';
import { isServed } from '../store/sqlite/serving-lock.ts';

/** How long a command waits for the server, in milliseconds. */
export const serverLimitMs = 10_000;

/** How soon a server that could not be reached is asked again, in milliseconds. */
const retryMs = 50;

/**
 * Waits until the server of a data folder has read all that was changed before; returns at once if none runs. Returns false if the server
 * has not confirmed it in `limitMs`.
 */
export async function waitForServer(dataDir: string, limitMs: number = serverLimitMs): Promise<boolean> {
  const signal = AbortSignal.timeout(limitMs);
  while (isServed(dataDir)) {
    if (await isRefreshed(dataDir, signal)) return true;
    // A server that starts or stops has no record. It reads all changes before it is ready.
    if (!isServingRecordThere(dataDir)) return true;
    if (signal.aborted) return false;
    await wait(retryMs);
  }
  return true;
}

async function isRefreshed(dataDir: string, signal: AbortSignal): Promise<boolean> {
  using opened = openRefreshSocket(dataDir);
  const socket = connect({ path: opened.path, signal });
  try {
    await once(socket, 'connect');
    return (await text(socket)) === refreshed;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
