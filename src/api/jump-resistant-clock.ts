import type { Clock } from '../domain/clock.ts';
import { nonceRetentionS } from '../store/store.ts';

/** How far the wall clock may run ahead of the monotonic clock before that counts as a jump, in milliseconds. */
const gainMaxMs = 1_000;

/**
 * Returns the wall clock in Unix milliseconds, but ignores a forward jump for as long as nonces are kept. A clock that was set
 * ahead may be set back, and then the nonces and idempotency keys from before are still needed. Starts in 1970, because a new
 * process does not know whether the clock has jumped.
 */
export function createJumpResistantClock({ nowMs, monotonicMs }: Clock): () => number {
  let leadMs = 0;
  let agreedAtMs = monotonicMs();
  return () => {
    const atMs = monotonicMs();
    const wallLeadMs = nowMs() - atMs;
    if (wallLeadMs <= leadMs + gainMaxMs || atMs - agreedAtMs >= nonceRetentionS * 1000) {
      leadMs = wallLeadMs;
      agreedAtMs = atMs;
    }
    return atMs + leadMs;
  };
}
