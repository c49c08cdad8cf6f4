import type {
  Admission,
  Command,
  Executed,
  IdempotencyClaim,
  Kind,
  NonceClaim,
  StoreRequest,
} from '../../src/store/store.ts';
import type { Random } from '../support/random.ts';
import { drawCommand } from './random-commands.ts';
import { backMaxS, World } from './random-world.ts';

/** The simulated time goes to here at most: everything before is past its retention by the clock of the database. */
const endS = Date.UTC(2020, 0, 1) / 1_000;

/** Requests that are submitted together, at most. */
const batchMax = 64;

const fingerprints = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];

/**
 * A nonce that was used once. Nobody uses it a third time: PostgreSQL remembers the last time of each nonce, and SQLite all times that
 * a clock which is set back may come to again.
 */
function usedNonce({ random, nonces }: World): NonceClaim | undefined {
  const newest = Math.max(0, nonces.length - 12);
  return nonces.splice(random.below(2) * newest + random.below(12), 1)[0];
}

function newNonce(world: World): NonceClaim {
  const nonce = { keyId: 1 + world.random.below(3), nonce: world.hex(8) };
  world.nonces.push(nonce);
  return nonce;
}

/** What admits a command: often nothing. */
function admission(world: World): Admission | undefined {
  const { random } = world;
  const { callerId } = world.known(world.callers) ?? {};
  if (callerId === undefined || world.oneIn(2)) return undefined;
  const nonce = (world.oneIn(8) && usedNonce(world)) || newNonce(world);
  // The quota of a caller stays the same for most calls.
  const limit = world.oneIn(10) ? random.pick([undefined, 2]) : 5 + 10 * (callerId % 4);
  return {
    ...{ nowS: world.nowS - random.below(3), sweepAtS: world.sweepAtS },
    nonce: world.oneIn(5) ? undefined : nonce,
    idempotency: world.oneIn(2)
      ? undefined
      : {
          ...{ callerId, key: world.hex(8), requestId: world.id('req') },
          fingerprint: random.pick(fingerprints),
        },
    quota: world.oneIn(3) ? undefined : { callerId, month: world.month(), limit, take: !world.oneIn(10) },
  };
}

/** A call that was made before, with another nonce and perhaps other content; or the second part of one. */
function repeated(world: World): StoreRequest | undefined {
  const before = world.known(world.claimed);
  const claim = before?.admission?.idempotency;
  if (claim === undefined) return undefined;
  const { effect } = before ?? {};
  if (effect?.kind === 'BeginWebhookTest' && world.oneIn(2)) return secondPart(world, effect, claim);
  const again = admission(world);
  const fingerprint = world.oneIn(5) ? world.random.pick(fingerprints) : claim.fingerprint;
  return {
    effect: effect && commandAgain(world, effect),
    admission: {
      ...{ nowS: world.nowS, sweepAtS: world.sweepAtS, nonce: again?.nonce, quota: again?.quota },
      idempotency: { ...claim, fingerprint, requestId: world.id('req') },
    },
  };
}

/** The command of a repeated call: with the time of now, and an instruction id of its own. */
function commandAgain(world: World, effect: Command): Command {
  return {
    ...effect,
    ...('at' in effect && { at: world.time() }),
    ...('nowMs' in effect && { nowMs: world.nowMs() }),
    ...('by' in effect &&
      effect.by !== undefined &&
      'atS' in effect.by && { by: { ...effect.by, atS: world.nowS } }),
    ...('work' in effect && { work: { ...effect.work, instructionId: world.id('ins') } }),
  } as Command;
}

function secondPart(
  world: World,
  { eventId }: Command<'BeginWebhookTest'>,
  continues: IdempotencyClaim,
): StoreRequest {
  const result = { isDelivered: world.oneIn(2), httpStatus: 204, answer: world.bytes(3), error: null };
  return { continues, effect: { kind: 'EndWebhookTest', eventId, result } };
}

function newRequest(world: World, kinds?: readonly Kind[]): StoreRequest {
  const { idempotency, ...admitted } = admission(world) ?? {};
  const effect = world.oneIn(40) ? undefined : drawCommand(world, kinds);
  const isKeyed = idempotency !== undefined && effect !== undefined && !isKeyless(effect);
  const request: StoreRequest = {
    effect,
    ...('nowS' in admitted && { admission: { ...admitted, idempotency: isKeyed ? idempotency : undefined } }),
  };
  if (isKeyed) world.claimed.push(request);
  return request;
}

/**
 * Whether a command is of no call with a key: it reads, or it has ids or times that are new in every call, and would have them a second
 * time after the key has expired.
 */
