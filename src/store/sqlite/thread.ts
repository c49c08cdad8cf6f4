import '../../packaging/module-resolution.ts';
import { parentPort, workerData } from 'node:worker_threads';
import type { StorageErrors, StoreOptions, StoreRequest } from '../store.ts';
import { damaged } from './damage.ts';
import { noStorageErrors } from './incidents.ts';
import { databaseFile } from './location.ts';
import { toWorkerError, type WorkerRequest, type WorkerResponse } from './thread-messages.ts';

/** How often it is looked whether another process changed credentials or wrote events, and whether the files are in their place. */
const lookEveryMs = 250;

// Loaded only now, behind the resolution of its modules.
const { openCore } = await import('./core.ts');

if (parentPort === null) throw new Error('The thread of the store was started as a program.');
const port = parentPort;
const tell = (told: WorkerResponse) => port.postMessage(told);

try {
  serve(openCore(workerData as StoreOptions), workerData as StoreOptions);
} catch (error) {
  tell({ kind: 'FAILED', error: toWorkerError(error) });
}

/** Answers what it is asked, each in its turn, until it is asked to close. */
function serve(core: ReturnType<typeof openCore>, { dataDir }: StoreOptions): void {
  let fault = core.findFault();
  let sentErrors = noStorageErrors;
  const { secret, checkedMs, upgrade } = core;
  const credentials = core.changedCredentials();
  const { damage } = core.storageErrors();
  // Without the credentials every caller would be taken for a stranger.
  if (damage !== undefined) throw damaged(databaseFile(dataDir), damage);
  tell({ kind: 'OPENED', secret, checkedMs, upgrade, credentials, fault });
  const look = () => {
    const credentials = core.changedCredentials();
    const found = core.findFault();
    const events = core.takeEventNews(true);
    const storageErrors = newStorageErrors();
    const isSame = found === fault && storageErrors === undefined;
    if (credentials === undefined && isSame && events === undefined) return;
    fault = found;
    tell({ kind: 'LOOKED', credentials, fault, storageErrors, events });
  };
  const looking = setInterval(look, lookEveryMs);
  port.on('message', (asked: WorkerRequest) => {
    // What it does not foresee ends the thread: nobody knows then what was stored.
    if (asked.kind === 'EXECUTE') return tell(executed(asked.units));
    try {
      tell(answer(asked));
    } catch (error) {
      tell({ kind: 'FAILED', error: toWorkerError(error) });
    }
    if (asked.kind === 'CLOSE') port.close();
  });

  function executed(units: readonly StoreRequest[]): WorkerResponse {
    const replies = core.executeBatch(units);
    const events = core.takeEventNews(false);
    const credentials = core.changedCredentials();
    return { kind: 'EXECUTED', replies, credentials, storageErrors: newStorageErrors(), events };
  }

  /** Undefined if they were sent before. */
  function newStorageErrors(): StorageErrors | undefined {
    const errors = core.storageErrors();
    if (errors === sentErrors) return undefined;
    sentErrors = errors;
    return errors;
  }

  function answer({ kind }: Exclude<WorkerRequest, { kind: 'EXECUTE' }>): WorkerResponse {
    switch (kind) {
      case 'BEGIN_SERVING':
        core.beginServing();
        return { kind: 'DONE' };
      case 'LOOK':
        look();
        return { kind: 'DONE' };
      case 'READ_FIGURES':
        return { kind: 'FIGURES', metrics: core.metrics() };
      case 'CLOSE':
        clearInterval(looking);
        core.close();
        return { kind: 'DONE' };
    }
  }
}
