import type Sqlite from 'better-sqlite3';
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
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';

/** The one connection of this process: Drizzle over it, and the connection itself as `$client`. */
export type Database = BetterSQLite3Database & { $client: Sqlite.Database };

/** Values for the placeholders of a query, by their names. */
type Values = Readonly<Record<string, unknown>>;

/**
 * Makes a statement of a query that drizzle built and the driver executes: what drizzle does at each execution of a query costs more
 * than SQLite takes for these. It is prepared at its first use, since a start uses few of all queries. Rows have the column names of
 * the database.
 */
export function prepareRaw<Row>(database: Database, query: { toSQL(): Query }) {
  let prepared: Prepared<Row> | undefined;
  function statement(): Prepared<Row> {
    prepared ??= prepare<Row>(database, query.toSQL());
    return prepared;
  }
  return {
    /** Runs it; how many rows it changed. */
    run: (values: Values): number => {
      const { execute, bind } = statement();
      return execute.run(...bind(values)).changes;
    },
    /** Its first row. */
    get: (values: Values): Row | undefined => {
      const { execute, bind } = statement();
      return execute.get(...bind(values));
    },
    /** Its rows. */
    all: (values: Values): Row[] => {
      const { execute, bind } = statement();
      return execute.all(...bind(values));
    },
    /** The same, one after the other. */
    iterate: (values: Values): Iterable<Row> => {
      const { execute, bind } = statement();
      return execute.iterate(...bind(values));
    },
  };
}

/** A statement of the driver, and how its parameters get their values. */
interface Prepared<Row> {
  readonly execute: Sqlite.Statement<unknown[], Row>;
  readonly bind: (values: Values) => unknown[];
}

function prepare<Row>({ $client: client }: Database, { sql, params }: Query): Prepared<Row> {
  const names = params.map(placeholderName);
  return {
    execute: client.prepare<unknown[], Row>(sql),
    bind: (values) => names.map((name, index) => (name === undefined ? params[index] : values[name])),
  };
}

/** A query whose rows drizzle maps to those of the schema. */
interface MappedQuery<Row> {
  prepare(): { get(values?: Values): Row | undefined; all(values?: Values): Row[] };
}

/** Prepares such a query at its first use. */
export function prepareMapped<Row>(query: MappedQuery<Row>): ReturnType<MappedQuery<Row>['prepare']> {
  let prepared: ReturnType<MappedQuery<Row>['prepare']> | undefined;
  const statement = () => {
    prepared ??= query.prepare();
    return prepared;
  };
  return { get: (values) => statement().get(values), all: (values) => statement().all(values) };
}

/** The name of a placeholder; undefined for a parameter that has its value. */
function placeholderName(param: unknown): string | undefined {
  const inner = is(param, Param) ? param.value : param;
  return is(inner, Placeholder) ? inner.name : undefined;
}

/** Columns under the names of a query that is prepared raw. */
export function underTheirNames(columns: Readonly<Record<string, Column>>): Record<string, SQL.Aliased> {
  const named = Object.entries(columns).map(([name, column]) => [name, sql`${column}`.as(name)]);
  return Object.fromEntries(named);
}

/** The columns of a table for a query that is not built by drizzle, under their names in the schema. */
export const columnsOf = (table: Table): string =>
  Object.entries(getTableColumns(table))
    .map(([name, column]) => `"${column.name}" AS ${name}`)
    .join(', ');

/** Equality for which SQLite uses no index: for a value of many rows, beside a condition that few rows meet. */
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
