import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { readCredentials } from './credentials.ts';

// What the hand-written servers share: the unavoidable work of a signed call, with the bare driver. Only the documented
// members are stored, and no index but the keys.

/** A platform's key, numbered by its place among the credentials. Each belongs to a platform of its own. */
export interface Platform {
  readonly id: number;
  readonly secret: KeyObject;
}

/** What is signed of a request, besides its headers. */
export interface Signed {
  readonly method: string;
  /** The target as it was sent. */
  readonly url: string;
  readonly body: Uint8Array;
}

/** The members of an artwork as they are sent. */
export interface Artwork {
  readonly author: string;
  readonly era: string;
  readonly size: string;
  readonly material: string;
  readonly condition: string;
  readonly price: number;
}

/** The registry of a hand-written server. Its writes belong into a transaction that the server opens and commits. */
export type Registry = ReturnType<typeof openRegistry>;

/** How long nonces are remembered, in seconds. */
const nonceWindowS = 660;
/** Calls that a platform may make in a month: a bound is looked at, and never reached. */
const monthlyQuota = Number.MAX_SAFE_INTEGER;
const chain = 'Evidence chain under selection: no chain and no judicial-evidence capability is established.';

/** The tables, which the server in Go has, too. */
const tables = readFileSync(join(import.meta.dirname, 'tables.sql'), 'utf8');

/** Opens the registry in a folder that has credentials, and makes its tables if they are not there. */
export function openRegistry(dataDir: string) {
  const sqlite = openDatabase(dataDir);
  const platforms = new Map(
    readCredentials(dataDir).keys.map(({ apiKey, apiSecret }, place): [string, Platform] => [
      apiKey,
      { id: place + 1, secret: createSecretKey(apiSecret, 'utf8') },
    ]),
  );
  const insertFiling = sqlite.prepare('INSERT INTO filing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const insertRecord = sqlite.prepare(`INSERT INTO provenance_record VALUES (?, 1, 'SUBMITTED', ?)`);
  const nextNumber = sqlite
    .prepare(
      'INSERT INTO number_sequence VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last',
    )
    .pluck();
  const selectAuthor = sqlite.prepare('SELECT author FROM filing WHERE number = ?').pluck();
  const selectRecords = sqlite.prepare(
    'SELECT event, at FROM provenance_record WHERE number = ? ORDER BY position',
  );
  const countCall = sqlite.prepare(
    'INSERT INTO usage VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET calls = calls + 1 WHERE calls < ?',
  );
  const spend = nonceSpender(sqlite);

  return {
    sqlite,
    /** The platform that signed a request; undefined if none did. */
    authenticate: (headers: IncomingHttpHeaders, { method, url, body }: Signed) => {
      const platform = platforms.get(String(headers['x-api-key']));
      if (platform === undefined) return undefined;
      const message = `${method}${url}${hash('sha256', body, 'hex')}${headers['x-timestamp']}${headers['x-nonce']}`;
      const signature = createHmac('sha256', platform.secret).update(message).digest();
      const sent = Buffer.from(String(headers['x-signature']), 'hex');
      return sent.length === signature.length && timingSafeEqual(signature, sent) ? platform : undefined;
    },
    /** Spends the nonce and counts the call; the status of the error if it was spent before or no quota is left. */
    admit: ({ id }: Platform, nonce: string, nowS: number) => {
      if (!spend(id, nonce, Math.floor(nowS / nonceWindowS))) return 401;
      return countCall.run(id, timestampOf(nowS).slice(0, 7), monthlyQuota).changes === 0 ? 429 : undefined;
    },
    /** Files an artwork under the next number of the year; the documented answer. */
    file: ({ author, era, size, material, condition, price }: Artwork, { id }: Platform, nowS: number) => {
      const timestamp = timestampOf(nowS);
      const year = timestamp.slice(0, 4);
      const last = nextNumber.get(Number(year)) as number;
      const number = Number(year) * 1_000_000 + last;
      const filingNo = `AS-${year}-${String(last).padStart(6, '0')}`;
      const evidence = { author, condition, era, filingNo, material, price, size, timestamp };
      const digest = hash('sha256', JSON.stringify(evidence), 'hex');
      insertFiling.run(number, id, author, era, size, material, condition, price, digest, timestamp);
      insertRecord.run(number, timestamp.slice(0, 10));
      return { filingNo, status: 'SUBMITTED', chain, hash: digest, timestamp };
    },
    /** The documented answer about a filing; undefined if there is none of that number. */
    provenance: (filingNo: string) => {
      const number = Number(filingNo.replace(/^AS-(\d{4})-(\d{6})$/, '$1$2'));
      const author = selectAuthor.get(number);
      if (author === undefined) return undefined;
      return { filingNo, author, records: selectRecords.all(number), retentionYears: 5 };
    },
  };
}

/** The database with the pragmas of the service, which decide what is durable and when the log is folded in. */
function openDatabase(dataDir: string): Sqlite.Database {
  const sqlite = new Sqlite(join(dataDir, 'yardstick.db'));
  sqlite.pragma('journal_mode = WAL');
  sqlite.pragma('synchronous = FULL');
  sqlite.pragma('wal_autocheckpoint = 4000');
  sqlite.pragma('cache_size = -32768');
  sqlite.exec(tables);
  return sqlite;
}

/**
 * Spends nonces, each once; false for one that was spent in this window or in the one before. A window is as long as
 * nonces are remembered, so what is older may go.
 */
function nonceSpender(sqlite: Sqlite.Database): (platform: number, nonce: string, window: number) => boolean {
  const find = sqlite.prepare('SELECT 1 FROM nonce WHERE window = ? AND platform = ? AND nonce = ?');
  const claim = sqlite.prepare('INSERT OR IGNORE INTO nonce VALUES (?, ?, ?)');
  const forget = sqlite.prepare('DELETE FROM nonce WHERE window < ?');
  let current = 0;
  return (platform, nonce, window) => {
    if (window !== current) {
      forget.run(window - 1);
      current = window;
    }
    return (
      find.get(window - 1, platform, nonce) === undefined && claim.run(window, platform, nonce).changes === 1
    );
  };
}

/** RFC 3339 in UTC. */
function timestampOf(nowS: number): string {
  return `${new Date(nowS * 1000).toISOString().slice(0, 19)}+00:00`;
}
