import { unavailable } from '../../domain/reason.ts';
import type { BusinessTime } from '../filing-commands.ts';
import { type Executed, type Kind, type Store, type StoreRequest, shares } from '../store.ts';
import type { Reply } from './call-transaction.ts';
import { charactersIn } from './characters.ts';
import { costOf } from './costs.ts';
import { asError, fateUnknown } from './failure.ts';
import { createFairQueue } from './fair-queue.ts';

/** CallTransaction that wait for their batch, at most; far more than the calls under way can have. */
const waitingMax = 10_000;
/** Characters that the effects of these may hold, at most. */
const waitingCharactersMax = 64 * 1_048_576;
/** What a share may use in each turn, and what a batch costs at most: some milliseconds, as long as others wait. See `costOf`. */
const costMax = { turn: 32, batch: 256 };
/** CallTransaction that are worth an fsync of their own: the engine is not to idle until the turn is over. */
const worthwhile = 32;

/**
 * Gathers units into batches, so that they share a transaction and its fsync: those of a turn of the event loop, and all
 * that come while the batch before is carried out. What a batch costs is bounded, and where more waits, those whose units
 * wait take turns.
 */
export interface Batcher {
  readonly execute: Store['execute'];
  /** CallTransaction that were taken and have no reply yet. */
  inFlight(): number;
  /** Takes no more units; resolves when all that it took have their replies. */
  close(): Promise<void>;
}

/** A unit that waits for its reply. */
interface Waiting {
  readonly unit: StoreRequest;
  /** Counts up. */
  readonly arrival: number;
  readonly share: number;
  readonly cost: number;
  next: Waiting | undefined;
  readonly characters: number;
  readonly resolve: (executed: Executed) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Makes a batcher; `send` has a batch carried out, one after the other, and replies to its units in their order, or to
 * the first of them alone, and then the others are sent again.
 */
export function createBatcher(send: (units: readonly StoreRequest[]) => Promise<readonly Reply[]>): Batcher {
  const queue = createFairQueue<Waiting>(costMax);
  /** What the batch before left over. It is sent before anything else. */
  let left: readonly Waiting[] = [];
  let waitingCharacters = 0;
  let isUnderWay = false;
  let unitsUnderWay = 0;
  let arrivals = 0;
  /** The time of the last record that was sent, and when its unit arrived. */
  let newest: { readonly arrival: number; readonly at: BusinessTime } | undefined;
  let isScheduled = false;
  let isClosed = false;
  const ended = Promise.withResolvers<void>();

  function schedule(): void {
    if (!canSend()) return;
    if (waiting() >= worthwhile) sendNext();
    else if (!isScheduled) {
      isScheduled = true;
      // After the I/O events of this turn and all that they set off, so that they share the fsync.
      setImmediate(() => {
        isScheduled = false;
        if (canSend()) sendNext();
      });
    }
  }

  const waiting = (): number => queue.length() + left.length;

  function canSend(): boolean {
    return waiting() > 0 && !isUnderWay;
  }

  function sendNext(): void {
    const batch = left.length > 0 ? left : queue.take();
    left = [];
    for (const { characters } of batch) waitingCharacters -= characters;
    isUnderWay = true;
    unitsUnderWay = batch.length;
    send(batch.map(inOrderOfTime)).then(
      (replies) => settle(batch, replies),
      (error) => settle(batch, [], error),
    );
  }

  /**
   * A unit as it is sent. A filing that a later unit has overtaken gets the time of that one: records must not run backwards,
   * or the store takes the clock to be wrong. A filing that came later with an earlier time was dated by such a clock, and keeps it.
   */
  function inOrderOfTime({ unit, arrival }: Waiting): StoreRequest {
    const { effect } = unit;
    if (effect === undefined || !('at' in effect)) return unit;
    const { at } = effect;
    if (newest === undefined || arrival > newest.arrival || at.atMs >= newest.at.atMs) {
      newest = { arrival, at };
      return unit;
    }
    return effect.kind === 'FileArtwork' ? { ...unit, effect: { ...effect, at: newest.at } } : unit;
  }

  function settle(batch: readonly Waiting[], replies: readonly Reply[], error?: Error): void {
    isUnderWay = false;
    unitsUnderWay = 0;
    const isInPart = error === undefined && replies.length > 0 && replies.length < batch.length;
    const settled = isInPart ? batch.slice(0, replies.length) : batch;
    for (const [place, { resolve, reject }] of settled.entries()) {
      const reply = replies[place];
      if (reply === undefined) reject(error ?? unavailable(fateUnknown));
      else if ('failure' in reply) reject(asError(reply.failure));
      else resolve(reply);
    }
    if (isInPart) {
      left = batch.slice(replies.length);
      for (const { characters } of left) waitingCharacters += characters;
    }
    schedule();
    endIfIdle();
  }

  function endIfIdle(): void {
    if (isClosed && !isUnderWay && waiting() === 0) ended.resolve();
  }

  return {
    execute: <K extends Kind>(unit: StoreRequest<K>) => {
      const { promise, resolve, reject } = Promise.withResolvers<Executed<K>>();
      const characters = charactersIn(unit.effect);
      const isFull = waiting() >= waitingMax || waitingCharacters + characters > waitingCharactersMax;
      if (isClosed || isFull) {
        reject(unavailable(isClosed ? 'The store is closed.' : 'The store takes no more at this moment.'));
        return promise;
      }
      arrivals += 1;
      queue.add({
        unit,
        arrival: arrivals,
        share: unit.share ?? shares.service,
        cost: costOf(unit),
        next: undefined,
        characters,
        resolve: resolve as Waiting['resolve'],
        reject,
      });
      waitingCharacters += characters;
      schedule();
      return promise;
    },
    inFlight: () => waiting() + unitsUnderWay,
    close: () => {
      isClosed = true;
      endIfIdle();
      return ended.promise;
    },
  };
}
