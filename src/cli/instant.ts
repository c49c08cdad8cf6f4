import { createCalendar, instantOf } from '../domain/calendar.ts';
import { UsageError, type Words } from './command.ts';

const unitsS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const duration = /^(\d{1,6})([smhd])$/;

/**
 * The Unix seconds that a flag names: a date, which begins where the business is done, a timestamp of RFC 3339, or how
 * long ago (BEFORE) or from now (AFTER) it is; undefined without the flag. Throws UsageError.
 */
export function readInstant(
  words: Words,
  flag: string,
  direction: 'BEFORE' | 'AFTER',
  { timeZone, nowS }: { readonly timeZone: string; readonly nowS: number },
): number | undefined {
  const text = words.text(flag);
  if (text === undefined) return undefined;
  const lengthS = secondsOf(text);
  if (lengthS !== undefined) return direction === 'AFTER' ? nowS + lengthS : nowS - lengthS;
  const atMs = createCalendar(timeZone).startOf(text) ?? instantOf(text);
  if (atMs === undefined) {
    const forms = '2026-11-21, 2026-11-21T09:15:00+08:00, 90m, 12h or 7d';
    throw new UsageError(`takes --${flag} as in ${forms}, not '${text}'`);
  }
  return Math.floor(atMs / 1000);
}

/** The seconds of a duration such as 90m, 12h or 7d; undefined if it is none. */
export function secondsOf(text: string): number | undefined {
  const [, count, unit] = duration.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * unitsS[unit as keyof typeof unitsS];
}

/** How commands show times: RFC 3339 in the business time zone, as calls are answered. */
export function timestampsOf(timeZone: string): (atS: number) => string {
  const calendar = createCalendar(timeZone);
  return (atS) => calendar.timestamp(atS * 1_000);
}
