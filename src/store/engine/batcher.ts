import { unavailable } from '../../domain/reason.ts';
import { type Command, type Executed, type Kind, type StoreRequest, shares } from '../store.ts';
import { deletedPerRequest, redeliveredPerRequest } from '../webhook-commands.ts';
import { asError, fateUnknown, type Reply } from './failure.ts';
import { charactersIn } from './requests.ts';

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
  readonly share: number;
  readonly cost: number;
  readonly characters: number;
  readonly resolve: (executed: Executed) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Executes a batch and returns the replies in its order. If these are of the first requests only, the others are sent again. Before it
 * begins, it may wait and then call `extended`, which adds requests that came meanwhile and returns the whole batch. It may call
 * `storing` when all requests are executed and only the commit is left.
 */
export type Send = (
  requests: readonly StoreRequest[],
  storing: () => void,
  extended: () => readonly StoreRequest[],
) => Promise<readonly Reply[]>;

/** What an engine can do with the next batch while it executes one. */
export interface Ahead {
  /** Gets the next batch while one is stored, once as many requests wait as that batch has, or as are worthwhile. */
  readonly read?: ((requests: readonly StoreRequest[]) => void) | undefined;
  /** Whether it takes batches while it executes one. It may execute those that wait as one. */
  readonly takes?: boolean;
}

/**
 * Gathers requests into batches that share a transaction and its fsync: the requests of a turn of the event loop, and all that
 * arrive while the engine takes no batch. The cost of the batches under way is bounded. If more waits, the shares take turns.
 */
export function createBatcher(send: Send, ahead: Ahead = {}) {
  const queue = createFairQueue<Waiting>(costMax);
  const dates = createFilingDates();
  /** What is sent first: what the previous batch did not execute, and what was read ahead. */
  let next: readonly Waiting[] = [];
  let isStoring = false;
  let heldCharacters = 0;
  const underWay = createUnderWay();
  let isClosed = false;
  const ended = Promise.withResolvers<void>();

  const waiting = (): number => queue.length() + next.length;
  const canSend = (): boolean =>
    waiting() > 0 && (ahead.takes === true ? !underWay.isAlone() : underWay.batches.length === 0);
  const sendSoon = afterTurn(() => {
    if (canSend()) sendNext();
  });

  function schedule(): void {
    const enough = Math.min(underWay.batches[0]?.length ?? 0, worthwhile);
    if (isStoring && next.length === 0 && queue.length() >= enough) {
      next = queue.take();
      ahead.read?.(next.map(({ request }) => request));
    }
    if (!canSend()) return;
    if (next.length > 0 || queue.length() >= worthwhile) sendNext();
    else sendSoon();
  }

  function sendNext(): void {
    const batch = next.length > 0 ? [...next] : queue.take(underWay.cost());
    next = [];
    // The batches under way cost enough, or the next request must be alone.
    if (batch.length === 0) return;
    underWay.add(batch);
    const extended = () => underWay.extend(batch, queue.take(underWay.cost())).map(dates.dated);
    const storing = () => {
      isStoring = true;
      schedule();
    };
    send(batch.map(dates.dated), storing, extended).then(
      (replies) => end(batch, replies),
      (error) => end(batch, [], error),
    );
  }

  function end(batch: readonly Waiting[], replies: readonly Reply[], error?: Error): void {
    underWay.remove(batch);
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
    if (isClosed && underWay.batches.length === 0 && waiting() === 0) ended.resolve();
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
      dates.submitted(request);
      queue.add({
        ...{ request, characters, reject, resolve: resolve as Waiting['resolve'] },
        share: request.share ?? shares.service,
        cost: costOf(request),
      });
      heldCharacters += characters;
      schedule();
      return promise;
    },
    /** Accepted requests without a reply. */
    inFlight: (): number => waiting() + underWay.batches.flat().length,
    /** Accepts no more requests; resolves when all accepted ones have their replies. */
    close: (): Promise<void> => {
      isClosed = true;
      endIfIdle();
      return ended.promise;
    },
  };
}

/** The batches that are sent and have no replies, in their order, and what they cost. */
function createUnderWay() {
  const batches: (readonly Waiting[])[] = [];
  let cost = 0;
  const sumOf = (batch: readonly Waiting[]): number => batch.reduce((sum, { cost: own }) => sum + own, 0);
  return {
    batches,
    cost: (): number => cost,
    /**
     * Whether the engine has a request that costs more than a turn. If others followed it at once, the next such request would
     * get their turn.
     */
    isAlone: (): boolean => (batches[0]?.[0]?.cost ?? 0) > costMax.turn,
    add: (batch: readonly Waiting[]): void => {
      batches.push(batch);
      cost += sumOf(batch);
    },
    /** Adds more to a batch that is under way, and returns it. */
    extend: (batch: Waiting[], more: readonly Waiting[]): readonly Waiting[] => {
      batch.push(...more);
      cost += sumOf(more);
      return batch;
    },
    remove: (batch: readonly Waiting[]): void => {
      batches.splice(batches.indexOf(batch), 1);
      cost -= sumOf(batch);
    },
  };
}

