import { and, asc, eq, lt, lte, sql } from 'drizzle-orm';
import { sha256 } from '../../domain/sha256.ts';
import { claimedKey, type RequestParts, replacedOutcome, resultOfClaim } from '../engine/requests.ts';
import { idempotencyKey as keyRow, spentNonces, usage } from '../engine/schema.ts';
import { named, placeholders, placeholdersFor, prepareMapped } from '../engine/statement.ts';
import { idempotencyRetentionS, type NonceClaim, nonceRetentionS, type QuotaClaim } from '../store.ts';
import { createFingerprintTable, type Fingerprint, type FingerprintTable } from './fingerprints.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** Expired rows that are deleted with each row that is written or looked up: more than one, so that they cannot pile up. */
const sweptWithEach = 2;

/**
 * The spent nonces of a database: a log on disk with one row for each transaction, and tables in memory to search. With an index on
 * disk, almost every nonce would write a page of its own.
 */
interface Nonces {
  /**
   * Spends a nonce at `nowS`; false if it is spent already. Deletes nonces that have expired by `sweepAtS`. Both are Unix seconds.
   */
  spend(claim: NonceClaim, nowS: number, sweepAtS: number): boolean;
  /** The number of nonces in memory. */
  count(): number;
  /** Writes what the transaction spends. Call it just before the commit. */
  write(): void;
  /** Call it after the commit. */
  committed(): void;
  /** Drops what the transaction would have spent. */
  rolledBack(): void;
}

/** The spent nonces of a database. */
export function createNonces(database: SqliteDatabase): Nonces {
  const { selectSizes, selectAll, insert, sweep } = prepare(database, {
    selectSizes: database
      .select({
        window: spentNonces.window,
        ...named({ bytes: sql<number>`sum(length(${spentNonces.entries}))` }),
      })
      .from(spentNonces)
      .groupBy(spentNonces.window),
    selectAll: database
      .select({ entries: spentNonces.entries, id: spentNonces.id })
      .from(spentNonces)
      .orderBy(asc(spentNonces.id)),
    insert: database.insert(spentNonces).values(placeholdersFor(spentNonces)),
    sweep: database
      .delete(spentNonces)
      .where(lt(spentNonces.window, sql.placeholder('oldest')))
      .limit(sweptWithEach),
  });
  /** When each nonce was spent, in seconds, by the span of that time. */
  const remembered = new Map<number, FingerprintTable>();
  /** The last row. */
  let lastId = 0;
  /** Nonces that were spent before this time, in seconds, have expired. */
  let expiredS = 0;
  /** What this transaction spends. */
  const spending: Spending[] = [];
  let rowsWritten = 0;

  function tableOf(atS: number): FingerprintTable {
    const span = spanOf(atS);
    const table = remembered.get(span) ?? createFingerprintTable();
    remembered.set(span, table);
    return table;
  }

  function isRemembered({ fingerprint, atS }: SpentNonce): boolean {
    for (const table of remembered.values()) {
      const spentAtS = table.get(fingerprint);
      if (spentAtS !== undefined && Math.abs(spentAtS - atS) < nonceRetentionS) return true;
    }
    return false;
  }

  // The tables have room from the start, because growing takes as long as reading. A window's nonces fill its spans about evenly.
  for (const { window, bytes } of selectSizes.iterate()) {
    const expected = bytes / entryBytes / spansOfWindow;
    for (let each = 0; each < spansOfWindow; each += 1)
      remembered.set(window * spansOfWindow + each, createFingerprintTable(expected));
  }
  for (const { id, entries } of selectAll.iterate()) {
    for (const { fingerprint, atS } of readEntries(entries)) tableOf(atS).set(fingerprint, atS);
    lastId = id;
  }

  return {
    count: () => remembered.values().reduce((sum, table) => sum + table.size(), 0),
    spend: ({ keyId, nonce }, nowS, sweepAtS) => {
      const fingerprint = nonceFingerprint(`${keyId} ${nonce}`);
      const spent = { fingerprint, atS: nowS };
      if (isRemembered(spent)) return false;
      const table = tableOf(nowS);
      spending.push({ ...spent, table, beforeS: table.get(fingerprint) ?? longAgoS });
      table.set(fingerprint, nowS);
      expiredS = sweepAtS - nonceRetentionS;
      return true;
    },
    write: () => {
      for (const [window, spent] of Map.groupBy(spending, ({ atS }) => windowOf(atS))) {
        rowsWritten += 1;
        insert.run({ id: lastId + rowsWritten, window, entries: writeEntries(spent) });
        sweep.run({ oldest: windowOf(expiredS) });
      }
    },
    committed: () => {
      lastId += rowsWritten;
      const oldest = spanOf(expiredS);
      for (const span of remembered.keys()) if (span < oldest) remembered.delete(span);
      end();
    },
    rolledBack: () => {
      for (const { fingerprint, table, beforeS } of spending) table.set(fingerprint, beforeS);
      end();
    },
  };

  function end(): void {
    spending.length = 0;
    rowsWritten = 0;
  }
}

/** Nonces of so many seconds are forgotten together in memory. With shorter spans there would be more tables to look into. */
const spanS = 220;
const spansOfWindow = nonceRetentionS / spanS;

const spanOf = (atS: number): number => Math.floor(atS / spanS);

/** Nonces of the same window are forgotten together on disk. */
export function windowOf(atS: number): number {
  return Math.floor(atS / nonceRetentionS);
}

/** The fingerprint of a spent nonce, and when it was spent, Unix seconds. */
export interface SpentNonce {
  readonly fingerprint: Fingerprint;
  readonly atS: number;
}

