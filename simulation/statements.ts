import Sqlite from 'better-sqlite3';

/** A statement that is about to run, and the connection that runs it. */
export interface Statement {
  readonly source: string;
  readonly client: Sqlite.Database;
}

/** Wraps the run of a statement: `run` runs it. */
export type Around = <T>(statement: Statement, run: () => T) => T;

/** The wrappers by the folder of the database, outermost first. */
const watched = new Map<string, Around[]>();

/**
 * Wraps each statement that connections to the database in a folder prepare from now on. A later wrapper runs inside
 * an earlier one. Returns a function that removes all wrappers of the folder.
 */
export function watchStatements(folder: string, around: Around): () => void {
  watched.set(folder, [...(watched.get(folder) ?? []), around]);
  return () => watched.delete(folder);
}

const prepare = Sqlite.prototype.prepare;

// The SQLite engine of the service has no hook for this, and production code does not need one.
Sqlite.prototype.prepare = function prepared(this: Sqlite.Database, source: string) {
  const statement = prepare.call(this, source);
  const around = [...watched].find(([folder]) => this.name.startsWith(`${folder}/`))?.[1];
  if (around === undefined) return statement;
  for (const verb of ['run', 'get', 'all'] as const) {
    const run = statement[verb].bind(statement) as (...values: unknown[]) => unknown;
    statement[verb] = ((...values: unknown[]) =>
      around.reduceRight<() => unknown>(
        (inner, outer) => () => outer({ source, client: this }, inner),
        () => run(...values),
      )()) as never;
  }
  return statement;
} as typeof prepare;
