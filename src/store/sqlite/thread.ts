import '../../packaging/module-resolution.ts';
import { parentPort, workerData } from 'node:worker_threads';
import type { StorageErrors, StoreOptions, StoreRequest } from '../store.ts';
import { damaged } from './damage.ts';
import { noStorageErrors } from './failure.ts';
import { databaseFile } from './location.ts';
import { toWorkerError, type WorkerRequest, type WorkerResponse } from './thread-messages.ts';

/** How often the thread checks for credentials and events of other processes, and that the files are in their place. */
const checkEveryMs = 250;

// Loaded after module-resolution.ts, which it needs.
const { openCore } = await import('./core.ts');

if (parentPort === null) throw new Error('The thread of the store was started as a program.');
const port = parentPort;
const send = (response: WorkerResponse) => port.postMessage(response);

try {
  serve(openCore(workerData as StoreOptions), workerData as StoreOptions);
} catch (error) {
  send({ kind: 'FAILED', error: toWorkerError(error) });
}

/** Responds to requests in their order, until CLOSE. */
function serve(core: ReturnType<typeof openCore>, { dataDir }: StoreOptions): void {
  let fault = core.findFault();
  let sentErrors = noStorageErrors;
  const { secret, checkedMs, upgrade } = core;
  const credentials = core.changedCredentials();
  const { damage } = core.storageErrors();
  // Without credentials every caller would be rejected as unknown.
  if (damage !== undefined) throw damaged(databaseFile(dataDir), damage);
  send({ kind: 'OPENED', secret, checkedMs, upgrade, credentials, fault });
  const check = () => {
    const credentials = core.changedCredentials();
    const found = core.findFault();
    const events = core.takeEventNews(true);
    const storageErrors = newStorageErrors();
    const isSame = found === fault && storageErrors === undefined;
    if (credentials === undefined && isSame && events === undefined) return;
    fault = found;
    send({ kind: 'CHANGED', credentials, fault, storageErrors, events });
  };
  const timer = setInterval(check, checkEveryMs);
  port.on('message', (request: WorkerRequest) => {
    // An error here ends the thread, because nobody knows what was stored.
    if (request.kind === 'EXECUTE') return send(executed(request.batch));
    try {
      send(respond(request));
    } catch (error) {
      send({ kind: 'FAILED', error: toWorkerError(error) });
    }
    if (request.kind === 'CLOSE') port.close();
  });

  function executed(batch: readonly StoreRequest[]): WorkerResponse {
    const replies = core.executeBatch(batch);
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

  function respond({ kind }: Exclude<WorkerRequest, { kind: 'EXECUTE' }>): WorkerResponse {
    switch (kind) {
      case 'BEGIN_SERVING':
        core.beginServing();
        return { kind: 'DONE' };
      case 'REFRESH':
        check();
        return { kind: 'DONE' };
      case 'READ_METRICS':
        return { kind: 'METRICS', metrics: core.metrics() };
      case 'CLOSE':
        clearInterval(timer);
        core.close();
        return { kind: 'DONE' };
    }
  }
}
