import { hash } from 'node:crypto';
import { type DescMethodUnary, toBinary } from '@bufbuild/protobuf';
import { ApiError } from '../domain/reason.ts';
import type { IdempotencyClaim } from '../store/store.ts';
import type { Reading } from './incoming-call.ts';
import { operationName } from './operation.ts';

/** `Retry-After` while the first call with a key is running, in seconds. */
const inProgressRetryAfterS = 1;

const keyPattern = /^[\x21-\x7e]{1,255}$/;
const quoted = /^"(.*)"$/;

/** Reads the Idempotency-Key from all values sent; undefined if there are none. Throws IDEMPOTENCY_KEY_INVALID. */
export function readIdempotencyKey(sentKeys: readonly string[]): string | undefined {
  if (sentKeys.length === 0) return undefined;
  const [sent = '', ...more] = sentKeys;
  const key = quoted.exec(sent)?.[1] ?? sent;
  if (more.length === 0 && keyPattern.test(key)) return key;
  throw new ApiError(
    'IDEMPOTENCY_KEY_INVALID',
    'The header Idempotency-Key must be 1 to 255 visible ASCII characters, once.',
  );
}

/**
 * The SHA-256 digest by which a key recognizes its request: of the operation, the message and its violations. It is the same
 * over both APIs.
 */
export function fingerprintOf(method: DescMethodUnary, reading: Reading | ApiError): Uint8Array {
  const read =
    reading instanceof ApiError
      ? [Buffer.from(reading.message)]
      : [toBinary(method.input, reading.message), Buffer.from(JSON.stringify(reading.violations))];
  return hash('sha256', Buffer.concat([Buffer.from(`${operationName(method)}\0`), ...read]), 'buffer');
}

/** The keys of calls that are running. They are in memory only, because a call ends with its process. */
export interface RunningKeys {
  /**
   * Begins a call with a key; the returned function ends it. While another call with the key runs, throws
   * IDEMPOTENCY_IN_PROGRESS for the same request and IDEMPOTENCY_KEY_REUSED for a different one.
   */
  begin(claim: IdempotencyClaim): () => void;
}

export function createRunningKeys(): RunningKeys {
  const running = new Map<string, Uint8Array>();
  return {
    begin: ({ callerId, key, fingerprint }) => {
      const name = `${callerId} ${key}`;
      const other = running.get(name);
      if (other !== undefined) throw Buffer.compare(other, fingerprint) === 0 ? inProgress() : keyReused();
      running.set(name, fingerprint);
      return () => {
        running.delete(name);
      };
    },
  };
}

/** The error for a key that was used with a different request. */
export function keyReused(): ApiError {
  return new ApiError('IDEMPOTENCY_KEY_REUSED', 'The Idempotency-Key was used for another request before.');
}

function inProgress(): ApiError {
  const hints = { retryAfterS: inProgressRetryAfterS };
  return new ApiError(
    'IDEMPOTENCY_IN_PROGRESS',
    'The first call with this Idempotency-Key is under way.',
    hints,
  );
}
