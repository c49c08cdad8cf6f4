import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from './schema.ts';

/** A table in the form that both engines read and write when a database moves from one to the other. */
export interface PortableTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns of its primary key, by which rows are ordered. */
  readonly key: readonly string[];
}

/** A row by the names of its columns: numbers, texts, bytes and nulls. */
export type PortableRow = Readonly<Record<string, unknown>>;

/** Reads the tables of a database. */
export interface PortableReads {
  count(table: PortableTable): Promise<number>;
  /** Yields all rows in the order of the key, some at a time. */
  pages(table: PortableTable): AsyncIterable<readonly PortableRow[]>;
}

/** Fills the tables of a new database. */
export interface PortableWrites extends PortableReads {
  /** Appends rows in the order of the key. */
  write(table: PortableTable, rows: readonly PortableRow[]): Promise<void>;
}

/** Rows of a page, at most. */
export const pageRows = 1_000;

/** Migrations fill it. */
const ofMigrations: readonly SQLiteTable[] = [schema.oldestVersion];

/** Tables that are laid out for the pages of SQLite. The portable form of their content is in `converted`. */
const ofSqlite: readonly SQLiteTable[] = [
  ...[schema.eventLog, schema.eventHead, schema.eventMark, schema.latestFiling, schema.spentNonces],
];

/** The column of the same kind. */
const previousId = schema.filing.previousId;

/** Events, a row each. */
export const events: PortableTable = {
  name: 'event',
  columns: [
    ...['position', 'caller_id', 'sequence', 'type', 'at_ms', 'filing_no', 'escrow_id', 'state', 'key_id'],
    ...['month', 'percent', 'webhook_id'],
  ],
  key: ['position'],
};

/** The newest event of each caller, and of all callers under id 0, also if it was deleted. */
export const eventHeads: PortableTable = {
  name: 'event_head',
  columns: ['caller_id', 'sequence', 'position'],
  key: ['caller_id'],
};

/** Spent nonces. The fingerprint is a text, because it has 64 bits. */
export const nonces: PortableTable = {
  name: 'nonce',
  columns: ['fingerprint', 'at_s'],
  key: ['fingerprint'],
};

const converted: readonly PortableTable[] = [events, eventHeads, nonces];

const all: readonly unknown[] = Object.values(schema);

/** All tables of the schema, each after those that its foreign keys refer to. */
export const portableTables: readonly PortableTable[] = [
  ...inOrder(all.filter((value) => is(value, SQLiteTable)))
    .filter((table) => ![...ofMigrations, ...ofSqlite].includes(table))
    .map(portable),
  ...converted,
];

function inOrder(tables: readonly SQLiteTable[]): readonly SQLiteTable[] {
  const ordered = new Set<SQLiteTable>();
  const add = (table: SQLiteTable): void => {
    for (const key of getTableConfig(table).foreignKeys) {
      const { foreignTable } = key.reference();
      if (foreignTable !== table && !ordered.has(foreignTable)) add(foreignTable);
    }
    ordered.add(table);
  };
  tables.forEach(add);
  return [...ordered];
}

function portable(table: SQLiteTable): PortableTable {
  const { name, columns, primaryKeys } = getTableConfig(table);
  const key = primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary);
  return {
    name,
    columns: columns.filter((column) => column !== previousId).map((column) => column.name),
    key: key.map((column) => column.name),
  };
}