/** A nonce that an open transaction spends, the table that has it, and when it was spent before according to that table. */
interface Spending extends SpentNonce {
  readonly table: FingerprintTable;
  readonly beforeS: number;
}

/** The time that undoes a first use: an entry of a table always has a time, and this one is too old to matter. */
const longAgoS = 1;

/** Both halves of the fingerprint and the time, 4 bytes each, the lowest first. */
const entryBytes = 12;

/**
 * The first 64 bits of the SHA-256 of a nonce's name, `${key} ${nonce}`. With 10 million nonces in memory, a new nonce has the
 * fingerprint of another once in 10^12 calls, and is then rejected as spent. Nobody can aim at that.
 */
export function nonceFingerprint(name: string): Fingerprint {
  const digest = sha256(name);
  return { high: digest.readUInt32LE(0), low: digest.readUInt32LE(4) };
}

/** Entries as they are stored. */
export function writeEntries(entries: readonly SpentNonce[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(entries.length * entryBytes);
  for (const [place, { fingerprint, atS }] of entries.entries()) {
    bytes.writeUInt32LE(fingerprint.high, place * entryBytes);
    bytes.writeUInt32LE(fingerprint.low, place * entryBytes + 4);
    bytes.writeUInt32LE(atS, place * entryBytes + 8);
  }
  return bytes;
}

/** The entries in stored bytes. */
export function readEntries(bytes: Buffer): SpentNonce[] {
  const entries: SpentNonce[] = [];
  for (let at = 0; at < bytes.length; at += entryBytes) {
    const fingerprint = { high: bytes.readUInt32LE(at), low: bytes.readUInt32LE(at + 4) };
    entries.push({ fingerprint, atS: bytes.readUInt32LE(at + 8) });
  }
  return entries;
}

/** Idempotency keys and the results of their calls. All methods run inside a transaction. */
export function createIdempotencyKeys(database: SqliteDatabase): RequestParts['keys'] {
  const isKey = and(eq(keyRow.callerId, sql.placeholder('callerId')), eq(keyRow.key, sql.placeholder('key')));
  const isForgotten = lte(keyRow.claimedAtS, sql.placeholder('forgottenS'));
  const { forget, sweep, insert, update } = prepare(database, {
    forget: database.delete(keyRow).where(and(isKey, isForgotten)),
    sweep: database.delete(keyRow).where(isForgotten).orderBy(keyRow.claimedAtS).limit(sweptWithEach),
    insert: database.insert(keyRow).values(placeholdersFor(keyRow)),
    update: database.update(keyRow).set(placeholders('outcome')).where(isKey),
  });
  const select = prepareMapped(database.select().from(keyRow).where(isKey));
  return {
    find: (claim, sweepAtS) => {
      const { callerId, key } = claim;
      const forgottenS = sweepAtS - idempotencyRetentionS;
      forget.run({ callerId, key, forgottenS });
      sweep.run({ forgottenS });
      const known = select.get({ callerId, key });
      return known && resultOfClaim(known, claim);
    },
    keep: (claim, nowS, kind, outcome) => {
      const row = claimedKey(claim, nowS, kind, outcome);
      if (row !== undefined) insert.run({ ...row });
    },
    replace: ({ callerId, key }, result) => {
      const outcome = replacedOutcome(result);
      if (outcome !== undefined) update.run({ callerId, key, outcome });
    },
  };
}

/** Prepares the query of the calls of a caller in a month. */
export function countCalls(database: SqliteDatabase) {
  const isOfMonth = and(
    eq(usage.callerId, sql.placeholder('callerId')),
    eq(usage.month, sql.placeholder('month')),
  );
  const { select } = prepare(database, {
    select: database.select({ calls: usage.calls }).from(usage).where(isOfMonth),
  });
  return ({ callerId, month }: Pick<QuotaClaim, 'callerId' | 'month'>): number =>
    select.get({ callerId, month })?.calls ?? 0;
}

/** Calls counted by caller and month, in memory. Rows are written before the commit, and before commands that may read them. */
export function createQuotas(database: SqliteDatabase) {
  const read = countCalls(database);
  const { insert } = prepare(database, {
    insert: database
      .insert(usage)
      .values(placeholdersFor(usage))
      .onConflictDoUpdate({ target: [usage.callerId, usage.month], set: { calls: sql`excluded.calls` } }),
  });
  /** The last count of each caller. Nobody else counts. */
  const counts = new Map<number, { readonly month: string; readonly calls: number }>();
  /** The callers whose count is not written yet. */
  const unwritten = new Set<number>();

  function counted({ callerId, month }: Pick<QuotaClaim, 'callerId' | 'month'>): number {
    const known = counts.get(callerId);
    if (known?.month === month) return known.calls;
    if (unwritten.has(callerId)) write();
    return read({ callerId, month });
  }

  /** Writes what the transaction has counted. Call it just before the commit. */
  function write(): void {
    for (const callerId of unwritten) insert.run({ callerId, ...counts.get(callerId) });
    unwritten.clear();
  }

  return {
    /** Counts a call, inside a transaction. Returns the new count; undefined if all calls of the month are used. */
    take: ({ callerId, month, limit = Number.POSITIVE_INFINITY }: QuotaClaim): number | undefined => {
      const calls = counted({ callerId, month }) + 1;
      if (calls > limit) return undefined;
      counts.set(callerId, { month, calls });
      unwritten.add(callerId);
      return calls;
    },
    counted,
    write,
    /** Forgets what the transaction would have counted. */
    rolledBack: () => {
      counts.clear();
      unwritten.clear();
    },
  };
}
