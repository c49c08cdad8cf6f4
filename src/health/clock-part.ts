import { clockDifferenceMaxS } from '../api/credentials.ts';
import type { Clock } from '../domain/clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { nonceRetentionS } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** No process of Artseal ran before, so a clock that says so was never set. */
const firstMs = Date.UTC(2026, 0, 1);
/** How far the clock may be off before calls of platforms whose clocks are right would be refused, in milliseconds. */
const differenceMaxMs = clockDifferenceMaxS * 1_000;
/** After so long with a clock that was doubted it counts as right, in milliseconds: then nonces are forgotten by it. */
const doubtedMs = nonceRetentionS * 1_000;

/**
 * The wall clock can be right:
 *
 * - it has been set at all;
 * - it is not earlier than the newest filing by more than calls may differ from it, when the process starts;
 * - it has not been set, forward or back, by more than that, as the monotonic clock tells. A machine that was suspended
 *   for so long looks the same.
 *
 * The last two are doubts, and end when the clock is right again or 11 minutes later, when it counts as right: it may have
 * been wrong before. `newestMs` is when the newest filing was made, Unix milliseconds; undefined if there is none.
 */
export function createClockPart({ nowMs, monotonicMs }: Clock, newestMs: number | undefined): ReadinessPart {
  const startedAtMs = monotonicMs();
  /** By how much the wall clock is ahead of the monotonic one, and until when that was so, where it counts as right. */
  let trusted: { readonly leadMs: number; readonly atMs: number } | undefined;

  function findFault(): string | undefined {
    const [wallMs, atMs] = [nowMs(), monotonicMs()];
    const leadMs = wallMs - atMs;
    if (wallMs < firstMs) return `the clock has not been set: it says ${utcTimestamp(wallMs)}`;
    if (trusted === undefined) {
      const behindMs = newestMs === undefined ? 0 : newestMs - wallMs;
      if (behindMs > differenceMaxMs && atMs - startedAtMs < doubtedMs) {
        return `the clock says ${utcTimestamp(wallMs)}, ${seconds(behindMs)} before the newest filing`;
      }
    } else {
      const setByMs = leadMs - trusted.leadMs;
      if (Math.abs(setByMs) > differenceMaxMs && atMs - trusted.atMs < doubtedMs) {
        return `the clock was set ${setByMs > 0 ? 'forward' : 'back'} by ${seconds(Math.abs(setByMs))}, to ${utcTimestamp(wallMs)}`;
      }
    }
    trusted = { leadMs, atMs };
    return undefined;
  }

  return { name: 'clock', findFault };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