const isKeyless = (effect: Command): boolean =>
  ['page', 'key', 'token', 'outcomes', 'filingNos'].some((member) => member in effect) ||
  /^(Get|Read|Prove|Find)/.test(effect.kind);

/** A request whose caller does not exist: its row breaks a foreign key when it is written. */
function ofNobody(world: World): StoreRequest {
  const filing = { artwork: world.artwork(), at: world.time(), by: { callerId: 99_999, caller: 'nobody' } };
  return { admission: admission(world), effect: { kind: 'FileArtwork', ...filing } };
}

const dayS = 86_400;

/** Most time passes in jumps. Nothing expires in a period but nonces, idempotency keys and what clients chose. */
const periodMaxS = 26 * dayS;

/**
 * Moves the clock, also a little back. Events expire only in a pause between two periods, because the engines do not delete them in the
 * same transactions.
 */
function createClock(world: World) {
  let latestS = world.nowS;
  let leftS = periodMaxS;
  return {
    tick: (): void => {
      const { random } = world;
      const draw = random.below(100);
      const jumpS =
        draw < 60
          ? random.below(6)
          : draw < 80
            ? random.below(400)
            : draw < 92
              ? 600 + random.below(1_500)
              : (2 + random.below(8)) * dayS;
      if (jumpS > leftS) return;
      if (jumpS >= dayS) world.pauses.push(latestS + dayS);
      leftS -= jumpS;
      latestS += jumpS;
      world.nowS = world.oneIn(12) && jumpS < dayS ? latestS - random.below(backMaxS) : latestS;
      world.sweepAtS = latestS - backMaxS;
    },
    /** Lets all events expire. */
    pause: (): void => {
      const { random } = world;
      const lengthS = random.pick([33, 60, 400, 800, 800]) * dayS;
      world.pauses.push(latestS + dayS);
      latestS += latestS + lengthS > endS ? 33 * dayS : lengthS;
      leftS = periodMaxS;
      world.nowS = latestS;
      world.sweepAtS = latestS - backMaxS;
    },
  };
}

/** Batches of a period. */
const periodBatches = 50;

/** Makes requests for a store, which a seed repeats. */
export function createRandomRequests(random: Random) {
  const world = new World(random);
  const clock = createClock(world);
  /** The position of the newest event before the last pause. */
  let expired = 0;
  let batches = 0;

  function begin(): StoreRequest[] {
    return ['platform 0', 'platform 1', 'platform 2'].map((name) => {
      const platform = { name, tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
      return { effect: { kind: 'AddPlatform', by: world.by(), key: world.newKey(), platform } };
    });
  }

  /** Filings alone: one may have a caller that does not exist. Its rollback would use up ids of other tables. */
  function filings(size: number): StoreRequest[] {
    const made = Array.from({ length: size }, () =>
      newRequest(world, ['FileArtwork', 'GetFiling', 'GetProvenance']),
    );
    if (world.oneIn(2)) made.splice(random.below(size), 0, ofNobody(world));
    return made;
  }

  return {
    /** The next requests to submit together. They refer to the replies to all before. */
    nextBatch: (): readonly StoreRequest[] => {
      batches += 1;
      if (batches === 1) return begin();
      clock.tick();
      const size = 1 + random.below(world.oneIn(3) ? 4 : batchMax);
      if (world.oneIn(8)) return filings(size);
      return Array.from(
        { length: size },
        () => (world.oneIn(8) ? repeated(world) : undefined) ?? newRequest(world),
      );
    },
    /** What had expired by this time may have been deleted, Unix seconds. */
    sweptAtS: (): number => world.sweepAtS + backMaxS,
    isPeriodOver: (): boolean => batches % periodBatches === 0,
    /**
     * Lets all events expire, and yields requests to submit one after the other. Each deletes some of the events, so that both engines
     * have deleted all of them in the end.
     */
    pause: function* (): Generator<StoreRequest> {
      yield { effect: { kind: 'ReadMetrics', nowMs: world.nowMs(), year: world.year() } };
      const count = Math.ceil((world.events - expired) / 2) + 5;
      expired = world.events;
      clock.pause();
      yield { effect: { kind: 'AcceptClock', by: world.by() } };
      const [caller] = world.callers;
      if (caller === undefined) return;
      for (let nth = 0; nth < count; nth += 1)
        yield { effect: { kind: 'FileArtwork', artwork: world.artwork(), at: world.time(), by: caller } };
      yield { effect: { kind: 'ReadAllEvents', after: undefined } };
    },
    /** Remembers the reply to a request. */
    learn: ({ effect }: StoreRequest, { outcome }: Executed): void => {
      if (effect !== undefined && outcome.kind === 'DONE') world.learn(effect, outcome.result);
    },
  };
}
