import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { unavailable } from '../../domain/reason.ts';
import { startThread } from '../../packaging/packaged-files.ts';
import { createBatcher } from '../engine/batcher.ts';
import { DatabaseError, fateUnknown, type Reply } from '../engine/failure.ts';
import { createKnownState, derivedKey } from '../engine/known-state.ts';
import type { Store, StoreOptions, StoreRequest } from '../store.ts';
import { createPacker, createUnpacker } from './packing.ts';
import type { WorkerRequest, WorkerResponse } from './thread.ts';

const lostBefore = 'The store is gone; nothing was stored.';
const lostUnderWay = `The store is gone. ${fateUnknown}`;

/** A request to the thread that has no response yet. */
interface PendingRequest {
  readonly resolve: (response: WorkerResponse) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the store on SQLite in a thread of its own, so that commits and checkpoints do not block this thread. Throws DatabaseError.
 */
export async function openThreadedStore(options: StoreOptions): Promise<Store> {
  // For heaps created from now on, so for the thread alone; flags of the process override resourceLimits. Objects of the thread
  // live for one batch.
  setFlagsFromString('--max-semi-space-size=4');
  const worker = startThread('src/store/sqlite/thread', { workerData: options, name: 'artseal-store' });
  const { update, methods } = createKnownState();
  let fault: string | undefined;
  const thread = talkTo(worker, (response) => {
    if ('fault' in response) fault = response.fault;
    if ('credentials' in response) update(response);
  });
  const { send } = thread;
  const { secret, checkedMs, upgrade } = await thread.opened.catch(async (error) => {
    await worker.terminate();
    throw error;
  });
  const { execute, inFlight, close } = createBatcher(thread.executeBatch, { takes: true });
  let closing: Promise<void> | undefined;

  return {
    execute,
    ...methods,
    keyFor: (purpose) => derivedKey(secret, purpose),
    checkedMs,
    upgrade,
    findFault: () => fault,
    requestsInFlight: inFlight,
    metrics: async () => {
      const requestsInFlight = inFlight();
      const response = await send({ kind: 'READ_METRICS' });
      if (response.kind !== 'METRICS')
        throw new Error(`The store sent ${response.kind} instead of its metrics.`);
      return { ...response.metrics, requestsInFlight };
    },
    lost: thread.lost,
    close: () => {
      closing ??= close().then(thread.close);
      return closing;
    },
  };
}

/** Sends requests to the thread, which responds in their order. `receive` gets each message first. */
function talkTo(worker: Worker, receive: (response: WorkerResponse) => void) {
  const opening = Promise.withResolvers<Extract<WorkerResponse, { kind: 'OPENED' }>>();
  const losing = Promise.withResolvers<Error>();
  const ended = Promise.withResolvers<void>();
  const pending: PendingRequest[] = [];
  const pack = createPacker();
  const unpack = createUnpacker();
  /** Why the thread sends no more responses. */
  let loss: Error | undefined;
  let isClosing = false;

  function settle(response: WorkerResponse): void {
    const request = pending.shift();
    if (response.kind === 'FAILED') {
      const { error, isDatabaseError } = response;
      (request ?? opening).reject(isDatabaseError ? new DatabaseError(error.message) : error);
    } else request?.resolve(response);
  }

  function lose(error: Error): void {
    // Only the first reason counts: an exit follows each error.
    if (loss !== undefined) return;
    loss = error;
    opening.reject(error);
    for (const request of pending.splice(0)) request.reject(unavailable(lostUnderWay, error));
    if (!isClosing) losing.resolve(error);
  }

  /** Sends a message with `post`; resolves to its response. */
  async function request(post: () => void): Promise<WorkerResponse> {
    // A thread that has ended accepts messages and sends no responses.
    if (loss !== undefined) throw unavailable(lostBefore, loss);
    const { promise, resolve, reject } = Promise.withResolvers<WorkerResponse>();
    // First, because a message that cannot be sent throws and gets no response.
    post();
    pending.push({ resolve, reject });
    return promise;
  }

  const post = (message: WorkerRequest) => worker.postMessage(message);
  const send = (message: WorkerRequest) => request(() => post(message));

  async function executeBatch(batch: readonly StoreRequest[]): Promise<readonly Reply[]> {
    const response = await request(() => pack(batch, (requests) => post({ kind: 'EXECUTE', requests })));
    return response.kind === 'EXECUTED' ? (unpack(response.replies) as Reply[]) : [];
  }

  worker.on('message', (response: WorkerResponse) => {
    receive(response);
    if (response.kind === 'OPENED') opening.resolve(response);
    else if (response.kind !== 'CHANGED') settle(response);
  });
  worker.on('error', lose);
  worker.on('messageerror', (error) => {
    // A response is missing now, so later ones would settle the wrong requests.
    lose(error);
    void worker.terminate();
  });
  worker.on('exit', (code) => {
    lose(new Error(`The thread of the store ended with ${code}.`));
    ended.resolve();
  });

  return {
    opened: opening.promise,
    lost: losing.promise,
    send,
    executeBatch,
    close: async () => {
      isClosing = true;
      if (loss === undefined) await send({ kind: 'CLOSE' });
      await ended.promise;
    },
  };
}
