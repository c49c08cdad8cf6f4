import { createHash } from 'node:crypto';
import { DatabaseError } from '../engine/failure.ts';
import {
  type PortableReads,
  type PortableRow,
  type PortableTable,
  type PortableWrites,
  portableTables,
} from '../engine/portable-tables.ts';

/** Receives the progress of a step, in rows. It throws to end the work. */
export type Progress = (step: string, done: number, total: number) => void;

/** The rows of a database: how many each table has, and a hash of all. */
export interface Content {
  readonly rows: Readonly<Record<string, number>>;
  readonly sha256: Readonly<Record<string, string>>;
}

/** Copies all tables. Returns what was read. */
export function copyTables(from: PortableReads, to: PortableWrites, progress: Progress): Promise<Content> {
  return read(from, 'copying', progress, (table, rows) => to.write(table, rows));
}

/** Reads all tables. */
export function readTables(from: PortableReads, progress: Progress): Promise<Content> {
  return read(from, 'comparing', progress, async () => {});
}

async function read(
  from: PortableReads,
  step: string,
  progress: Progress,
  use: (table: PortableTable, rows: readonly PortableRow[]) => Promise<void>,
): Promise<Content> {
  const counts = new Map<PortableTable, number>();
  for (const table of portableTables) counts.set(table, await from.count(table));
  const total = counts.values().reduce((sum, count) => sum + count, 0);
  const [rows, sha256]: [Record<string, number>, Record<string, string>] = [{}, {}];
  let done = 0;
  for (const table of portableTables) {
    const hash = createHash('sha256');
    let found = 0;
    for await (const page of from.pages(table)) {
      progress(step, done + found, total);
      for (const row of page) hash.update(`${textOf(table, row)}\n`);
      await use(table, page);
      found += page.length;
    }
    done += found;
    rows[table.name] = found;
    sha256[table.name] = hash.digest('hex');
  }
  return { rows, sha256 };
}

const textOf = ({ columns }: PortableTable, row: PortableRow): string =>
  JSON.stringify(
    columns.map((name) => {
      const value = row[name];
      return value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value;
    }),
  );

/** Throws DatabaseError if two databases differ. */
export function refuseDifference(one: Content, other: Content, next: string): void {
  const table = portableTables.find(({ name }) => one.sha256[name] !== other.sha256[name])?.name;
  if (table !== undefined)
    throw new DatabaseError(
      `the rows of ${table} differ: ${one.rows[table]} in the source, ${other.rows[table]} in the target. ${next}`,
    );
}
