import '../../module-resolution.ts';
import { parentPort, workerData } from 'node:worker_threads';
import type { StoreOptions } from '../store.ts';
import { type Asked, type Told, toldError } from './thread-messages.ts';

/** How often it is looked whether another process changed credentials, and whether the files are in their place. */
const lookEveryMs = 250;

// Loaded only now, behind the resolution of its modules.
const { openCore } = await import('./core.ts');

if (parentPort === null) throw new Error('The thread of the store was started as a program.');
const port = parentPort;
const tell = (told: Told) => port.postMessage(told);

try {
  serve(openCore(workerData as StoreOptions));
} catch (error) {
  tell({ kind: 'FAILED', error: toldError(error) });
}

/** Answers what it is asked, each in its turn, until it is asked to close. */
function serve(core: ReturnType<typeof openCore>): void {
  let fault = core.findFault();
  tell({ kind: 'OPENED', secret: core.secret, credentials: core.changedCredentials(), fault });
  const look = setInterval(() => {
    const credentials = core.changedCredentials();
    const found = core.findFault();
    if (credentials === undefined && found === fault) return;
    fault = found;
    tell({ kind: 'LOOKED', credentials, fault });
  }, lookEveryMs);
  port.on('message', (asked: Asked) => {
    try {
      tell(answer(asked));
    } catch (error) {
      tell({ kind: 'FAILED', error: toldError(error) });
    }
    if (asked.kind === 'CLOSE') port.close();
  });

  function answer(asked: Asked): Told {
    switch (asked.kind) {
      case 'EXECUTE': {
        const replies = core.executeBatch(asked.units);
        return { kind: 'EXECUTED', replies, credentials: core.changedCredentials() };
      }
      case 'BEGIN_SERVING':
        core.beginServing();
        return { kind: 'DONE' };
      case 'CLOSE':
        clearInterval(look);
        core.close();
        return { kind: 'DONE' };
    }
  }
}
