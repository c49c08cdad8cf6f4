import type pg from 'pg';
import {
  eventHeads,
  nonces,
  type PortableRow,
  type PortableTable,
  type PortableWrites,
  pageRows,
} from '../engine/portable-tables.ts';
import { insertRows } from './insert-rows.ts';

/** Columns of the type json, whose values are texts in the portable form. */
const jsonColumns = ['party.provider_ids', 'log_event.detail'];

/** The tables of a database in their portable form, in a transaction of the caller. */
export function createPortable(client: pg.Client): PortableWrites {
  return {
    count: async (table) => {
      const { rows } = await client.query<{ n: number }>(`SELECT count(*) AS n FROM ${sourceOf(table)}`);
      return rows[0]?.n ?? 0;
    },
    pages: async function* (table) {
      await client.query(`DECLARE pages NO SCROLL CURSOR FOR ${selectOf(table)}`);
      while (true) {
        const { rows } = await client.query<PortableRow>(`FETCH ${pageRows} FROM pages`);
        if (rows.length === 0) break;
        yield rows;
      }
      await client.query('CLOSE pages');
    },
    write: async (table, rows) => {
      const name = table === eventHeads ? 'event_floor' : table.name;
      await Promise.all(insertRows(client, name, rows, '', (column) => columnValue(name, column)));
    },
  };
}

/** A JSON string in the type json is the text with quotes. */
const columnValue = (table: string, column: string): string =>
  jsonColumns.includes(`${table}.${column}`) ? `("${column}" #>> '{}')::json` : `"${column}"`;

/** Lets the ids that PostgreSQL gives continue after those of the rows. */
export async function continueIds(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ table: string }>(
    `SELECT table_name AS table FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name = 'id' AND is_identity = 'YES'`,
  );
  for (const { table } of rows)
    await client.query(
      `SELECT setval(pg_get_serial_sequence('${table}', 'id'), max(id)) FROM ${table} HAVING max(id) IS NOT NULL`,
    );
}

/** The heads of callers with events or floors, and that of all callers. */
const selectHeads = `(
  SELECT caller_id, max(sequence) AS sequence, max(position) AS position FROM (
    SELECT caller_id, sequence, position FROM event
    UNION ALL SELECT caller_id, sequence, position FROM event_floor WHERE caller_id <> 0
  ) AS ends GROUP BY caller_id
  UNION ALL SELECT 0, max(position), max(position) FROM (
    SELECT position FROM event UNION ALL SELECT position FROM event_floor
  ) AS positions HAVING max(position) IS NOT NULL
)`;

const sourceOf = (table: PortableTable): string =>
  `${table === eventHeads ? selectHeads : `"${table.name}"`} AS source`;

function selectOf(table: PortableTable): string {
  const columns = table.columns.map((name) => {
    const isText = table === nonces && name === 'fingerprint';
    return isText ? `source."${name}"::text` : `source."${name}"`;
  });
  const order = table.key.map((name) => `source."${name}"`);
  return `SELECT ${columns.join(', ')} FROM ${sourceOf(table)} ORDER BY ${order.join(', ')}`;
}
