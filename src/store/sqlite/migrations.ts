import type Sqlite from 'better-sqlite3';
import { readPackaged } from '../../packaging/packaged-files.ts';
import { DatabaseError } from './location.ts';

const folder = 'src/store/sqlite/migrations';

/** The migrations in their order, by the names of their files: `0001_append_only`. */
export function migrationNames(): readonly string[] {
  const journal: { readonly entries: readonly { readonly tag: string }[] } = JSON.parse(
    readPackaged(`${folder}/meta/_journal.json`).toString(),
  );
  return journal.entries.map(({ tag }) => tag);
}

/** The schema of a database: the number of its migrations; 0 for an empty file. */
export function schemaOf(client: Sqlite.Database): number {
  return Number(client.pragma('user_version', { simple: true }));
}

/** The migrations that a database lacks. Throws DatabaseError if it has more than this version knows. */
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

/** Applies the missing migrations. The caller begins the transaction. */
export function migrate(client: Sqlite.Database): void {
  const due = migrationsFor(client);
  // Only if it changes: other processes take any write for a change of what they have read.
  if (due.length === 0) return;
  for (const name of due) client.exec(readPackaged(`${folder}/${name}.sql`).toString());
  client.pragma(`user_version = ${schemaOf(client) + due.length}`);
}
