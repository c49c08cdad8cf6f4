import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { yearOf } from '../../src/domain/calendar.ts';
import type { BusinessTime } from '../../src/store/filing-commands.ts';
import { sqliteInThisThread } from './engines.ts';
import { noon, refused, toOpen, yearsAgo } from './promises/fixtures.ts';
import { type GalleryStore, storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

const { test } = storeTests(sqliteInThisThread);

/** Files and sells a filing. Returns a connection to its database that has nothing to do with the service. */
async function filedDatabase(t: TestContext, store: GalleryStore, at: BusinessTime = noon) {
  const by = store.gallery;
  const { order } = await store.perform(toOpen(by, await store.fileOne(by, at), { at }));
  await store.settled(order.escrowId, { to: 'FROZEN' }, at);
  await store.resolved(by, order.escrowId, 'RELEASE', at);
  await store.close();
  const raw = openRaw(t, store.dataDir);
  raw.pragma('recursive_triggers = OFF');
  raw.pragma('foreign_keys = OFF');
  return raw;
}

const snapshot = (raw: Sqlite.Database) =>
  ['filing', 'provenance_record', 'escrow_change', 'log_leaf', 'log_event'].map((table) =>
    raw.prepare(`SELECT * FROM ${table}`).all(),
  );

const copyOf = (table: string, columns: string, altered: string) =>
  `(${columns}) SELECT ${altered} FROM ${table}`;
const filingColumns =
  'id, filing_no, caller_id, author, era, size, material, condition, price, hash, timestamp, filed_at_s, leaf_index';
const erased =
  "author = '', era = '', size = '', material = '', condition = '', price = 0, hash = '', salt = NULL";
const recordColumns = 'filing_no, position, event, at, recorded_at_s, leaf_index';
const changeColumns = 'order_id, position, state, at, changed_at_s';
const otherFiling = filingColumns.replace('author', "'Forger'");
const otherRecord = recordColumns.replace('at,', "'1999-01-01',");
const otherChange = changeColumns.replace('state', "'RELEASED'");
const forgedChange = copyOf('escrow_change', changeColumns, otherChange);

const forbidden: Record<string, string> = {
  'UPDATE of a filing': "UPDATE filing SET author = 'Forger'",
  'UPDATE that changes nothing': 'UPDATE filing SET author = author',
  'UPDATE of the instant that retention counts from': 'UPDATE filing SET filed_at_s = 0',
  'UPDATE OR REPLACE of a filing': "UPDATE OR REPLACE filing SET hash = ''",
  'DELETE of a filing': 'DELETE FROM filing',
  'REPLACE of a filing': `REPLACE INTO filing ${copyOf('filing', filingColumns, otherFiling)}`,
  'INSERT OR REPLACE by number': `INSERT OR REPLACE INTO filing ${copyOf('filing', filingColumns, otherFiling.replace('id,', 'id + 1,'))}`,
  'INSERT OR REPLACE by row id': `INSERT OR REPLACE INTO filing ${copyOf('filing', filingColumns, otherFiling.replace('filing_no', "'AS-2026-000009'"))}`,
  'upsert of a filing': `INSERT INTO filing ${copyOf('filing', filingColumns, filingColumns)} WHERE true ON CONFLICT (filing_no) DO UPDATE SET author = 'Forger'`,
  'INSERT of a filing that names none before it': `INSERT INTO filing ${copyOf('filing', filingColumns, otherFiling.replace('id,', 'id + 1,').replace('filing_no', "'AS-2026-000009'"))}`,
  'UPDATE of the leaf of a filing': 'UPDATE filing SET leaf_index = leaf_index + 1',
  'UPDATE of the salt of a filing': 'UPDATE filing SET salt = randomblob(32)',
  'erasing a filing before its time': `UPDATE filing SET ${erased}, erased_at_s = unixepoch()`,
  'erasing the salt of a filing alone': 'UPDATE filing SET salt = NULL',
  'UPDATE of the leaf of a record': 'UPDATE provenance_record SET leaf_index = leaf_index + 1',
  'erasing the salt of a record before its time': 'UPDATE provenance_record SET salt = NULL',
  'UPDATE of a leaf': "UPDATE log_leaf SET data = replace(data, 'AS-2026', 'AS-2025')",
  'DELETE of a leaf': 'DELETE FROM log_leaf WHERE id = (SELECT max(id) FROM log_leaf)',
  'REPLACE of a leaf': "REPLACE INTO log_leaf SELECT id, '{}', hashes, first FROM log_leaf",
  'INSERT of a leaf among those of a row': "INSERT INTO log_leaf VALUES (0, '{}', zeroblob(32), 0)",
  'INSERT of leaves over others': "INSERT INTO log_leaf VALUES (99, '{}', zeroblob(32), 1)",
  'INSERT of a leaf that leaves a gap': "INSERT INTO log_leaf VALUES (99, '{}', zeroblob(32), 99)",
  'UPDATE of a log event': "UPDATE log_event SET kind = 'RECORDS_ERASED'",
  'DELETE of a log event': 'DELETE FROM log_event',
  'UPDATE of a record': "UPDATE provenance_record SET at = '1999-01-01'",
  'UPDATE of the position of a record': 'UPDATE provenance_record SET position = 9',
  'DELETE of a record': 'DELETE FROM provenance_record',
  'INSERT OR REPLACE of a record': `INSERT OR REPLACE INTO provenance_record ${copyOf('provenance_record', recordColumns, otherRecord)}`,
  'upsert of a record': `INSERT INTO provenance_record ${copyOf('provenance_record', recordColumns, recordColumns)} WHERE true ON CONFLICT DO UPDATE SET event = 'SUBMITTED'`,
  'UPDATE of the history of an order': "UPDATE escrow_change SET state = 'RELEASED'",
  'DELETE of the history of an order': 'DELETE FROM escrow_change',
  'INSERT OR REPLACE of the history of an order': `INSERT OR REPLACE INTO escrow_change ${forgedChange}`,
};

test('the database rejects changes of what was recorded, from any connection', async (store, t) => {
  const raw = await filedDatabase(t, store);
  const before = snapshot(raw);
  for (const [what, statement] of Object.entries(forbidden)) {
    assert.throws(() => raw.exec(statement), { code: 'SQLITE_CONSTRAINT_TRIGGER' }, what);
    assert.deepEqual(snapshot(raw), before, what);
  }
});

/** Rows of the tables that a filing does not write to, and an UPDATE of each. */
const kept: readonly (readonly [table: string, row: string, change: string])[] = [
  ['log_origin', "(1, 'artseal.invalid/log', 0)", 'first_size = 2'],
  ['audit_entry', "(99, 1, '{}', 'key create', 'gallery', NULL, NULL, NULL)", "actor = 'forged'"],
  ['party', "(1, 1, 'BUYER', 'ann', '{}', 1, NULL)", "party_id = 'bob'"],
];

test('the database keeps origins of the log, audit entries and parties as they are', async (store, t) => {
  const raw = await filedDatabase(t, store);
  for (const [table, row, change] of kept) {
    raw.exec(`INSERT INTO ${table} VALUES ${row}`);
    const rows = () => raw.prepare(`SELECT * FROM ${table}`).all();
    const before = rows();
    for (const statement of [
      `UPDATE ${table} SET ${change}`,
      `DELETE FROM ${table}`,
      `REPLACE INTO ${table} VALUES ${row}`,
    ]) {
      assert.throws(() => raw.exec(statement), { code: 'SQLITE_CONSTRAINT_TRIGGER' }, statement);
      assert.deepEqual(rows(), before, statement);
    }
  }
});

const deletions = ['provenance_record', 'filing', 'escrow_change'].map((table) => `DELETE FROM ${table}`);

/** Asserts that the database rejects each statement, with this message. */
function rejectsEach(raw: Sqlite.Database, message: RegExp, ...statements: readonly string[]): void {
  for (const statement of statements) assert.throws(() => raw.exec(statement), message, statement);
}

test('records older than five years may be deleted, but not changed', async (store, t) => {
  const raw = await filedDatabase(t, store, yearsAgo(5, -2));
  const changes = [
    "filing SET author = 'Forger'",
    "provenance_record SET at = ''",
    "escrow_change SET state = ''",
  ];
  rejectsEach(raw, /never changes/, ...changes.map((change) => `UPDATE ${change}`));
  for (const deletion of deletions) raw.exec(deletion);
  rejectsEach(raw, /is kept/, 'DELETE FROM log_leaf');
  const [filings, records, history, leaves] = snapshot(raw);
  assert.deepEqual([filings, records, history], [[], [], []]);
  assert.notDeepEqual(leaves, []);
});

test('a filing older than five years may be erased as a whole, once', async (store, t) => {
  const raw = await filedDatabase(t, store, yearsAgo(5, -2));
  const inPart = ["UPDATE filing SET author = '', erased_at_s = 1", 'UPDATE filing SET salt = NULL'];
  rejectsEach(raw, /never changes/, ...inPart);
  raw.exec(`UPDATE filing SET ${erased}, erased_at_s = 1; UPDATE provenance_record SET salt = NULL`);
  const again = [
    `UPDATE filing SET ${erased}, erased_at_s = 2`,
    "UPDATE filing SET author = 'Forger', erased_at_s = NULL",
    'UPDATE provenance_record SET salt = randomblob(32)',
  ];
  rejectsEach(raw, /never changes/, ...again);
});

test('records of almost five years may not be deleted', async (store, t) => {
  const raw = await filedDatabase(t, store, yearsAgo(5, 2));
  rejectsEach(raw, /five years/, ...deletions);
});

test('numbers continue after the last one although earlier filings were deleted', async (store, t) => {
  const by = store.gallery;
  const at = yearsAgo(5, -2);
  const first = await store.fileOne(by, at);
  await store.fileOne(by, at);
  const raw = openRaw(t, store.dataDir);
  raw.prepare('DELETE FROM filing WHERE filing_no = ?').run(first);
  assert.equal(await store.fileOne(by, at), first.replace(/1$/, '3'));
});

test('a list is not returned if a filing is missing, although it was six years old', async (store, t) => {
  const mine = store.gallery;
  const other = await store.addPlatform('auction house');
  const [before, now] = [yearsAgo(6, 0), yearsAgo(0, 0)];
  const file = async (by: typeof mine, at: typeof now) => {
    await store.acceptClock(at);
    return store.fileOne(by, at);
  };
  for (let id = 1; id <= 4; id += 1) await file(mine, before);
  const latest = await file(mine, now);
  const raw = openRaw(t, store.dataDir);
  const list = async (owner: number | undefined, from?: number, year?: number) => {
    const page = { from, size: 10 };
    const { items } = await store.perform({ kind: 'ListFilings', filter: { owner, year }, page });
    return items.map(({ filingNo }) => filingNo);
  };
  raw.exec('DELETE FROM filing WHERE id <= 3');
  for (const from of [undefined, 4, 3]) await refused(list(mine.callerId, from), 'RECORD_DAMAGED');
  assert.deepEqual(await list(mine.callerId, undefined, yearOf(now.timestamp)), [latest]);
  assert.deepEqual(await list(other.callerId), []);
  await refused(list(undefined, 5), 'RECORD_DAMAGED');
});
