import { retryDelaysS, retryJitter } from '../../domain/webhook.ts';

/** The longest Retry-After that is honored, in seconds: a day. */
const retryAfterMaxS = 86_400;

/** An attempt that failed. */
export interface FailedAttempt {
  /** How often the event was sent, this time included. */
  readonly attempts: number;
  /** When the attempt ended, Unix milliseconds. */
  readonly atMs: number;
  /** Seconds from then, from the Retry-After header; undefined for none. */
  readonly retryAfterS: number | undefined;
}

/**
 * Returns when an event is sent again, Unix milliseconds; null after the last attempt. A Retry-After header can delay the
 * attempt, up to a day, and never makes it earlier. `random` returns a number from 0 to 1.
 */
export function retryAtMs(
  { attempts, atMs, retryAfterS = 0 }: FailedAttempt,
  random: () => number,
): number | null {
  const delayS = retryDelaysS[attempts - 1];
  if (delayS === undefined) return null;
  const jitteredS = delayS * (1 + retryJitter * random());
  return atMs + Math.round(1_000 * Math.max(jitteredS, Math.min(retryAfterS, retryAfterMaxS)));
}

/** Reads a Retry-After header, seconds or an HTTP date, as seconds from `nowMs`; undefined unless it names a later time. */
export function readRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const value = text?.trim() ?? '';
  const seconds = /^\d+$/.test(value) ? Number(value) : (dateMs(value) - nowMs) / 1_000;
  return seconds > 0 ? seconds : undefined;
}

/** Parses an HTTP date as Unix milliseconds; NaN if it is none. The oldest of the three formats does not name GMT. */
function dateMs(text: string): number {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return Number.NaN;
  return Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
}
