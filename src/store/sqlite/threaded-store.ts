import { setFlagsFromString } from 'node:v8';
import { unavailable } from '../../domain/reason.ts';
import { startThread } from '../../packaging/packaged-files.ts';
import type { Store, StoreOptions } from '../store.ts';
import { createBatcher } from './batcher.ts';
import { createCredentialIndex } from './credential-index.ts';
import { derivedKey } from './derived-key.ts';
import { createEventListeners } from './event-listeners.ts';
import { fateUnknown } from './failure.ts';
import { createStorageErrorListeners } from './storage-error-listeners.ts';
import { errorOf, type WorkerRequest, type WorkerResponse } from './thread-messages.ts';

const lostBefore = 'The store is gone; nothing was stored.';
const lostUnderWay = `The store is gone. ${fateUnknown}`;

/** A request to the thread that has no response yet. */
interface PendingRequest {
  readonly resolve: (response: WorkerResponse) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the store on SQLite in a thread of its own, so that commits, checkpoints and locks of other processes do not block
 * this thread. Throws DatabaseError.
 */
export async function openThreadedStore(options: StoreOptions): Promise<Store> {
  // For heaps that are made from now on, so for that of the thread alone; flags of the process override resourceLimits. Objects
  // of the thread live for one batch.
  setFlagsFromString('--max-semi-space-size=4');
  const worker = startThread('src/store/sqlite/thread', { workerData: options, name: 'artseal-store' });
  const index = createCredentialIndex();
  const listeners = createEventListeners();
  const storageErrors = createStorageErrorListeners();
  const opening = Promise.withResolvers<Extract<WorkerResponse, { kind: 'OPENED' }>>();
  const losing = Promise.withResolvers<Error>();
  const ended = Promise.withResolvers<void>();
  const pending: PendingRequest[] = [];
  let fault: string | undefined;
  /** Why the thread sends no more responses. */
  let loss: Error | undefined;
  let isClosing = false;
  let closing: Promise<void> | undefined;

  function receive(response: WorkerResponse): void {
    if ('credentials' in response && response.credentials !== undefined) index.replace(response.credentials);
    if ('fault' in response) fault = response.fault;
    if ('storageErrors' in response) storageErrors.update(response.storageErrors);
    if ('events' in response) listeners.notify(response.events);
    if (response.kind === 'OPENED') opening.resolve(response);
    else if (response.kind !== 'CHANGED') settle(response);
  }

  function settle(response: WorkerResponse): void {
    const request = pending.shift();
    if (response.kind !== 'FAILED') request?.resolve(response);
    else if (request === undefined) opening.reject(errorOf(response.error));
    else request.reject(errorOf(response.error));
  }

  function lose(error: Error): void {
    // Only the first reason counts: an exit follows each error.
    if (loss !== undefined) return;
    loss = error;
    opening.reject(error);
    for (const request of pending.splice(0)) request.reject(unavailable(lostUnderWay, error));
    if (!isClosing) losing.resolve(error);
  }

  async function send(message: WorkerRequest): Promise<WorkerResponse> {
    // A thread that has ended accepts messages and sends no responses.
    if (loss !== undefined) throw unavailable(lostBefore, loss);
    const { promise, resolve, reject } = Promise.withResolvers<WorkerResponse>();
    // First, because a message that cannot be sent throws and gets no response.
    worker.postMessage(message);
    pending.push({ resolve, reject });
    return promise;
  }

  worker.on('message', receive);
  worker.on('error', lose);
  worker.on('messageerror', (error) => {
    // A response is missing now, so later ones would settle the wrong requests.
    lose(error);
    worker.terminate();
  });
  worker.on('exit', (code) => {
    lose(new Error(`The thread of the store ended with ${code}.`));
    ended.resolve();
  });

  const { secret, checkedMs, upgrade } = await opening.promise.catch(async (error) => {
    await worker.terminate();
    throw error;
  });
  const { execute, inFlight, close } = createBatcher(async (units) => {
    const response = await send({ kind: 'EXECUTE', units });
    return response.kind === 'EXECUTED' ? response.replies : [];
  });

  async function end(): Promise<void> {
    await close();
    isClosing = true;
    if (loss === undefined) await send({ kind: 'CLOSE' });
    await ended.promise;
  }

  return {
    execute,
    findKey: index.findKey,
    findToken: index.findToken,
    refresh: async () => {
      await send({ kind: 'REFRESH' });
    },
    keyFor: (purpose) => derivedKey(secret, purpose),
    checkedMs,
    upgrade,
    beginServing: async () => {
      await send({ kind: 'BEGIN_SERVING' });
    },
    findFault: () => fault,
    storageErrors: storageErrors.latest,
    onStorageError: storageErrors.add,
    onEvents: listeners.add,
    requestsInFlight: inFlight,
    metrics: async () => {
      const requestsInFlight = inFlight();
      const response = await send({ kind: 'READ_METRICS' });
      if (response.kind !== 'METRICS')
        throw new Error(`The store sent ${response.kind} instead of its metrics.`);
      return { ...response.metrics, requestsInFlight };
    },
    lost: losing.promise,
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}
