import {
  type Column,
  getTableColumns,
  is,
  Param,
  Placeholder,
  type Query,
  type SQL,
  type SQLWrapper,
  sql,
  type Table,
} from 'drizzle-orm';
import type { SqliteRemoteDatabase } from 'drizzle-orm/sqlite-proxy';

/**
 * A connection to the database of an engine. Handlers build their queries with drizzle's builder for SQLite, whose SQL PostgreSQL
 * understands as well, and await each of them: SQLite has the result at once, PostgreSQL after a round trip.
 */
export type Database = SqliteRemoteDatabase & { readonly $driver: Driver };

/** Executes SQL text. Parameters are `?`. */
export interface Driver {
  /** Returns the rows. */
  all(text: string, params: readonly unknown[]): Promise<unknown[]>;
  /** Returns how many rows it changed. */
  run(text: string, params: readonly unknown[]): Promise<number>;
}

/** Values for the placeholders of a query, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/** The row of a query: as the driver returns it, so name the columns with `named`. */
export type RowOf<Query> = Query extends { prepare(): { all(): infer Rows } }
  ? Awaited<Rows> extends readonly (infer Row)[]
    ? Row
    : never
  : never;

/** A query that drizzle built and the driver executes. */
export interface Statement<Row> {
  /** Runs it; how many rows it changed. */
  run(values?: Values): Promise<number>;
  /** Its first row. A query of several rows needs a limit. */
  get(values?: Values): Promise<Row | undefined>;
  /** Its rows. */
  all(values?: Values): Promise<Row[]>;
}

/**
 * Makes statements of queries that drizzle built and the driver executes: what drizzle does at each execution of a query costs more
 * than SQLite takes for these. Each is built at its first use, since a start uses few of all queries.
 */
export function prepare<Queries extends Readonly<Record<string, { toSQL(): Query }>>>(
  { $driver: driver }: Database,
  queries: Queries,
): { readonly [Name in keyof Queries]: Statement<RowOf<Queries[Name]>> } {
  const statements = Object.entries(queries).map(([name, query]) => [name, statementOf(driver, query)]);
  return Object.fromEntries(statements);
}

function statementOf(driver: Driver, query: { toSQL(): Query }): Statement<unknown> {
  let built: BuiltQuery | undefined;
  function statement(): BuiltQuery {
    built ??= buildQuery(query);
    return built;
  }
  const all = (values: Values = {}) => {
    const { text, bind } = statement();
    return driver.all(text, bind(values));
  };
  return {
    run: (values = {}) => {
      const { text, bind } = statement();
      return driver.run(text, bind(values));
    },
    get: async (values) => (await all(values))[0],
    all,
  };
}

/** The SQL text of a query, and how its parameters get their values. */
export interface BuiltQuery {
  readonly text: string;
  readonly bind: (values: Values) => unknown[];
}

/** Builds a query. */
export function buildQuery(query: { toSQL(): Query }): BuiltQuery {
  const { sql: text, params } = query.toSQL();
  const names = params.map(placeholderName);
  return {
    text,
    bind: (values) => names.map((name, index) => (name === undefined ? params[index] : values[name])),
  };
}

/** A statement of a query whose rows drizzle maps to those of the schema. */
interface MappedStatement {
  get(values?: Values): unknown;
  all(values?: Values): unknown;
}

/** Prepares such a query at its first use. */
export function prepareMapped<Mapped extends MappedStatement>(query: {
  prepare(): Mapped;
}): Pick<Mapped, 'get' | 'all'> {
  let prepared: Mapped | undefined;
  const statement = () => {
    prepared ??= query.prepare();
    return prepared;
  };
  return {
    get: ((values) => statement().get(values)) as Mapped['get'],
    all: ((values) => statement().all(values)) as Mapped['all'],
  };
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

/** Equality for which no index is used: for a value of many rows, beside a condition that few rows meet. */
export const equalsWithoutIndex = (column: Column, value: unknown): SQL =>
  sql`nullif(${column}, NULL) = ${value}`;

/** `then` if the condition is true, otherwise `otherwise`. */
export const choose = (condition: SQLWrapper, then: unknown, otherwise: unknown): SQL =>
  sql`CASE WHEN ${condition} THEN ${then} ELSE ${otherwise} END`;

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
