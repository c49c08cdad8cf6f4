import type { Queries } from './leaf-rows.ts';

/**
 * Sends rows to a table in one query; none if there are no rows. Members are named as in the schema. `more` follows the SELECT, such
 * as ON CONFLICT, and is the same for all queries of a table.
 */
export function insertRows(
  queries: Queries,
  table: string,
  rows: readonly object[],
  more = '',
): readonly Promise<unknown>[] {
  const [first] = rows;
  if (first === undefined) return [];
  const columns = Object.keys(first)
    .map((name) => `"${columnOf(name)}"`)
    .join(', ');
  const text = `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1) ${more}`;
  return [queries.query({ name: `insert ${table}`, text, values: [JSON.stringify(rows.map(toJson))] })];
}

const toJson = (row: object) =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [columnOf(name), jsonOf(value)]));

/** `filedAtS` is filed_at_s. */
const columnOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A value as PostgreSQL reads it: bytes in hex, and an amount, which is at most 2^53-1, as a number. */
function jsonOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return typeof value === 'bigint' ? Number(value) : value;
}
