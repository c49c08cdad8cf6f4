import { clockDifferenceMaxS } from '../api/authentication.ts';
import type { Clock } from '../domain/clock.ts';
import {
  type ClockFault,
  clockFaultText,
  clocksApartText,
  findClockFault,
  setMaxS,
} from '../domain/filing-clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Logger } from '../lib/log.ts';
import { every } from '../lib/timing.ts';
import type { Execute } from '../store/store.ts';
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

interface FilingClockParts {
  readonly execute: Execute;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often the clock is checked for filings, in milliseconds. */
const checkEveryMs = 1_000;

/**
 * Watches whether the wall clock can date filings. It is not part of readiness, since nothing else depends on it. Checks once
 * a second; resolves after the first check. Logs an error when filings begin to be rejected, and a line when they are accepted
 * again. A clock that an operator accepts is trusted from then on, also at other instances whose clock is within a day of it. Warns while
 * the clock is far from that of the database server.
 */
export async function watchFilingClock({ execute, clock, log }: FilingClockParts) {
  const lead = () => clock.nowMs() - clock.monotonicMs();
  let trustedLeadMs = lead();
  /** The number of the last acceptance; undefined before the first check. */
  let accepted: number | undefined;
  let fault: ClockFault | undefined;
  let isApart = false;

  const setByS = () => Math.trunc((lead() - trustedLeadMs) / 1_000);

  async function check(): Promise<void> {
    const sentMs = clock.nowMs();
    const state = await execute({ kind: 'ReadLogClock' });
    reportApart(state.databaseMs, sentMs);
    // Read after the store, so that this instance has dated nothing later.
    const nowS = Math.floor(clock.nowMs() / 1_000);
    const { sequence: last, timeS: acceptedS } = state.accepted ?? { sequence: 0, timeS: nowS };
    const isNew = accepted !== undefined && last > accepted;
    // The accepted clock of another instance does not vouch for this one.
    if (isNew && Math.abs(nowS - acceptedS) <= setMaxS) trustedLeadMs = lead();
    accepted = last;
    const { newestS, datedS } = state;
    report(findClockFault({ nowS, newestS, datedS, setByS: setByS() }), nowS);
  }

  /** Reports the least difference that the clocks can have, however long the store took. */
  function reportApart(databaseMs: number | undefined, sentMs: number): void {
    if (databaseMs === undefined) return;
    const aheadMs = Math.max(databaseMs - clock.nowMs(), Math.min(databaseMs - sentMs, 0));
    const reason = clocksApartText(aheadMs);
    if (reason !== undefined && !isApart) log.warn({ reason }, 'the clock differs from that of the database');
    if (reason === undefined && isApart) log.info('the clock agrees with that of the database again');
    isApart = reason !== undefined;
  }

  function report(found: ClockFault | undefined, nowS: number): void {
    if (found !== undefined && found.kind !== fault?.kind)
      log.error(
        { fault: clockFaultText(found), clock: utcTimestamp(nowS * 1_000) },
        'filings are rejected until the clock is right: correct it, or accept it with artseal clock accept',
      );
    if (found === undefined && fault !== undefined)
      log.info('the clock is right again: filings are accepted');
    fault = found;
  }

  // A store that cannot be read is reported elsewhere.
  const loop = every(
    clock,
    () => checkEveryMs,
    () => check().catch(() => {}),
  );
  await loop.start();
  return {
    /** Seconds by which the clock was set since this watch began or an operator accepted it; negative for back. */
    setByS,
    /** The fault of the clock, at most a second old. */
    fault: () => fault,
    /** Reads now whether an operator accepted the clock. */
    refresh: check,
    stop: () => void loop.stop(),
  };
}
