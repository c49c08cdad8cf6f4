import { clockDifferenceMaxS } from '../api/authentication.ts';
import type { Clock } from '../domain/clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { nonceRetentionS } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** Artseal did not exist before: an earlier clock was never set. */
const firstMs = Date.UTC(2026, 0, 1);
/** The error of the clock at which calls of platforms with right clocks are rejected, in milliseconds. */
const differenceMaxMs = clockDifferenceMaxS * 1_000;
/** How long a suspect clock is distrusted, in milliseconds: as long as nonces are remembered. */
const doubtedMs = nonceRetentionS * 1_000;

/**
 * Fails while the wall clock is wrong:
 *
 * - it was never set;
 * - at the start, it is more than 300 s before the newest filing;
 * - later, it was set by more than 300 s, compared with the monotonic clock. A suspended machine looks the same.
 *
 * The last two end when the clock is right again, or after 11 minutes: the clock may have been wrong before. `newestMs` is
 * the time of the newest filing, Unix milliseconds; undefined if there is none.
 */
export function createClockPart({ nowMs, monotonicMs }: Clock, newestMs: number | undefined): ReadinessPart {
  const startedAtMs = monotonicMs();
  /** The lead of the wall clock over the monotonic one when it was last trusted, and when that was. */
  let trusted: { readonly leadMs: number; readonly atMs: number } | undefined;

  function findFault(): string | undefined {
    const [wallMs, atMs] = [nowMs(), monotonicMs()];
    const leadMs = wallMs - atMs;
    if (wallMs < firstMs) return `the clock has not been set: it says ${utcTimestamp(wallMs)}`;
    if (trusted === undefined) {
      const lateMs = newestMs === undefined ? 0 : newestMs - wallMs;
      if (lateMs > differenceMaxMs && atMs - startedAtMs < doubtedMs) {
        return `the clock says ${utcTimestamp(wallMs)}, ${seconds(lateMs)} before the newest filing`;
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