/** Returns a function that runs `work` once after the I/O events of this turn and all that they cause, so that those share an fsync. */
function afterTurn(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    setImmediate(() => {
      isDue = false;
      work();
    });
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
 * Dates the filings of batches that are sent. A filing gets the time of the one that was submitted last, if that has a later second.
 * For it may have waited, for example for a database that did not respond. Later filings may be stored by then, and the store would
 * take the clock to be wrong. A filing that is later than the last one was dated before the clock was set back, and keeps its time.
 */
function createFilingDates() {
  let newest: Command<'FileArtwork'> | undefined;
  return {
    submitted: ({ effect }: StoreRequest): void => {
      if (effect?.kind === 'FileArtwork') newest = effect;
    },
    dated: ({ request }: Waiting): StoreRequest => {
      const { effect } = request;
      if (effect?.kind !== 'FileArtwork' || newest === undefined) return request;
      const { at, clockSetByS = 0 } = newest;
      if (effect.at.timestamp === at.timestamp || effect.at.atMs > at.atMs) return request;
      return { ...request, effect: { ...effect, at, clockSetByS } };
    },
  };
}

/** The cost of a command. A filing costs 1, about 20 µs. */
type Costs = { readonly [K in Kind]?: (command: Command<K>) => number };

/** The commands that cost more than a filing, without those whose page has the usual cost. */
const costs: Costs = {
  ListFilings: ({ page }) => 1 + page.size / 2,
  Redeliver: ({ which }) => ('sequence' in which ? 1 : redeliveredPerRequest),
  DeleteWebhook: () => deletedPerRequest / 5,
  ReadEvents: () => 15,
  ReadAllEvents: () => 15,
  ReadLeaves: () => 15,
  ReadSubtrees: () => 10,
  ProveInclusion: () => 15,
  ProveConsistency: () => 15,
  FindRecord: () => 15,
  VerifyLog: ({ leaves }) => leaves / 8,
  ReadMetrics: () => 60,
  ClaimDeliveries: ({ limit }) => limit,
  RecordAttempts: ({ outcomes }) => outcomes.length,
};

/** An estimate of what a request costs the thread of the store, at least 1. */
function costOf({ effect }: StoreRequest): number {
  if (effect === undefined) return 1;
  const cost = costs[effect.kind] as ((command: Command) => number) | undefined;
  if (cost !== undefined) return Math.max(1, cost(effect));
  return 'page' in effect ? 1 + effect.page.size / 4 : 1;
}

/** An item of a fair queue. */
interface Queued {
  /** The share that it uses. */
  readonly share: number;
  /** Its cost, at least 1. */
  readonly cost: number;
}

/**
 * A fair queue by deficit round robin: the shares that have items take turns, and each may use as much as any other, however
 * many items it has. Items of one share keep their order. Limits, in costs: `turn` is what a share may use in each turn; an item
 * that costs more waits until its share has saved enough. `batch` is what a batch may cost, unless it is a single item.
 */
export function createFairQueue<Item extends Queued>({ turn, batch }: Record<'turn' | 'batch', number>) {
  /** The shares that have items, and the cost that each may still use. The share whose turn it is comes first. */
  const lines = new Map<number, { readonly items: Item[]; credit: number }>();
  /** Whether the first share has got its credit: a batch may end within its turn. */
  let isTurnBegun = false;
  let length = 0;

  return {
    length: (): number => length,
    add: (item: Item): void => {
      length += 1;
      const line = lines.get(item.share);
      if (line === undefined) lines.set(item.share, { items: [item], credit: 0 });
      else line.items.push(item);
    },
    /**
     * Removes and returns the next batch, in order; empty if nothing waits. An item that costs more than a turn is a batch of its
     * own. `cost` is that of the requests already under way.
     */
    take: (cost = 0): Item[] => {
      const taken: Item[] = [];
      let sum = cost;
      // A share that goes to the end comes again.
      for (const [share, line] of lines) {
        const { items } = line;
        if (!isTurnBegun) line.credit += turn;
        isTurnBegun = true;
        let isAlone = false;
        for (let item = items[0]; item !== undefined && item.cost <= line.credit; item = items[0]) {
          isAlone = item.cost > turn;
          if (sum > 0 && (isAlone || sum + item.cost > batch)) return taken;
          items.shift();
          length -= 1;
          line.credit -= item.cost;
          taken.push(item);
          sum += item.cost;
          if (isAlone) break;
        }
        if (isAlone && items.length > 0) break;
        isTurnBegun = false;
        lines.delete(share);
        // A share that waits for nothing saves nothing.
        if (items.length > 0) lines.set(share, line);
        if (isAlone) break;
      }
      return taken;
    },
  };
}
