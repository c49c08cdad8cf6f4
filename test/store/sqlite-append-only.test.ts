import assert from 'node:assert/strict';
import { yearOf } from '../../src/domain/calendar.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { appendOnlySuite } from './append-only.ts';
import { sqliteInThisThread } from './engines.ts';
import { refused, sandbox, yearsAgo } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

const replaced = (statement: string, columns: string) => `${statement} INTO filing (${columns}) SELECT`;
const columns =
  'id, filing_no, caller_id, era, size, material, condition, price, hash, timestamp, filed_at_s, leaf_index, author';
const others = columns.replace('author', "'Forger' FROM filing");
const otherNumber = others.replace('filing_no', "'AS-2026-000009'");

appendOnlySuite({
  ...{ name: 'SQLite', skip: false, code: 'SQLITE_CONSTRAINT_TRIGGER' },
  codeOfReplaced: 'SQLITE_CONSTRAINT_TRIGGER',
  bytes: (hex) => `x'${hex}'`,
  open: async (t) => {
    const dataDir = temporaryFolder(t);
    openCore({ dataDir, ...sandbox }).close();
    const raw = openRaw(t, dataDir);
    return {
      run: async (statement) => raw.exec(statement),
      rows: async (table) => raw.prepare(`SELECT * FROM ${table}`).all(),
    };
  },
  sessions: ['PRAGMA recursive_triggers = OFF; PRAGMA foreign_keys = OFF'],
  removals: () => [],
  forbidden: {
    'a filing never changes': ["UPDATE OR REPLACE filing SET hash = ''"],
    'a filing is never replaced': [
      `${replaced('REPLACE', columns)} ${others}`,
      `${replaced('INSERT OR REPLACE', columns)} ${others.replace('id,', 'id + 1,')}`,
      `${replaced('INSERT OR REPLACE', columns)} ${otherNumber}`,
    ],
    'a filing names the one before it': [
      `${replaced('INSERT', columns)} ${otherNumber.replace('id,', 'id + 1,')}`,
    ],
    'a leaf of the log follows the last one': [
      "REPLACE INTO log_leaf SELECT id, '{}', hashes, first FROM log_leaf",
    ],
    'a provenance record is never replaced': [
      'REPLACE INTO provenance_record SELECT * FROM provenance_record',
    ],
    'a state of an order is never replaced': ['REPLACE INTO escrow_change SELECT * FROM escrow_change'],
    'an origin of the log is never replaced': ['REPLACE INTO log_origin SELECT * FROM log_origin'],
    'an audit entry is never replaced': ['REPLACE INTO audit_entry SELECT * FROM audit_entry'],
    'a party is never replaced': ['REPLACE INTO party SELECT * FROM party'],
  },
});

const { test } = storeTests(sqliteInThisThread);

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
