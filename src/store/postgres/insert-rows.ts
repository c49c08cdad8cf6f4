import { columnOf } from '../engine/column-name.ts';
import type { Queries } from './leaf-rows.ts';

/**
 * Sends rows to a table in one query; none if there are no rows. Members are named as in the schema. `more` follows the SELECT, such
 * as ON CONFLICT, and `columnValue` makes the value of a column; they are the same for all queries of a table.
 */
export function insertRows(
  queries: Queries,
  table: string,
  rows: readonly object[],
  more = '',
  columnValue: (column: string) => string = quoted,
): readonly Promise<unknown>[] {
  const [first] = rows;
  if (first === undefined) return [];
  const names = Object.keys(first).map(columnOf);
  const [columns, values] = [names.map(quoted).join(', '), names.map(columnValue).join(', ')];
  const text = `INSERT INTO ${table} (${columns}) SELECT ${values} FROM json_populate_recordset(NULL::${table}, $1) ${more}`;
  return [queries.query({ name: `insert ${table}`, text, values: [JSON.stringify(rows.map(toJson))] })];
}

const quoted = (column: string): string => `"${column}"`;

function toJson(row: object): object {
  const members: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(row)) {
    // A column without a value is null.
    if (value !== null && value !== undefined) members[columnOf(name)] = jsonOf(value);
  }
  return members;
}

/** A value as PostgreSQL reads it: bytes in hex, and an amount, which is at most 2^53-1, as a number. */
function jsonOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return typeof value === 'bigint' ? Number(value) : value;
}
