import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import type { StoreOptions } from '../store.ts';
import { DatabaseError, databaseFile } from './location.ts';

/** How many damages are told. */
const damagesMax = 3;

/**
 * Whether the process that served a database before did not close it, as after kill -9 or a loss of power: it may have been
 * told so, and SQLite removes its log when it closes a database.
 */
export function wasCutOff({ dataDir, wasCutOff: isKnown = false }: StoreOptions): boolean {
  const log = statSync(`${databaseFile(dataDir)}-wal`, { throwIfNoEntry: false });
  return isKnown || (log !== undefined && log.size > 0);
}

/** What SQLite finds wrong with a database, in its words and at most so many times. */
export function faultsBySqlite(
  client: Sqlite.Database,
  pragma: 'quick_check' | 'integrity_check',
  max: number,
): string[] {
  const found = client.prepare<[], string>(`PRAGMA ${pragma}(${max})`).pluck().all();
  return found.filter((text) => text !== 'ok');
}

/** What SQLite finds wrong with a database, in its own words; nothing if it is sound. Reads the whole file. */
export function damagesOf(client: Sqlite.Database): readonly string[] {
  const found = faultsBySqlite(client, 'quick_check', damagesMax);
  const lines = found.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('***'));
  return lines.slice(0, damagesMax);
}

/** Reads a whole database, its log included: how long that took, in milliseconds. Throws DatabaseError if it is damaged. */
export function refuseDamaged(client: Sqlite.Database): number {
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
