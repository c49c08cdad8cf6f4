import { ApiError } from './reason.ts';

/** Why a filing is not to be dated by the wall clock, which may be wrong: a record that bears a wrong time bears it for ever. */
export interface ClockFault {
  /**
   * - BEHIND: it is behind the newest record, so that times would run backwards.
   * - AHEAD: it is so far ahead of the newest filing that it was probably never set, or set to a wrong year.
   * - SET: it was set forward or back by so much since the process started, as the monotonic clock tells. A machine that was
   *   suspended for so long looks the same.
   */
  readonly kind: 'BEHIND' | 'AHEAD' | 'SET';
  /** Seconds; negative where it was set back. */
  readonly byS: number;
}

/** What the wall clock is held against. */
export interface ClockReading {
  /** What it says, Unix seconds. */
  readonly nowS: number;
  /** The time of the newest leaf of the evidence log, Unix seconds; undefined if there is none. */
  readonly newestS: number | undefined;
  /**
   * The time of the newest filing, or the one that an operator accepted since, Unix seconds; undefined if there is neither.
   * Other records are taken by a wrong clock as well, so the newest leaf does not say that the clock is right.
   */
  readonly datedS: number | undefined;
  /** By how much it was set since the process started, or since an operator accepted it, in seconds; negative for back. */
  readonly setByS: number;
}

const dayS = 86_400;
/** How far the clock may be set while the process runs. */
const setMaxS = dayS;
/** How far it may be ahead of the newest filing: a registry that is idle for longer asks an operator once. */
const aheadMaxS = 366 * dayS;
/** Callers are told to come back after so many seconds at most: an operator may have seen to it by then. */
const retryAfterMaxS = 60;

/** What is wrong with the wall clock; undefined if filings can be dated by it. */
export function findClockFault({
  nowS,
  newestS = nowS,
  datedS = newestS,
  setByS,
}: ClockReading): ClockFault | undefined {
  if (nowS < newestS) return { kind: 'BEHIND', byS: newestS - nowS };
  if (Math.abs(setByS) > setMaxS) return { kind: 'SET', byS: setByS };
  if (nowS - datedS > aheadMaxS) return { kind: 'AHEAD', byS: nowS - datedS };
  return undefined;
}

/** What is wrong, as the part of a sentence that begins with the clock. */
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

/** Seconds, with the days that they are if there are many. */
function durationText(seconds: number): string {
  const days = Math.floor(seconds / dayS);
  return days < 2 ? `${seconds} s` : `${seconds} s (${days} days)`;
}
