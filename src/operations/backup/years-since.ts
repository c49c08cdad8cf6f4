import type { Config } from '../../config/config.ts';
import { type Calendar, createCalendar, yearOf } from '../../domain/calendar.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import type { RecordedRestoration } from '../../store/postgres/restoration.ts';
import type { PostgresPlace } from '../../store/store.ts';
import { BackupError } from './manifest.ts';

/** A backup that is restored. */
export interface RestoredBackup {
  readonly takenAtMs: number;
  /** Years of which it has filings, the first one among them. */
  readonly filingYears: readonly number[];
  readonly nowMs: number;
  /** That of the deployment. */
  readonly calendar: Calendar;
  /** The last filing number that was given out, AS-<year>-<6 digits>; undefined if unknown. */
  readonly numbersAfter: string | undefined;
}

/**
 * Returns the years whose numbers may have been given out since a backup was taken. Throws BackupError if `numbersAfter` is of
 * none of them.
 */
export function yearsSince({
  takenAtMs,
  filingYears,
  nowMs,
  calendar,
  numbersAfter,
}: RestoredBackup): readonly number[] {
  const yearAt = (atMs: number) => yearOf(calendar.timestamp(atMs));
  const [takenIn, restoredIn] = [yearAt(takenAtMs), yearAt(nowMs)];
  // The clock was ahead, and may since have been set to any year of which the backup has filings.
  const wasAhead = takenIn > restoredIn;
  const first = wasAhead ? Math.min(restoredIn, ...filingYears) : takenIn;
  // If the clock was set back, the gap does not get smaller.
  const last = Math.max(takenIn, restoredIn);
  const years = Array.from({ length: last - first + 1 }, (_, place) => first + place);
  if (numbersAfter !== undefined && !years.includes(yearOfFiling(numbersAfter))) {
    throw new BackupError(
      `--numbers-after ${numbersAfter} is of no year since the backup was taken, on ${utcTimestamp(takenAtMs)}: ${years.join(', ')}.`,
    );
  }
  return years;
}

/**
 * Records that a database was restored from a backup, or to a point in time: all numbers are left out that may have been given
 * out since. Throws BackupError and DatabaseError.
 */
export async function recordRestored(
  { environment, currency, timeZone }: Config,
  place: PostgresPlace,
  restored: Omit<RestoredBackup, 'filingYears' | 'calendar'> & { readonly random: () => number },
): Promise<RecordedRestoration> {
  const { recordRestorationAt } = await import('../../store/postgres/restoration.ts');
  const { nowMs, numbersAfter, random } = restored;
  const calendar = createCalendar(timeZone);
  return recordRestorationAt({ place, environment, currency }, ({ firstYear, newestS = 0 }) => {
    // A base backup has all that was stored until its end.
    const takenAtMs = Math.max(restored.takenAtMs, newestS * 1_000);
    const filingYears = firstYear === undefined ? [] : [firstYear];
    return {
      takenAtS: Math.floor(takenAtMs / 1_000),
      restoredAtS: Math.floor(nowMs / 1_000),
      years: yearsSince({ takenAtMs, filingYears, nowMs, calendar, numbersAfter }),
      ...{ numbersAfter, random },
    };
  });
}
