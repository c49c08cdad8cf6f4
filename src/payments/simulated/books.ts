import { closeSync, existsSync, openSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import type { PaymentOrder } from '../provider.ts';
import type { Hold } from './hold.ts';

/** How long a write waits for a tool that has the file open, in milliseconds: it blocks the event loop. */
const timeoutMs = 20;

const schema = `
CREATE TABLE IF NOT EXISTS hold (
  hold_id TEXT PRIMARY KEY,
  -- A Hold as JSON.
  state TEXT NOT NULL,
  -- When something happens next without an instruction, in Unix milliseconds.
  due_at_ms INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS hold_by_due_time ON hold (due_at_ms) WHERE due_at_ms IS NOT NULL;
`;

type HeldOrder = Pick<PaymentOrder, 'holdId' | 'escrowId'>;

/** The holds of the simulated provider, in a file of their own. */
export type Books = ReturnType<typeof openBooks>;

/** Opens the books in a file, which is created if it does not exist. */
export function openBooks(file: string) {
  // SQLite gives its log files the mode of the database: only the owner can read them.
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  const connection = new Sqlite(file, { timeout: timeoutMs });
  try {
    connection.pragma('journal_mode = WAL');
    connection.pragma('synchronous = FULL');
    connection.pragma('trusted_schema = OFF');
    connection.exec(schema);
    return createBooks(connection);
  } catch (error) {
    connection.close();
    throw error;
  }
}

function createBooks(connection: Sqlite.Database) {
  const select = connection.prepare<[string], string>('SELECT state FROM hold WHERE hold_id = ?').pluck();
  const selectAll = connection.prepare<[], string>('SELECT state FROM hold ORDER BY rowid').pluck();
  const selectPlanned = connection
    .prepare<[number], string>(
      'SELECT state FROM hold WHERE due_at_ms IS NOT NULL ORDER BY due_at_ms LIMIT ?',
    )
    .pluck();
  const upsert = connection.prepare<[string, string, number | null]>(
    `INSERT INTO hold (hold_id, state, due_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (hold_id) DO UPDATE SET state = excluded.state, due_at_ms = excluded.due_at_ms`,
  );

  function change<T>({ holdId, escrowId }: HeldOrder, apply: (hold: Hold) => T): T {
    const unknown: Hold = { holdId, escrowId, status: 'ABSENT', plan: [], instructions: {} };
    const before = select.get(holdId) ?? write(unknown);
    const hold = read(before);
    const result = apply(hold);
    const after = write(hold);
    if (after !== before) upsert.run(holdId, after, hold.plan[0]?.atMs ?? null);
    return result;
  }

  return {
    /** Changes the hold of an order in one transaction, which is on disk on return. Nothing is written if the change throws. */
    change: <T>(order: HeldOrder, apply: (hold: Hold) => T): T =>
      connection.transaction(() => change(order, apply)).immediate(),
    /** The holds to which something happens next without an instruction, at most so many, the earliest first. */
    planned: (limit: number): Hold[] => selectPlanned.all(limit).map(read),
    /** All holds, in the order in which their first instruction was sent. */
    all: (): Hold[] => selectAll.all().map(read),
    close: () => connection.close(),
  };
}

function write(hold: Hold): string {
  return JSON.stringify(hold, (_, value) => (typeof value === 'bigint' ? String(value) : value));
}

function read(state: string): Hold {
  return JSON.parse(state, (key, value) => (key === 'amount' || key === 'left' ? BigInt(value) : value));
}
