import { ApiError } from './reason.ts';

/** Why the wall clock may be wrong. Nothing is filed then, because the time of a record can never be corrected. */
export interface ClockFault {
  /**
   * - BEHIND: it is more than `behindMaxS` before the newest record, so times would run backwards.
   * - AHEAD: it is so far ahead of the newest filing that it is probably not set, or set to a wrong year.
   * - SET: it was set since the process started, compared with the monotonic clock. A machine that was suspended looks the
   *   same.
   */
  readonly kind: 'BEHIND' | 'AHEAD' | 'SET';
  /** Seconds; negative if it was set back. */
  readonly byS: number;
}

/** The wall clock and the times that it is checked against. */
export interface ClockReading {
  /** The wall clock, Unix seconds. */
  readonly nowS: number;
  /** The time of the newest leaf of the evidence log, Unix seconds; undefined if there is none. */
  readonly newestS: number | undefined;
  /**
   * The time of the newest filing, or the one that an operator accepted since, Unix seconds; undefined if there is neither.
   * The newest leaf does not prove that the clock is right: other records are accepted with a wrong clock.
   */
  readonly datedS: number | undefined;
  /** By how much it was set since the process started, or since an operator accepted it, in seconds; negative for back. */
  readonly setByS: number;
}

const dayS = 86_400;
/**
 * How far the clock may be before the newest record, in seconds. A new record then has the time of the newest one. Each instance has
 * its own clock, and NTP keeps these clocks closer than this.
 */
export const behindMaxS = 5;
/** How far the clock may be set while the process runs, and how far from a clock that an operator accepts, in seconds. */
export const setMaxS = dayS;
/** How far it may be ahead of the newest filing: a registry that is idle for longer asks an operator once. */
const aheadMaxS = 366 * dayS;
/**
 * How far the clock of an instance may be from that of the database server, in milliseconds. Two instances that are both this near to
 * it differ by less than `behindMaxS`.
 */
const apartMaxMs = 2_000;
/** The longest Retry-After, in seconds: an operator may have fixed the clock by then. */
const retryAfterMaxS = 60;

/** Returns the fault of the wall clock; undefined if filings can be dated by it. */
export function findClockFault({
  nowS,
  newestS = nowS,
  datedS = newestS,
  setByS,
}: ClockReading): ClockFault | undefined {
  if (newestS - nowS > behindMaxS) return { kind: 'BEHIND', byS: newestS - nowS };
  if (Math.abs(setByS) > setMaxS) return { kind: 'SET', byS: setByS };
  if (nowS - datedS > aheadMaxS) return { kind: 'AHEAD', byS: nowS - datedS };
  return undefined;
}

/** Describes a fault, as a clause that begins with "the clock". */
export function clockFaultText({ kind, byS }: ClockFault): string {
  switch (kind) {
    case 'BEHIND':
      return `the clock is ${durationText(byS)} behind the newest record`;
    case 'AHEAD':
      return `the clock is ${durationText(byS)} ahead of the newest filing`;
    case 'SET':
      return (
        `the clock was set ${byS > 0 ? 'forward' : 'back'} by ${durationText(Math.abs(byS))} since the service started, ` +
        'or the machine was suspended for as long'
      );
  }
}

/** The error of a filing that would be dated by a clock with a fault. */
export function clockError(fault: ClockFault): ApiError {
  const wayOut = fault.kind === 'BEHIND' ? 'until it has caught up' : 'until it is right again';
  const message =
    `Nothing can be filed now: ${clockFaultText(fault)}. Nothing was stored, and nothing is filed ${wayOut}, ` +
    'or until an operator who knows it to be right runs: artseal clock accept';
  const retryAfterS = Math.min(fault.kind === 'BEHIND' ? fault.byS : retryAfterMaxS, retryAfterMaxS);
  return new ApiError('UNAVAILABLE', message, { retryAfterS });
}

/** Writes a duration as seconds, and days if there are two or more. */
export function durationText(seconds: number): string {
  const days = Math.floor(seconds / dayS);
  return days < 2 ? `${seconds} s` : `${seconds} s (${days} days)`;
}

/** The warning about a database server whose clock is so far ahead of that of this machine; undefined if it is near enough. */
export function clocksApartText(aheadMs: number): string | undefined {
  if (Math.abs(aheadMs) <= apartMaxMs) return undefined;
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  const which = aheadMs > 0 ? 'ahead of' : 'behind';
  return (
    `the clock of PostgreSQL is ${seconds} s ${which} that of this machine: have NTP keep both, because an instance ` +
    `whose clock is more than ${behindMaxS} s behind that of another rejects filings`
  );
}
