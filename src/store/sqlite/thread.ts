import '../../packaging/module-resolution.ts';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { DatabaseError, noStorageErrors, type Reply } from '../engine/failure.ts';
import type { News } from '../engine/known-state.ts';
import type { StoreOptions, StoreRequest } from '../store.ts';
import type { Core } from './core.ts';
import { databaseFile } from './location.ts';
import { createPacker, createUnpacker, type Packed } from './packing.ts';

/** A request to the thread of the store. The thread responds in the order of the requests. */
export type WorkerRequest = { readonly kind: 'EXECUTE'; readonly requests: Packed } | OtherRequest;

type OtherRequest = { readonly kind: 'READ_METRICS' | 'CLOSE' };

/** A message of the thread: the response to a request, or OPENED once and CHANGED when there is another fault. */
export type WorkerResponse =
  | ({ readonly kind: 'EXECUTED'; readonly replies: Packed } & News)
  | { readonly kind: 'DONE' }
  | { readonly kind: 'METRICS'; readonly metrics: ReturnType<Core['metrics']> }
  /** The class of a DatabaseError is lost on the way. */
  | { readonly kind: 'FAILED'; readonly error: Error; readonly isDatabaseError: boolean }
  | ({ readonly kind: 'OPENED' } & Pick<Core, 'secret' | 'checkedMs' | 'upgrade'> & News & Fault)
  | ({ readonly kind: 'CHANGED' } & Fault);

/** What is wrong with the files. */
interface Fault {
  readonly fault: string | undefined;
}

/** How often the thread checks that the files are in their place. */
const checkEveryMs = 250;

// Loaded after module-resolution.ts, which it needs.
const { openCore } = await import('./core.ts');
const { damaged } = await import('./database.ts');

if (parentPort === null) throw new Error('The thread of the store was started as a program.');
const port = parentPort;
const send = (response: WorkerResponse) => port.postMessage(response);

function sendFailure(thrown: unknown): void {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  send({ kind: 'FAILED', error, isDatabaseError: error instanceof DatabaseError });
}

try {
  serve(openCore(workerData as StoreOptions), workerData as StoreOptions);
} catch (error) {
  sendFailure(error);
}

/** Responds to requests in their order, until CLOSE. */
function serve(core: Core, { dataDir }: StoreOptions): void {
  let fault = core.findFault();
  let sentErrors = noStorageErrors;
  const unpack = createUnpacker();
  const pack = createPacker();
  const { secret, checkedMs, upgrade } = core;
  const credentials = core.changedCredentials();
  const { damage } = core.storageErrors();
  // Without credentials every caller would be rejected as unknown.
  if (damage !== undefined) throw damaged(databaseFile(dataDir), damage);
  send({ kind: 'OPENED', secret, checkedMs, upgrade, credentials, fault });
  const check = () => {
    const found = core.findFault();
    if (found === fault) return;
    fault = found;
    send({ kind: 'CHANGED', fault });
  };
  const timer = setInterval(check, checkEveryMs);
  port.on('message', (request: WorkerRequest) => {
    // An error here ends the thread, because nobody knows what was stored.
    if (request.kind === 'EXECUTE') void execute(request.requests);
    else answer(request);
  });

  /**
   * Executes a batch, and those that have arrived since it was sent, as one. Has its replies before the next message event:
   * nothing in a batch waits for more than promises.
   */
  async function execute(requests: Packed): Promise<void> {
    const batches = [unpack(requests) as StoreRequest[]];
    let other: OtherRequest | undefined;
    while (other === undefined) {
      const received = receiveMessageOnPort(port)?.message as WorkerRequest | undefined;
      if (received === undefined) break;
      if (received.kind === 'EXECUTE') batches.push(unpack(received.requests) as StoreRequest[]);
      else other = received;
    }
    while (batches.length > 0) respondTo(batches, await core.executeBatch(batches.flat()));
    if (other !== undefined) answer(other);
  }

  /** Sends each batch its replies, and removes it. The last one may get only some of its replies. */
  function respondTo(batches: StoreRequest[][], replies: readonly Reply[]): void {
    for (let sent = 0; sent < replies.length; ) {
      const own = replies.slice(sent, sent + (batches.shift()?.length ?? 0));
      pack(own, (packed) => send({ kind: 'EXECUTED', replies: packed, ...news() }));
      sent += own.length;
    }
  }

  function answer(request: OtherRequest): void {
    try {
      send(respond(request));
    } catch (error) {
      sendFailure(error);
    }
    if (request.kind === 'CLOSE') port.close();
  }

  /** What was not sent before. */
  function news(): News {
    const events = core.takeEventNews();
    const credentials = core.changedCredentials();
    const errors = core.storageErrors();
    const storageErrors = errors === sentErrors ? undefined : errors;
    sentErrors = errors;
    return { credentials, events, storageErrors };
  }

  function respond({ kind }: OtherRequest): WorkerResponse {
    switch (kind) {
      case 'READ_METRICS':
        return { kind: 'METRICS', metrics: core.metrics() };
      case 'CLOSE':
        clearInterval(timer);
        core.close();
        return { kind: 'DONE' };
    }
  }
}
