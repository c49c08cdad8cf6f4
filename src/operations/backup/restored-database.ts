import type { Config } from '../../config/config.ts';
import { createCalendar } from '../../domain/calendar.ts';
import type { RecordedRestoration } from '../../store/postgres/restoration.ts';
import type { PostgresPlace } from '../../store/store.ts';
import { type RestoredBackup, yearsSince } from './years-since.ts';

/** A database on PostgreSQL that was restored. */
export interface RestoredDatabase extends Omit<RestoredBackup, 'filingYears' | 'calendar'> {
  /** From 0 to 1. */
  readonly random: () => number;
}

/**
 * Records that a database was restored from a backup, or to a point in time: all numbers are left out that may have been given
 * out since. Throws BackupError and DatabaseError.
 */
export async function recordRestored(
  { environment, currency, timeZone }: Config,
  place: PostgresPlace,
  { nowMs, numbersAfter, random, ...restored }: RestoredDatabase,
): Promise<RecordedRestoration> {
  const { recordRestorationAt } = await import('../../store/postgres/restoration.ts');
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
