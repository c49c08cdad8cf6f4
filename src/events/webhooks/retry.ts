import { retryDelaysS, retryJitter } from '../../domain/webhook.ts';

/** How much later than planned an endpoint may ask to be tried again, at most, in seconds: a day. */
const retryAfterMaxS = 86_400;

/** An attempt that failed. */
export interface FailedAttempt {
  /** How often the event was sent, this time included. */
  readonly attempts: number;
  /** When it ended, Unix milliseconds. */
  readonly atMs: number;
  /** How many seconds from then the endpoint wants to be left alone; undefined if it did not say. */
  readonly retryAfterS: number | undefined;
}

/**
 * When an event is sent again, Unix milliseconds: at its time of the schedule, or later, up to a day, where the endpoint asks for it.
 * Null if it is given up. `random` gives a number from 0 to 1.
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

/**
 * Reads the header Retry-After, seconds or one of the dates of HTTP, as seconds from `nowMs`; undefined where it says nothing of
 * the future.
 */
export function readRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  const word = text?.trim() ?? '';
  const seconds = /^\d+$/.test(word) ? Number(word) : (dateMs(word) - nowMs) / 1_000;
  return seconds > 0 ? seconds : undefined;
}

/** A date of HTTP as Unix milliseconds, NaN if it is none. The oldest form of the three does not say that it is GMT. */
function dateMs(word: string): number {
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(word)) return Number.NaN;
  return Date.parse(word.endsWith(' GMT') ? word : `${word} GMT`);
}
