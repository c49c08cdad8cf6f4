import type { Message } from '@bufbuild/protobuf';
import { ApiError, unavailable } from '../domain/reason.ts';
import { apiErrorData } from '../domain/violation.ts';
import { createKeyedLimit } from '../lib/concurrency.ts';
import type { Execute } from '../store/store.ts';
import type { Call } from './operation.ts';

/** The limits, and the messages of their errors. */
export interface ConcurrencyLimitRules {
  /** For each key. */
  readonly ofEach: number;
  /** Message of RATE_LIMITED, for a key that has reached `ofEach`. */
  readonly tooMany: string;
  /** Unlimited by default. */
  readonly ofAll?: number;
  /** Message of UNAVAILABLE, when `ofAll` is reached. */
  readonly full?: string;
}

/** The functions that run the commands of a call. */
export type Steps = Pick<Call, 'execute' | 'executeNext'>;

/**
 * Runs the work of a call within a limit. Above the limit the store records the error in place of the first command, so that a
 * repetition under an Idempotency-Key still gets the stored result of the first call.
 */
export async function withinLimit<Key, T>(
  limit: ReturnType<typeof createConcurrencyLimit<Key>>,
  key: Key,
  { execute, executeNext }: Steps,
  work: (steps: Steps) => Promise<T>,
): Promise<T> {
  let leave: () => void;
  try {
    leave = limit.enter(key);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const reject = (() => execute({ kind: 'Reject', apiError: apiErrorData(error) })) as Execute;
    const rejectNext = () => Promise.reject(error);
    return await work({ execute: reject, executeNext: rejectNext });
  }
  try {
    return await work({ execute, executeNext });
  } finally {
    leave();
  }
}

/** `Retry-After` of RATE_LIMITED, in seconds. */
const retryAfterS = 1;

/** Limits how much runs at the same time: for each key, so that one cannot use up the others' share, and in all. */
export function createConcurrencyLimit<Key>({
  ofEach,
  tooMany,
  ofAll = Number.POSITIVE_INFINITY,
  full = '',
}: ConcurrencyLimitRules) {
  const limit = createKeyedLimit<Key>({ perKey: ofEach, total: ofAll });
  return {
    /** Counts one more. Call the returned function when it ends. Throws RATE_LIMITED, UNAVAILABLE. */
    enter: (key: Key): (() => void) => {
      if (limit.takenBy(key) >= ofEach) throw new ApiError('RATE_LIMITED', tooMany, { retryAfterS });
      const leave = limit.tryTake(key);
      if (leave === undefined) throw unavailable(full);
      return leave;
    },
    /** How many run now. */
    taken: limit.taken,
  };
}

/** Largest number of open streams: of all tokens together, and of one token. */
export const streamsMax = { all: 200, ofToken: 20 } as const;

/** Limits the open response streams. */
export function createStreamLimit() {
  const limit = createConcurrencyLimit<string>({
    ofAll: streamsMax.all,
    ofEach: streamsMax.ofToken,
    tooMany: `At most ${streamsMax.ofToken} streams at the same time with one token.`,
    full: 'Too many streams are open.',
  });

  async function* limited(
    tokenId: string,
    responses: AsyncGenerator<Message, void>,
  ): AsyncGenerator<Message, void> {
    const leave = limit.enter(tokenId);
    try {
      yield* responses;
    } finally {
      leave();
    }
  }

  return {
    /**
     * Opens a stream. Its first message throws UNAVAILABLE or RATE_LIMITED above the limits. The stream ends when the signal is
     * aborted, even if nobody reads it.
     */
    begin: (tokenId: string, responses: AsyncGenerator<Message, void>, signal: AbortSignal) => {
      const stream = limited(tokenId, responses);
      // A client that is gone reads no further message, so the generator would never finish by itself.
      signal.addEventListener('abort', () => void stream.return(), { once: true });
      return stream;
    },
    /** How many streams are open. */
    open: limit.taken,
  };
}
