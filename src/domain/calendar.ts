import type { Violation } from './violation.ts';

/** A month of the business calendar. */
export interface Month {
  /** YYYY-MM. */
  readonly name: string;
  /** Unix milliseconds of its end, exclusive. */
  readonly endsAtMs: number;
  /** Its length in seconds; not every month of a zone is a whole number of 24-hour days. */
  readonly lengthS: number;
}

/** Dates and times in the business time zone. */
export interface Calendar {
  /** RFC 3339, whole seconds, numeric offset, never Z. */
  timestamp(atMs: number): string;
  /** YYYY-MM-DD. */
  date(atMs: number): string;
  month(atMs: number): Month;
  /** Unix milliseconds of the end of the year, exclusive. */
  yearEndsAtMs(atMs: number): number;
  /** The Unix milliseconds at which a date, YYYY-MM-DD, begins; undefined for anything else. */
  startOf(date: string): number | undefined;
}

/** Checks the name of a month. */
export function checkMonth(name: string): Violation[] {
  return /^\d{4}-(0[1-9]|1[0-2])$/.test(name) ? [] : [{ field: 'month', rule: 'must be YYYY-MM' }];
}

/** Checks the field `since` of a list. It may be empty. */
export function checkSince(since: string): Violation[] {
  if (since === '' || instantOf(since) !== undefined) return [];
  return [{ field: 'since', rule: 'must be RFC 3339, as in 2026-11-21T09:15:00+08:00, or empty' }];
}

/** The year that a timestamp or a date of the calendar begins with. */
export function yearOf(timestamp: string): number {
  return Number(timestamp.slice(0, 4));
}

/** The timestamp of so many seconds later, with the same offset. */
export function laterTimestamp(timestamp: string, seconds: number): string {
  const timeZone = timestamp.slice(-'+00:00'.length);
  return Temporal.Instant.from(timestamp).add({ seconds }).toString({ timeZone, smallestUnit: 'second' });
}

/** The date, YYYY-MM-DD, that a timestamp of the calendar begins with. */
export function dateOf(timestamp: string): string {
  return timestamp.slice(0, 10);
}

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** The Unix milliseconds of an RFC 3339 timestamp; undefined for anything else. */
export function instantOf(text: string): number | undefined {
  if (!rfc3339.test(text)) return undefined;
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    return undefined;
  }
}

/** The calendar of an IANA time zone; throws RangeError for an unknown name. */
export function createCalendar(timeZone: string): Calendar {
  const zoned = (atMs: number) => Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(timeZone);
  zoned(0);

  // Calls of the same second and month are the rule, and computing a zone's offset is dear.
  let second = { s: Number.NaN, timestamp: '' };
  const monthAt = createPeriods({ day: 1 }, { months: 1 });
  const yearAt = createPeriods({ month: 1, day: 1 }, { years: 1 });

  /** Returns a function that finds the period of an instant. `first` has the date fields of the first day of each period. */
  function createPeriods(
    first: { month?: number; day: number },
    length: { months?: number; years?: number },
  ) {
    let period = { name: '', startsAtMs: 0, endsAtMs: 0, lengthS: 0 };
    return (atMs: number) => {
      if (atMs < period.startsAtMs || atMs >= period.endsAtMs) {
        const start = zoned(atMs).with(first).startOfDay();
        const startsAtMs = start.epochMilliseconds;
        const endsAtMs = start.add(length).startOfDay().epochMilliseconds;
        const name = start.toPlainDate().toPlainYearMonth().toString();
        period = { name, startsAtMs, endsAtMs, lengthS: (endsAtMs - startsAtMs) / 1000 };
      }
      return period;
    };
  }

  function timestamp(atMs: number): string {
    const s = Math.floor(atMs / 1000);
    if (s !== second.s) {
      second = { s, timestamp: zoned(s * 1000).toString({ smallestUnit: 'second', timeZoneName: 'never' }) };
    }
    return second.timestamp;
  }

  return {
    timestamp,
    date: (atMs) => dateOf(timestamp(atMs)),
    month: monthAt,
    yearEndsAtMs: (atMs) => yearAt(atMs).endsAtMs,
    startOf: (date) => {
      if (!/^\d{4}-\d\d-\d\d$/.test(date)) return undefined;
      try {
        return Temporal.PlainDate.from(date).toZonedDateTime(timeZone).epochMilliseconds;
      } catch {
        return undefined;
      }
    },
  };
}
