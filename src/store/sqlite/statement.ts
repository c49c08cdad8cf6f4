import type Sqlite from 'better-sqlite3';
import type { Query } from 'drizzle-orm';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';
import { drizzle } from 'drizzle-orm/sqlite-proxy';
import { buildQuery, type Database, type Driver, type RowOf, type Values } from '../engine/statement.ts';

/** The one connection of this process for what runs without waiting: Drizzle over it, and the connection itself as `$client`. */
export type SqliteDatabase = BetterSQLite3Database & { $client: Sqlite.Database };

/** As `Statement` of handlers, without waiting. */
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

/** Makes statements of queries, as `prepare` does for handlers. */
export function prepare<Queries extends Readonly<Record<string, { toSQL(): Query }>>>(
  { $client: client }: Pick<SqliteDatabase, '$client'>,
  queries: Queries,
): { readonly [Name in keyof Queries]: Statement<RowOf<Queries[Name]>> } {
  const statements = Object.entries(queries).map(([name, query]) => [name, statementOf(client, query)]);
  return Object.fromEntries(statements);
}

function statementOf(client: Sqlite.Database, query: { toSQL(): Query }): Statement<unknown> {
  let prepared: Prepared | undefined;
  function statement(): Prepared {
    prepared ??= prepareQuery(client, query);
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

function prepareQuery(client: Sqlite.Database, query: { toSQL(): Query }): Prepared {
  const { text, bind } = buildQuery(query);
  return { execute: prepareText(client, text), bind };
}

/**
 * Prepares SQL text whose parameters are `?`. SQLite plans a statement with a bare `?` in a LIMIT, a range, a join or beside ORDER
 * BY again at each execution, because the value may change the plan. It takes `+?` for an expression, and plans it once.
 */
const preparePlanned = <Row>(client: Sqlite.Database, text: string): Sqlite.Statement<unknown[], Row> =>
  client.prepare<unknown[], Row>(text.replaceAll('?', '+?'));

function prepareText(client: Sqlite.Database, text: string): Sqlite.Statement<unknown[], unknown> {
  const execute = preparePlanned<unknown>(client, text);
  if (execute.reader && execute.columns().some(({ name }) => name.includes('_')))
    throw new Error(`A column has no name of its own, which named() gives: ${text}`);
  return execute;
}

/** The same connection for handlers, which await what is there already. A statement is prepared once. */
export function forHandlers({ $client: client }: Pick<SqliteDatabase, '$client'>): Database {
  const driver: Driver = {
    all: async (text, params) => objects(text).all(...params),
    run: async (text, params) => objects(text).run(...params).changes,
  };
  const objects = once((text) => prepareText(client, text));
  const arrays = once((text) => {
    const statement = preparePlanned<unknown[]>(client, text);
    return statement.reader ? statement.raw() : statement;
  });
  const database = drizzle(async (text, params, method) => {
    const statement = arrays(text);
    if (method === 'run') statement.run(...params);
    // Drizzle takes undefined for a row that is not there.
    else if (method === 'get') return { rows: statement.get(...params) as unknown[] };
    else return { rows: statement.all(...params) };
    return { rows: [] };
  });
  return Object.assign(database, { $driver: driver });
}

/** Remembers what `make` returned for each text. Handlers have some hundreds. */
function once<T>(make: (text: string) => T): (text: string) => T {
  const made = new Map<string, T>();
  return (text) => {
    const known = made.get(text);
    if (known !== undefined) return known;
    const one = make(text);
    made.set(text, one);
    return one;
  };
}
