import { type Calendar, yearOf } from '../../domain/calendar.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { utcTimestamp } from '../../domain/utc.ts';
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
