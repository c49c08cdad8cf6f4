import { readPackaged } from '../../packaged-files.ts';

const folder = 'src/store/sqlite/migrations';

/** Reads all migrations in their order, each a script as `drizzle-kit generate` wrote it. */
export function readMigrations(): string[] {
  const journal: { readonly entries: readonly { readonly tag: string }[] } = JSON.parse(
    readPackaged(`${folder}/meta/_journal.json`).toString(),
  );
  return journal.entries.map(({ tag }) => readPackaged(`${folder}/${tag}.sql`).toString());
}
