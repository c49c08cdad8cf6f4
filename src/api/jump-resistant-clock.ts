import type { Clock } from '../domain/clock.ts';
import { nonceRetentionS } from '../store/store.ts';

/** How much the wall clock may gain on the monotonic one from call to call without being set, in milliseconds. */
const gainMaxMs = 1_000;

/**
 * The wall clock without its forward steps: one is ignored for as long as nonces are remembered, since a clock that was
 * set ahead may be set back, and then the nonces and idempotency keys of before are still needed. A process that starts
 * does not know whether there was one, and begins in 1970.
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
