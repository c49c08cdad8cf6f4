import { unavailable } from '../../domain/reason.ts';
import type { BusinessTime } from '../filing-commands.ts';
import { type Executed, type Kind, type StoreRequest, shares } from '../store.ts';
import { charactersIn, costOf } from './costs.ts';
import { asError, fateUnknown, type Reply } from './failure.ts';
import { createFairQueue } from './fair-queue.ts';

/** Requests that wait for their batch, at most; far more than the calls under way can have. */
const waitingMax = 10_000;
/** Characters that the commands of all requests without a reply may hold, at most. */
const heldCharactersMax = 64 * 1_048_576;
/** The costs of a share in each turn, and of a batch, at most: a few milliseconds while others wait. See `costOf`. */
const costMax = { turn: 32, batch: 256 };
/** So many requests are worth an fsync of their own, so that the engine is not idle until the turn ends. */
const worthwhile = 32;

/** A request that waits for its reply. */
interface Waiting {
  readonly request: StoreRequest;
  /** Counts up. */
  readonly arrival: number;
  readonly share: number;
  readonly cost: number;
  readonly characters: number;
  readonly resolve: (executed: Executed) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Executes a batch and returns the replies in its order. If these are of the first requests only, the others are sent again. It may
 * call `storing` when all requests are executed and only the commit is left.
 */
type Send = (requests: readonly StoreRequest[], storing: () => void) => Promise<readonly Reply[]>;

/**
 * Gathers requests into batches that share a transaction and its fsync: the requests of a turn of the event loop, and all that
 * arrive while the previous batch is executed. The cost of a batch is bounded. If more waits, the shares take turns. While a batch is
 * stored, `readAhead` is called with the next one, once as many requests wait as that batch has, or as are worthwhile.
 */
export function createBatcher(send: Send, readAhead?: (requests: readonly StoreRequest[]) => void) {
  const queue = createFairQueue<Waiting>(costMax);
  const inOrderOfTime = createTimeOrder();
  /** What is sent first: what the previous batch did not execute, and what was read ahead. */
  let next: readonly Waiting[] = [];
  let isStoring = false;
  let heldCharacters = 0;
  let underWay = 0;
  let arrivals = 0;
  let isScheduled = false;
  let isClosed = false;
  const ended = Promise.withResolvers<void>();

  const waiting = (): number => queue.length() + next.length;
  const canSend = (): boolean => waiting() > 0 && underWay === 0;

  function schedule(): void {
    if (isStoring && next.length === 0 && queue.length() >= Math.min(underWay, worthwhile)) {
      next = queue.take();
      readAhead?.(next.map(({ request }) => request));
    }
    if (!canSend()) return;
    if (next.length > 0 || queue.length() >= worthwhile) sendNext();
    else if (!isScheduled) {
      isScheduled = true;
      // After the I/O events of this turn and all that they cause, so that they share the fsync.
      setImmediate(() => {
        isScheduled = false;
        if (canSend()) sendNext();
      });
    }
  }

  function sendNext(): void {
    const batch = next.length > 0 ? next : queue.take();
    next = [];
    underWay = batch.length;
    const storing = () => {
      isStoring = true;
      schedule();
    };
    send(batch.map(inOrderOfTime), storing).then(
      (replies) => end(batch, replies),
      (error) => end(batch, [], error),
    );
  }

  function end(batch: readonly Waiting[], replies: readonly Reply[], error?: Error): void {
    underWay = 0;
    isStoring = false;
    const left = error === undefined && replies.length > 0 ? batch.slice(replies.length) : [];
    next = [...left, ...next];
    const done = batch.slice(0, batch.length - left.length);
    for (const { characters } of done) heldCharacters -= characters;
    // What was read ahead is executed first. Then the engine works while the replies are handled.
    if (next.length > 0) setImmediate(settle, done, replies, error);
    else settle(done, replies, error);
    schedule();
    endIfIdle();
  }

  function endIfIdle(): void {
    if (isClosed && underWay === 0 && waiting() === 0) ended.resolve();
  }

  return {
    execute: <K extends Kind>(request: StoreRequest<K>) => {
      const { promise, resolve, reject } = Promise.withResolvers<Executed<K>>();
      const characters = charactersIn(request.effect);
      const isFull = waiting() >= waitingMax || heldCharacters + characters > heldCharactersMax;
      if (isClosed || isFull) {
        reject(unavailable(isClosed ? 'The store is closed.' : 'The store takes no more at this moment.'));
        return promise;
      }
      arrivals += 1;
      queue.add({
        ...{ request, arrival: arrivals, characters, reject },
        share: request.share ?? shares.service,
        cost: costOf(request),
        resolve: resolve as Waiting['resolve'],
      });
      heldCharacters += characters;
      schedule();
      return promise;
    },
    /** Accepted requests without a reply. */
    inFlight: (): number => waiting() + underWay,
    /** Accepts no more requests; resolves when all accepted ones have their replies. */
    close: (): Promise<void> => {
      isClosed = true;
      endIfIdle();
      return ended.promise;
    },
  };
}

/** Gives requests their replies. */
function settle(batch: readonly Waiting[], replies: readonly Reply[], error: Error | undefined): void {
  for (const [place, { resolve, reject }] of batch.entries()) {
    const reply = replies[place];
    if (reply === undefined) reject(error ?? unavailable(fateUnknown));
    else if ('failure' in reply) reject(asError(reply.failure));
    else resolve(reply);
  }
}

/**
 * Returns a function that makes the requests of batches to be sent. A filing that a later request has overtaken gets the time of
 * that request: if records ran backwards, the store would take the clock to be wrong. A filing that came later with an earlier
 * time was dated by such a clock, and keeps it.
 */
function createTimeOrder(): (waiting: Waiting) => StoreRequest {
  /** The time of the last record that was sent, and when its request arrived. */
  let newest: { readonly arrival: number; readonly at: BusinessTime } | undefined;
  return ({ request, arrival }) => {
    const { effect } = request;
    if (effect === undefined || !('at' in effect)) return request;
    const { at } = effect;
    if (newest === undefined || arrival > newest.arrival || at.atMs >= newest.at.atMs) {
      newest = { arrival, at };
      return request;
    }
    return effect.kind === 'FileArtwork' ? { ...request, effect: { ...effect, at: newest.at } } : request;
  };
}
