import {
  type Column,
  getTableColumns,
  is,
  Param,
  Placeholder,
  type Query,
  type SQL,
  sql,
  type Table,
} from 'drizzle-orm';
import type { Database } from './connection.ts';

/** Values for the placeholders of a query, by their names. */
type Values = Readonly<Record<string, unknown>>;

/** A query of the hot path, prepared once. */
export interface RawStatement<Row> {
  /** Runs it; how many rows it changed. */
  run(values: Values): number;
  /** Its first row, under the column names of the database. */
  get(values: Values): Row | undefined;
  /** Its rows, under the column names of the database. */
  all(values: Values): Row[];
  /** The same, one after the other. */
  iterate(values: Values): Iterable<Row>;
}

/**
 * Prepares a query that drizzle built for the driver itself: what drizzle does at each execution of a query of
 * its own costs more than SQLite takes over these.
 */
export function prepareRaw<Row>(database: Database, query: { toSQL(): Query }): RawStatement<Row> {
  const { sql, params } = query.toSQL();
  const statement = database.$client.prepare<unknown[], Row>(sql);
  const names = params.map(placeholderName);
  const bind = (values: Values) =>
    names.map((name, index) => (name === undefined ? params[index] : values[name]));
  return {
    run: (values) => statement.run(...bind(values)).changes,
    get: (values) => statement.get(...bind(values)),
    all: (values) => statement.all(...bind(values)),
    iterate: (values) => statement.iterate(...bind(values)),
  };
}

/** The name of a placeholder; undefined for a parameter that has its value. */
function placeholderName(param: unknown): string | undefined {
  const inner = is(param, Param) ? param.value : param;
  return is(inner, Placeholder) ? inner.name : undefined;
}

/** Columns under the names that a query gives them, where it is prepared raw. */
export function underTheirNames(columns: Readonly<Record<string, Column>>): Record<string, SQL.Aliased> {
  const named = Object.entries(columns).map(([name, column]) => [name, sql`${column}`.as(name)]);
  return Object.fromEntries(named);
}

/** Equality that SQLite looks up in no index: for what many rows share, beside what few do. */
export const equalsWithoutIndex = (column: Column, value: unknown): SQL => sql`+${column} = ${value}`;

/** A placeholder for each column of a table but these, by the name of the column in the schema. */
export function placeholdersFor<T extends Table>(
  table: T,
  ...without: readonly (keyof T['_']['columns'] & string)[]
): { [Name in keyof T['_']['columns'] & string]: Placeholder } {
  const names = Object.keys(getTableColumns(table)).filter((name) => !without.includes(name));
  const placeholders = names.map((name) => [name, sql.placeholder(name)]);
  return Object.fromEntries(placeholders);
}
