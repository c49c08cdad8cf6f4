import type Sqlite from 'better-sqlite3';
import { readPackaged } from '../../packaging/packaged-files.ts';
import { adoptRecords } from './adoption.ts';
import { DatabaseError } from './location.ts';
import { nonceFingerprint, writeEntries } from './nonce-entries.ts';
import { dateTransfersByLeaves } from './transfer-times.ts';

const folder = 'src/store/sqlite/migrations';

/** The migration that makes the evidence log, whose hashes SQL cannot compute. */
const logBegins = '0014_transparency_log';
/** The schema that it leads to. */
export const logSchema = 15;

/** The migration as of which the time of a TRANSFER record is that of its leaf. */
const transfersDated = '0017_ends_by_operator';

/** The migrations in their order, by the names of their files: `0003_escrow_operations`. */
export function migrationNames(): readonly string[] {
  const journal: { readonly entries: readonly { readonly tag: string }[] } = JSON.parse(
    readPackaged(`${folder}/meta/_journal.json`).toString(),
  );
  return journal.entries.map(({ tag }) => tag);
}

/** The schema of a database, or of one that is attached: how many migrations it has seen; 0 for an empty file. */
export function schemaOf(client: Sqlite.Database, attached = 'main'): number {
  return Number(client.pragma(`${attached}.user_version`, { simple: true }));
}

/** The migrations that a database has not seen. Throws DatabaseError if it has seen more than there are. */
export function migrationsFor(client: Sqlite.Database): readonly string[] {
  const names = migrationNames();
  const schema = schemaOf(client);
  if (schema > names.length) {
    throw new DatabaseError(
      `${client.name} was made by a newer artseal (schema ${schema}; this one knows ${names.length}).`,
    );
  }
  return names.slice(schema);
}

/** Applies the migrations that a database has not seen. Inside a transaction of the caller. */
export function migrate(client: Sqlite.Database): void {
  const due = migrationsFor(client);
  // Written only when it changes: other processes take any write for a change of what they have read.
  if (due.length === 0) return;
  client.function('nonce_entry', (name: string, atS: number) =>
    writeEntries([{ fingerprint: nonceFingerprint(name), atS }]),
  );
  for (const name of due) client.exec(readPackaged(`${folder}/${name}.sql`).toString());
  // By the tables of today.
  if (due.includes(logBegins)) adoptRecords(client);
  else if (due.includes(transfersDated)) dateTransfersByLeaves(client);
  client.pragma(`user_version = ${schemaOf(client) + due.length}`);
}
