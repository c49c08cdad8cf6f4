import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type { StoreOptions } from '../store.ts';
import { DatabaseError, databaseFile } from './location.ts';

/** Damages that a message lists, at most. */
const damagesMax = 3;

/**
 * Whether the last process that served a database did not close it, as after kill -9 or a power failure. SQLite removes the log when
 * it closes a database.
 */
export function wasCutOff({ dataDir, wasCutOff: isKnown = false }: StoreOptions): boolean {
  const log = statSync(`${databaseFile(dataDir)}-wal`, { throwIfNoEntry: false });
  return isKnown || (log !== undefined && log.size > 0);
}

/** The faults that SQLite finds in a database, at most `max`. */
export function faultsBySqlite(
  client: Sqlite.Database,
  pragma: 'quick_check' | 'integrity_check',
  max: number,
): string[] {
  const found = client.prepare<[], string>(`PRAGMA ${pragma}(${max})`).pluck().all();
  return found.filter((text) => text !== 'ok');
}

/** The faults that SQLite finds in a database, in its own words. Reads the whole file. */
export function damagesOf(client: Sqlite.Database): readonly string[] {
  const found = faultsBySqlite(client, 'quick_check', damagesMax);
  const lines = found.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('***'));
  return lines.slice(0, damagesMax);
}

/** Reads a whole database and its log. Returns how long that took, in milliseconds. Throws DatabaseError if it is damaged. */
export function rejectDamaged(client: Sqlite.Database): number {
  const taken = createDistribution(durationBoundsS);
  const damages = taken.time(() => damagesOf(client));
  if (damages.length > 0) throw damaged(client.name, damages.join('; '));
  return Math.round(taken.data().sum * 1_000);
}

/** The error of a database that SQLite finds damaged. */
export function damaged(file: string, what: string): DatabaseError {
  return new DatabaseError(
    `${file} is damaged: ${what}. Change nothing in its folder, and restore the last backup: artseal restore, ` +
      'as docs/operate/incidents/database-damaged.md says.',
  );
}
