import { hash } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/reason.ts';
import type { CallerRef, IdempotencyStore, KeptAnswer } from '../store/store.ts';
import type { SignedRequest } from './admission.ts';

export type { KeptAnswer };

/** Gives a repeated call the answer of the first, if the caller asked for it with an Idempotency-Key. */
export interface Idempotency {
  /**
   * Claims the key of a call. Throws IDEMPOTENCY_KEY_INVALID; IDEMPOTENCY_KEY_REUSED if it stood for another
   * request; IDEMPOTENCY_IN_PROGRESS if the first call is still under way.
   */
  claim(caller: CallerRef, sentKeys: readonly string[], request: SignedRequest): Promise<IdempotentCall>;
}

/** A call that may be the repetition of another. */
export interface IdempotentCall {
  /** The key that it claimed, if it did. */
  readonly key: string | undefined;
  /** The answer of the first call; undefined if there is none yet. */
  readonly replay: KeptAnswer | undefined;
  /**
   * Ends a first call: keeps the answer of its operation for repetitions, unless they could do better; without one,
   * lets the key be used again.
   */
  settle(answer: KeptAnswer | undefined): Promise<void>;
}

/** How long a caller waits before it asks again for a call that is under way, in seconds. */
const inProgressRetryAfterS = 1;

/** Statuses of answers that a repetition could do better than, beside those of the service's own faults. */
const neverKept: readonly number[] = [401, 403, 413, 415, 429];
const isKept = ({ status }: KeptAnswer) => status < 500 && !neverKept.includes(status);

const keyPattern = /^[\x21-\x7e]{1,255}$/;
const quoted = /^"(.*)"$/;
const nothingToSettle = async () => {};
const unkeyed: IdempotentCall = { key: undefined, replay: undefined, settle: nothingToSettle };

/** Idempotency for the callers of the store. */
export function createIdempotency(store: IdempotencyStore, clock: Clock): Idempotency {
  // Here and not in the store: a call ends with its process, or when the store fails.
  const running = new Set<string>();

  return {
    claim: async ({ callerId }, sentKeys, request) => {
      if (sentKeys.length === 0) return unkeyed;
      const key = readKey(sentKeys);
      const nowS = Math.floor(clock.nowMs() / 1000);
      const standing = await store.claim({ callerId, key, fingerprint: fingerprintOf(request), nowS });
      switch (standing.kind) {
        case 'ANSWERED':
          return { key: undefined, replay: standing.answer, settle: nothingToSettle };
        case 'REUSED':
          throw new Refusal(
            'IDEMPOTENCY_KEY_REUSED',
            'The Idempotency-Key was used for another request before.',
          );
        case 'CLAIMED':
          return begin(callerId, key);
      }
    },
  };

  function begin(callerId: number, key: string): IdempotentCall {
    const name = `${callerId} ${key}`;
    if (running.has(name)) {
      const hints = { retryAfterS: inProgressRetryAfterS };
      throw new Refusal(
        'IDEMPOTENCY_IN_PROGRESS',
        'The first call with this Idempotency-Key is under way.',
        hints,
      );
    }
    running.add(name);
    return {
      key,
      replay: undefined,
      settle: async (answer) => {
        try {
          await (answer && isKept(answer) ? store.keep(callerId, key, answer) : store.release(callerId, key));
        } finally {
          running.delete(name);
        }
      },
    };
  }
}

function readKey(sentKeys: readonly string[]): string {
  const [sent = '', ...more] = sentKeys;
  const key = quoted.exec(sent)?.[1] ?? sent;
  if (more.length === 0 && keyPattern.test(key)) return key;
  throw new Refusal(
    'IDEMPOTENCY_KEY_INVALID',
    'The header Idempotency-Key must be 1 to 255 visible ASCII characters, once.',
  );
}

function fingerprintOf({ method, target, body }: SignedRequest): Uint8Array {
  return hash('sha256', `${method} ${target} ${hash('sha256', body, 'hex')}`, 'buffer');
}
