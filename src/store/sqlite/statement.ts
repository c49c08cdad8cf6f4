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

/** The row of a query: as the driver returns it, so name the columns with `named`. */
type RowOf<Query> = Query extends { prepare(): { all(): (infer Row)[] } } ? Row : never;

/** A query that drizzle built and the driver executes. */
export interface Statement<Row> {
  /** Runs it; how many rows it changed. */
  run(values?: Values): number;
  /** Its first row. */
  get(values?: Values): Row | undefined;
  /** Its rows. */
  all(values?: Values): Row[];
  /** The same, one after the other. */
  iterate(values?: Values): Iterable<Row>;
}

/**
 * Makes statements of queries that drizzle built and the driver executes: what drizzle does at each execution of a query costs more
 * than SQLite takes for these. Each is prepared at its first use, since a start uses few of all queries.
 */
export function prepare<Queries extends Readonly<Record<string, { toSQL(): Query }>>>(
  { $client: client }: Database,
  queries: Queries,
): { readonly [Name in keyof Queries]: Statement<RowOf<Queries[Name]>> } {
  const statements = Object.entries(queries).map(([name, query]) => [name, statementOf(client, query)]);
  return Object.fromEntries(statements);
}

function statementOf(client: Sqlite.Database, query: { toSQL(): Query }): Statement<unknown> {
  let prepared: Prepared | undefined;
  function statement(): Prepared {
    prepared ??= prepareQuery(client, query.toSQL());
    return prepared;
  }
  return {
    run: (values = {}) => {
      const { execute, bind } = statement();
      return execute.run(...bind(values)).changes;
    },
    get: (values = {}) => {
      const { execute, bind } = statement();
      return execute.get(...bind(values));
    },
    all: (values = {}) => {
      const { execute, bind } = statement();
      return execute.all(...bind(values));
    },
    iterate: (values = {}) => {
      const { execute, bind } = statement();
      return execute.iterate(...bind(values));
    },
  };
}

/** A statement of the driver, and how its parameters get their values. */
interface Prepared {
  readonly execute: Sqlite.Statement<unknown[], unknown>;
  readonly bind: (values: Values) => unknown[];
}

function prepareQuery(client: Sqlite.Database, { sql, params }: Query): Prepared {
  const names = params.map(placeholderName);
  const execute = client.prepare<unknown[], unknown>(sql);
  if (execute.reader && execute.columns().some(({ name }) => name.includes('_')))
    throw new Error(`A column has no name of its own, which named() gives: ${sql}`);
  return {
    execute,
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

/** What a prepared query can select: a column or an expression. */
type Selected = Column | SQL;

/** The value of a column as the driver returns it. */
type Driven<Of extends Selected> =
  Of extends SQL<infer Value>
    ? Value
    : Of extends Column
      ? DrivenBy<Of['_']> | (Of['_']['notNull'] extends true ? never : null)
      : never;
type DrivenBy<Of extends Column['_']> = Of['dataType'] extends 'custom' | 'boolean'
  ? Of['driverParam']
  : Of['data'];

/** Selects columns and expressions under these names, for `prepare`. */
export function named<Columns extends Readonly<Record<string, Selected>>>(columns: Columns) {
  const entries = Object.entries(columns).map(([name, column]) => [name, sql`${column}`.as(name)]);
  return Object.fromEntries(entries) as { [Name in keyof Columns]: SQL.Aliased<Driven<Columns[Name]>> };
}

/** Equality for which SQLite uses no index: for a value of many rows, beside a condition that few rows meet. */
export const equalsWithoutIndex = (column: Column, value: unknown): SQL => sql`+${column} = ${value}`;

/** A placeholder for each of these names, for `set`. */
export function placeholders<Name extends string>(...names: readonly Name[]): { [Each in Name]: SQL } {
  return Object.fromEntries(names.map((name) => [name, sql`${sql.placeholder(name)}`])) as {
    [Each in Name]: SQL;
  };
}

/** A placeholder for each column of a table but these, by the name of the column in the schema. */
export function placeholdersFor<T extends Table>(
  table: T,
  ...without: readonly (keyof T['_']['columns'] & string)[]
): { [Name in keyof T['_']['columns'] & string]: Placeholder } {
  const names = Object.keys(getTableColumns(table)).filter((name) => !without.includes(name));
  const placeholders = names.map((name) => [name, sql.placeholder(name)]);
  return Object.fromEntries(placeholders);
}
