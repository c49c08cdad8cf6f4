import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { EscrowState } from '../../src/domain/escrow.ts';
import { evidenceHash } from '../../src/domain/filing.ts';
import { actLeafData, commitmentTo, type RecordLeaf, recordLeafData } from '../../src/domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash } from '../../src/domain/merkle.ts';
import { type LaterRecord, recordHash } from '../../src/domain/provenance.ts';
import { nonceFingerprint, writeEntries } from '../../src/store/sqlite/nonce-entries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { nowS } from './promises/fixtures.ts';

const migrations = join(import.meta.dirname, '..', '..', 'src', 'store', 'sqlite', 'migrations');
const migrationFiles = readdirSync(migrations)
  .filter((name) => name.endsWith('.sql'))
  .sort();

/** The schema of this version. */
export const newestSchema = migrationFiles.length;
/** Schema of the release whose databases are made here, unless asked otherwise. */
export const before = 3;
/** When all filings and orders of it were made. */
export const timestamp = '2026-11-20T23:30:00+08:00';
/** The same in Unix seconds. */
export const openedAtS = Date.parse(timestamp) / 1_000;

/** The states that an order could be in before, in the order in which they are stored here. */
export const states = ['UNPAID', 'FROZEN', 'RELEASED', 'CLOSED'] as const satisfies readonly EscrowState[];

/** Does to a database what the releases up to a schema did. */
export function bringTo(raw: Sqlite.Database, schema: number): void {
  raw.function('nonce_entry', (name: string, atS: number) =>
    writeEntries([{ fingerprint: nonceFingerprint(name), atS }]),
  );
  const applied = Number(raw.pragma('user_version', { simple: true }));
  for (const name of migrationFiles.slice(applied, schema)) {
    raw.exec(readFileSync(join(migrations, name), 'utf8'));
    if (name.startsWith('0014_')) giveLeaves(raw);
  }
  raw.pragma(`user_version = ${Math.max(applied, schema)}`);
}

/** Takes the records up into the evidence log as the release did that had it first: a row for each leaf. */
function giveLeaves(raw: Sqlite.Database): void {
  const insert = raw.prepare('INSERT INTO log_leaf VALUES (?, ?, ?)');
  let tree = emptyTree;
  const append = (data: string): number => {
    const appended = appendLeaf(tree, leafHash(data));
    tree = appended.tree;
    insert.run(tree.size - 1, data, Buffer.concat(appended.completed));
    return tree.size - 1;
  };
  const salt = Buffer.alloc(32, 5);
  const toLeaf = ({ hash, ...leaf }: Omit<RecordLeaf, 'commitment'> & { readonly hash: string }) =>
    append(recordLeafData({ ...leaf, commitment: commitmentTo(hash, salt) }));
  const filings = raw
    .prepare<[], { number: string; timeS: number; hash: string }>(
      'SELECT filing_no AS number, filed_at_s AS timeS, hash FROM filing ORDER BY id',
    )
    .all();
  const keep = raw.prepare('UPDATE filing SET salt = ?, leaf_index = ? WHERE filing_no = ?');
  for (const filing of filings)
    keep.run(salt, toLeaf({ ...filing, kind: 'FILING', sequence: 1 }), filing.number);
  const records = raw
    .prepare<[], LaterRecord & { timeS: number }>(
      `SELECT filing_no AS filingNo, position AS sequence, event, at, recorded_at_s AS timeS FROM provenance_record`,
    )
    .all();
  const keepLater = raw.prepare('UPDATE provenance_record SET salt = ?, leaf_index = ? WHERE filing_no = ?');
  for (const { timeS, ...record } of records) {
    const { filingNo: number, sequence, event: kind } = record;
    keepLater.run(salt, toLeaf({ kind, number, sequence, timeS, hash: recordHash(record) }), number);
  }
  if (tree.size === 0) return;
  const act = { kind: 'LOG_BEGUN', sequence: 1, detail: { adopted: tree.size } } as const;
  const index = append(actLeafData({ ...act, timeS: openedAtS }));
  raw
    .prepare('INSERT INTO log_event VALUES (?, ?, ?, ?, ?)')
    .run(act.sequence, act.kind, JSON.stringify(act.detail), openedAtS, index);
}

/** The evidence hash of a filing as they are made here. */
export const hashOf = (filingNo: string): string =>
  evidenceHash({
    ...{ filingNo, author: 'a', era: 'b', size: 'c', material: 'd', condition: 'e', price: 1n },
    timestamp,
  });

/** Makes the database of an early release, with a platform, and an order of it in each state. */
export function makeEarlierDatabase(
  t: TestContext,
  schema = before,
): { dataDir: string; open: () => Sqlite.Database } {
  const dataDir = temporaryFolder(t);
  const open = () => {
    const raw = new Sqlite(join(dataDir, 'artseal.db'));
    t.after(() => raw.close());
    return raw;
  };
  const raw = open();
  bringTo(raw, Math.min(before, schema));
  raw.prepare("INSERT INTO deployment VALUES (1, 'sandbox', ?)").run(Buffer.alloc(32, 7));
  raw.exec("INSERT INTO caller VALUES (1, 'gallery', 'ENTERPRISE', NULL)");
  raw.exec(`INSERT INTO number_sequence VALUES ('FILING', 2026, 4), ('ESCROW', 2026, 4)`);
  const fileArtwork = raw.prepare(
    `INSERT INTO filing VALUES (?, ?, 1, 'a', 'b', 'c', 'd', 'e', 1, ?, '${timestamp}', ${openedAtS})`,
  );
  const record = raw.prepare(`INSERT INTO provenance_record VALUES (?, ?, ?, '2026-11-20', ${openedAtS})`);
  const order = raw.prepare(
    `INSERT INTO escrow VALUES (?, ?, ?, 1, 'GUARANTEE', 500, 'buyer', 'seller', ?, '${timestamp}')`,
  );
  for (const [place, state] of states.entries()) {
    const filingNo = `AS-2026-00000${place + 1}`;
    fileArtwork.run(place + 1, filingNo, hashOf(filingNo));
    record.run(filingNo, 1, 'SUBMITTED');
    if (state === 'RELEASED') record.run(filingNo, 2, 'TRANSFER');
    order.run(place + 1, idOf(state), filingNo, state);
  }
  if (schema >= before) {
    const claim = raw.prepare('INSERT INTO idempotency_key VALUES (1, ?, ?, ?, ?, ?)');
    claim.run('answered', Buffer.alloc(32), nowS, 200, '{}');
    claim.run('unanswered', Buffer.alloc(32), nowS, null, null);
  }
  raw.prepare('INSERT INTO nonce_claim VALUES (0, 1, ?, ?)').run('spent before', nowS);
  bringTo(raw, schema);
  return { dataDir, open };
}

/** The id of the order in a state. */
export const idOf = (state: (typeof states)[number]) => `ES-2026-000${states.indexOf(state)}`;
/** The number of its filing. */
export const filingOf = (state: (typeof states)[number]) => `AS-2026-00000${states.indexOf(state) + 1}`;
