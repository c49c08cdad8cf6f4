import { drizzle } from 'drizzle-orm/sqlite-proxy';
import pg from 'pg';
import type { Database, Driver } from '../engine/statement.ts';

/** A statement that PostgreSQL prepares at its first use in a session. */
interface Prepared {
  readonly name: string;
  readonly text: string;
}

/** By the text of the engine. Handlers have some hundreds. */
const prepared = new Map<string, Prepared>();

/**
 * Rewrites SQL text of handlers for PostgreSQL: `?` outside of strings and identifiers becomes `$1` and so on, and the columns of an
 * `on conflict` target lose the name of their table.
 */
export function rewritten(text: string): string {
  return preparedOf(text).text;
}

/** The name is the same in every session, so it belongs to one text. Other names must not begin with `h`. */
function preparedOf(text: string): Prepared {
  const known = prepared.get(text);
  if (known !== undefined) return known;
  const one = { name: `h${prepared.size + 1}`, text: rewrite(text) };
  prepared.set(text, one);
  return one;
}

/** A string, the target of a conflict, an identifier, a parameter. A doubled quote ends one string and begins another. */
const parts = /'[^']*'|\bon conflict \(((?:"[^"]*"\."[^"]*"(?:, )?)+)\)|"[^"]*"|\?/gi;

function rewrite(text: string): string {
  let params = 0;
  return text.replace(parts, (part, target: string | undefined) => {
    if (target !== undefined) return `on conflict (${target.replace(/"[^"]*"\.("[^"]*")/g, '$1')})`;
    if (part !== '?') return part;
    params += 1;
    return `$${params}`;
  });
}

const { INT8, NUMERIC, JSON: JSON_TEXT } = pg.types.builtins;

/** How a session of the engine returns values: bigint and numeric as numbers, json as its text, bytea as Buffer. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: 'text') => {
    if (id === INT8 || id === NUMERIC) return safeNumber;
    return id === JSON_TEXT ? asIs : pg.types.getTypeParser(id, format);
  }) as typeof pg.types.getTypeParser,
};

const asIs = (text: string): string => text;

/** Throws if a number has no exact place among the integers of JavaScript. */
function safeNumber(text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && !Number.isSafeInteger(number))
    throw new RangeError(`The database returned ${text}, which is beyond the integers that are exact.`);
  return number;
}

/** The value of a parameter for PostgreSQL: as in SQLite, true is 1 and false is 0. */
function bound(value: unknown): unknown {
  return typeof value === 'boolean' ? Number(value) : value;
}

/**
 * A connection for handlers. Its client has `types`. PostgreSQL prepares each text once in a session. Without `pipeline`, the client
 * sends a query after the reply to the one before.
 */
export function forHandlers(client: Pick<pg.ClientBase, 'query'>): Database {
  const driver: Driver = {
    all: async (text, params) => {
      const { rows } = await client.query<Record<string, unknown>>({
        ...preparedOf(text),
        values: params.map(bound),
      });
      return rows;
    },
    run: async (text, params) => {
      const { rowCount } = await client.query({ ...preparedOf(text), values: params.map(bound) });
      return rowCount ?? 0;
    },
  };
  const database = drizzle(async (text, params, method) => {
    const { rows } = await client.query<unknown[]>({
      ...preparedOf(text),
      values: params.map(bound),
      rowMode: 'array',
    });
    // Drizzle takes undefined for a row that is not there.
    return { rows: method === 'get' ? (rows[0] as unknown[]) : rows };
  });
  return Object.assign(database, { $driver: driver });
}
