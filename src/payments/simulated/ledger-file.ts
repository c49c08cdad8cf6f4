import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { ledgerFileName } from './ledger-file-name.ts';

/** How long opening waits for another process, in milliseconds. */
const openingTimeoutMs = 2_000;
/** How long a write waits: hardly, for the doors wait with it, and what is refused is pending until recovery asks again. */
const writingTimeoutMs = 20;
const schemaVersion = 1;

const schema = `
CREATE TABLE provider (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  secret BLOB NOT NULL
) STRICT;

CREATE TABLE hold (
  id INTEGER PRIMARY KEY,
  hold_id TEXT NOT NULL UNIQUE,
  escrow_id TEXT NOT NULL,
  standing TEXT NOT NULL CHECK (standing IN ('VOID', 'HELD', 'PAID_OUT', 'RETURNED', 'LAPSED')),
  amount INTEGER,
  currency TEXT,
  expires_at_ms INTEGER,
  CHECK ((standing = 'VOID') = (amount IS NULL)),
  CHECK ((standing = 'VOID') = (currency IS NULL)),
  CHECK ((standing = 'VOID') = (expires_at_ms IS NULL))
) STRICT;
CREATE INDEX hold_by_expiry ON hold (expires_at_ms) WHERE standing = 'HELD';

CREATE TABLE operation (
  operation_id TEXT PRIMARY KEY,
  hold_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('FREEZE', 'RELEASE', 'REFUND', 'CANCEL')),
  attempts INTEGER NOT NULL,
  came_to TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE notification (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hold_id TEXT NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0
) STRICT;
`;

/**
 * What files have learned since. A table of its own for each, and no column or rule of the first ones changed: an earlier
 * artseal still reads the file, and sees of it what it knows.
 */
const additions = `
CREATE TABLE IF NOT EXISTS awaited_hold (
  hold_id TEXT PRIMARY KEY,
  escrow_id TEXT NOT NULL,
  amount INTEGER NOT NULL,
  currency TEXT NOT NULL,
  lasts_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS after_payout (
  id INTEGER PRIMARY KEY,
  hold_id TEXT NOT NULL,
  standing TEXT NOT NULL,
  left_over INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS after_payout_of_hold ON after_payout (hold_id, id);

CREATE TABLE IF NOT EXISTS planned_event (
  id INTEGER PRIMARY KEY,
  hold_id TEXT NOT NULL,
  event TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS planned_event_by_time ON planned_event (at_ms);

CREATE TABLE IF NOT EXISTS apiError (
  operation_id TEXT PRIMARY KEY,
  hold_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS refusal_of_hold ON apiError (hold_id);
`;

/** An open file, and the key that it keeps for signing notifications. */
export interface LedgerFile {
  readonly connection: Sqlite.Database;
  readonly secret: Buffer;
}

/** Opens the file in a folder that exists; a new one is given `newSecret()` to keep. */
export function openLedgerFile(dataDir: string, newSecret: () => Uint8Array): LedgerFile {
  const file = join(dataDir, ledgerFileName);
  // SQLite gives its log files the mode of the database, which is nobody else's to read.
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  const connection = new Sqlite(file, { timeout: openingTimeoutMs });
  try {
    connection.pragma('journal_mode = WAL');
    connection.pragma('synchronous = FULL');
    connection.pragma('trusted_schema = OFF');
    const secret = connection.transaction(() => prepare(connection, newSecret)).immediate();
    connection.pragma(`busy_timeout = ${writingTimeoutMs}`);
    return { connection, secret };
  } catch (error) {
    connection.close();
    throw error;
  }
}

function prepare(connection: Sqlite.Database, newSecret: () => Uint8Array): Buffer {
  const version = connection.pragma('user_version', { simple: true });
  if (version === 0) {
    connection.exec(schema);
    connection.prepare('INSERT INTO provider (id, secret) VALUES (1, ?)').run(Buffer.from(newSecret()));
    connection.pragma(`user_version = ${schemaVersion}`);
  } else if (version !== schemaVersion) {
    throw new Error(`${connection.name} has schema ${version}; this artseal knows ${schemaVersion}.`);
  }
  connection.exec(additions);
  return connection.prepare<[], Buffer>('SELECT secret FROM provider').pluck().get() as Buffer;
}
