import { ApiError, unavailable } from '../domain/reason.ts';
import { apiErrorData } from '../domain/violation.ts';
import type { Execute } from '../store/store.ts';
import type { Call } from './operation.ts';

/** How many places there are, and what is said where there is none. */
export interface ConcurrencyLimitRules {
  /** For all together. */
  readonly ofAll: number;
  /** For each of those who share them. */
  readonly ofEach: number;
  /** To one who has that many. */
  readonly tooMany: string;
  /** To anybody when all are taken. */
  readonly full: string;
}

/** ConcurrencyLimit that some share, so that nobody takes those of the others. */
export interface ConcurrencyLimit<Key> {
  /** Takes one; what it answers gives it back, and is called once. Throws RATE_LIMITED to one who has enough, and UNAVAILABLE. */
  enter(key: Key): () => void;
  /** How many are taken. */
  taken(): number;
}

/** What carries out the commands of a call. */
export type Steps = Pick<Call, 'execute' | 'executeNext'>;

/**
 * Has a call work in a place. Without one, the store refuses the first command in its stead, so that a repetition under an
 * Idempotency-Key is given what was answered before.
 */
export async function inPlace<Key, T>(
  places: ConcurrencyLimit<Key>,
  key: Key,
  { execute, executeNext }: Steps,
  work: (steps: Steps) => Promise<T>,
): Promise<T> {
  let leave: () => void;
  try {
    leave = places.enter(key);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const refuse = (() => execute({ kind: 'Refuse', apiError: apiErrorData(error) })) as Execute;
    const refuseNext = () => Promise.reject(error);
    return await work({ execute: refuse, executeNext: refuseNext });
  }
  try {
    return await work({ execute, executeNext });
  } finally {
    leave();
  }
}

/** How long one who has enough waits before it tries again, in seconds. */
const retryAfterS = 1;

export function createConcurrencyLimit<Key>({
  ofAll,
  ofEach,
  tooMany,
  full,
}: ConcurrencyLimitRules): ConcurrencyLimit<Key> {
  const takenBy = new Map<Key, number>();
  let taken = 0;

  function leave(key: Key): void {
    taken -= 1;
    const left = (takenBy.get(key) ?? 0) - 1;
    if (left > 0) takenBy.set(key, left);
    else takenBy.delete(key);
  }

  return {
    enter: (key) => {
      const own = takenBy.get(key) ?? 0;
      if (own >= ofEach) throw new ApiError('RATE_LIMITED', tooMany, { retryAfterS });
      if (taken >= ofAll) throw unavailable(full);
      taken += 1;
      takenBy.set(key, own + 1);
      return () => leave(key);
    },
    taken: () => taken,
  };
}
