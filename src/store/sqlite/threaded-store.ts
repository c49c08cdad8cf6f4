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

/** What the thread is asked and has not answered. */
interface Question {
  readonly resolve: (told: WorkerResponse) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens the store on SQLite in a thread of its own, so that neither a commit nor another process's lock nor a checkpoint
 * holds up this one. Throws DatabaseError.
 */
export async function openThreadedStore(options: StoreOptions): Promise<Store> {
  // Of the heaps that are made from now on, which is that of the thread alone; resourceLimits yield to the flag that the
  // process was started with. What the thread makes lives for one batch.
  setFlagsFromString('--max-semi-space-size=4');
  const worker = startThread('src/store/sqlite/thread', { workerData: options, name: 'artseal-store' });
  const index = createCredentialIndex();
  const listeners = createEventListeners();
  const storageErrors = createStorageErrorListeners();
  const opening = Promise.withResolvers<Extract<WorkerResponse, { kind: 'OPENED' }>>();
  const losing = Promise.withResolvers<Error>();
  const ended = Promise.withResolvers<void>();
  const questions: Question[] = [];
  let fault: string | undefined;
  /** Why the thread answers nothing more. */
  let loss: Error | undefined;
  let isClosing = false;
  let closing: Promise<void> | undefined;

  function hear(told: WorkerResponse): void {
    if ('credentials' in told && told.credentials !== undefined) index.replace(told.credentials);
    if ('fault' in told) fault = told.fault;
    if ('storageErrors' in told) storageErrors.update(told.storageErrors);
    if ('events' in told) listeners.tell(told.events);
    if (told.kind === 'OPENED') opening.resolve(told);
    else if (told.kind !== 'LOOKED') answered(told);
  }

  function answered(told: WorkerResponse): void {
    const question = questions.shift();
    if (told.kind !== 'FAILED') question?.resolve(told);
    else if (question === undefined) opening.reject(errorOf(told.error));
    else question.reject(errorOf(told.error));
  }

  function lose(error: Error): void {
    // What follows the first reason, as the exit follows an error, tells no more.
    if (loss !== undefined) return;
    loss = error;
    opening.reject(error);
    for (const question of questions.splice(0)) question.reject(unavailable(lostUnderWay, error));
    if (!isClosing) losing.resolve(error);
  }

  async function ask(asked: WorkerRequest): Promise<WorkerResponse> {
    // A thread that has ended takes messages and says nothing.
    if (loss !== undefined) throw unavailable(lostBefore, loss);
    const { promise, resolve, reject } = Promise.withResolvers<WorkerResponse>();
    // Before it is noted: what cannot be sent throws, and is never answered.
    worker.postMessage(asked);
    questions.push({ resolve, reject });
    return promise;
  }

  worker.on('message', hear);
  worker.on('error', lose);
  worker.on('messageerror', (error) => {
    // An answer is missing now, and those that follow would be taken for the ones before them.
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
    const told = await ask({ kind: 'EXECUTE', units });
    return told.kind === 'EXECUTED' ? told.replies : [];
  });

  async function end(): Promise<void> {
    await close();
    isClosing = true;
    if (loss === undefined) await ask({ kind: 'CLOSE' });
    await ended.promise;
  }

  return {
    execute,
    findKey: index.findKey,
    findToken: index.findToken,
    refresh: async () => {
      await ask({ kind: 'LOOK' });
    },
    keyFor: (purpose) => derivedKey(secret, purpose),
    checkedMs,
    upgrade,
    beginServing: async () => {
      await ask({ kind: 'BEGIN_SERVING' });
    },
    findFault: () => fault,
    storageErrors: storageErrors.latest,
    onStorageError: storageErrors.add,
    onEvents: listeners.add,
    unitsInFlight: inFlight,
    metrics: async () => {
      const unitsInFlight = inFlight();
      const told = await ask({ kind: 'READ_FIGURES' });
      if (told.kind !== 'FIGURES') throw new Error(`The store told ${told.kind} in place of its metrics.`);
      return { ...told.metrics, unitsInFlight };
    },
    lost: losing.promise,
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}
