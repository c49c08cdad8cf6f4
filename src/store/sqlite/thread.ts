import '../../program/module-resolution.ts';
import { parentPort, workerData } from 'node:worker_threads';
import type { StoreOptions, Unit } from '../store.ts';
import { type Asked, type Told, toldError } from './thread-messages.ts';

/** How often it is looked whether another process changed credentials or wrote events, and whether the files are in their place. */
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
  const { secret, checkedMs } = core;
  tell({ kind: 'OPENED', secret, checkedMs, credentials: core.changedCredentials(), fault });
  const look = setInterval(() => {
    const credentials = core.changedCredentials();
    const found = core.findFault();
    const events = core.takeEventNews(true);
    if (credentials === undefined && found === fault && events === undefined) return;
    fault = found;
    tell({ kind: 'LOOKED', credentials, fault, events });
  }, lookEveryMs);
  port.on('message', (asked: Asked) => {
    // What it does not foresee ends the thread: nobody knows then what was stored.
    if (asked.kind === 'EXECUTE') return tell(executed(asked.units));
    try {
      tell(answer(asked));
    } catch (error) {
      tell({ kind: 'FAILED', error: toldError(error) });
    }
    if (asked.kind === 'CLOSE') port.close();
  });

  function executed(units: readonly Unit[]): Told {
    const replies = core.executeBatch(units);
    const events = core.takeEventNews(false);
    return { kind: 'EXECUTED', replies, credentials: core.changedCredentials(), events };
  }

  function answer({ kind }: Exclude<Asked, { kind: 'EXECUTE' }>): Told {
    switch (kind) {
      case 'BEGIN_SERVING':
        core.beginServing();
        return { kind: 'DONE' };
      case 'READ_FIGURES':
        return { kind: 'FIGURES', figures: core.figures() };
      case 'CLOSE':
        clearInterval(look);
        core.close();
        return { kind: 'DONE' };
    }
  }
}
