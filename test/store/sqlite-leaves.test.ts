import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { appendLeaf, emptyTree, leafHash } from '../../src/domain/merkle.ts';
import { openCore, type Reply } from '../../src/store/sqlite/core.ts';
import {
  createLeaves,
  type LeafRow,
  type Leaves,
  leavesIn,
  type StoredLeaf,
} from '../../src/store/sqlite/leaves.ts';
import type { StoreRequest } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox, toFile, toOpen } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

/** Numbers of leaves that are appended together: one, less than a row, a row, more than a row, several rows. */
const appendedTogether = [1, 1, 15, 16, 2, 100, 14, 1, 30, 45, 7];

/** The hashes of all complete subtrees, by level and place. */
type Hashes = Map<string, string>;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The hash of a leaf, hex; undefined if there is none. */
const leafHashIn = (leaves: Leaves, place: number): string | undefined =>
  leaves.findHashes({ level: 0, place }, 1).map(hex)[0];

/** A database with leaves that were appended in steps, and the leaves. */
function leavesInSteps(t: TestContext) {
  const dataDir = temporaryFolder(t);
  openCore({ dataDir, ...sandbox, opening: 'NEW' }).close();
  const client = openRaw(t, dataDir);
  const leaves = createLeaves(drizzle({ client }));
  const data: string[] = [];
  const hashes: Hashes = new Map();
  let tree = emptyTree;
  for (const width of appendedTogether) {
    const size = data.length;
    const step: StoredLeaf[] = [];
    for (let index = size; index < size + width; index += 1) {
      const leaf = JSON.stringify({ leaf: index });
      const appended = appendLeaf(tree, leafHash(leaf));
      tree = appended.tree;
      step.push({ data: leaf, completed: appended.completed });
      data.push(leaf);
      appended.completed.forEach((hash, level) => {
        hashes.set(`${level}/${Math.floor(index / 2 ** level)}`, hex(hash));
      });
    }
    leaves.append(size, step);
  }
  return { client, leaves, data, hashes };
}

test('leaves and the hashes of all subtrees are found, in rows of any length', (t) => {
  const { client, leaves, data, hashes } = leavesInSteps(t);
  assert.equal(leaves.size(), data.length);
  assert.ok(Number(client.prepare('SELECT count(*) FROM log_leaf').pluck().get()) < data.length / 10);
  for (let index = 0; index < data.length; index += 1) {
    for (const width of [1, 40]) {
      assert.deepEqual(leaves.dataFrom(index, width), data.slice(index, index + width));
    }
    assert.equal(leafHashIn(leaves, index), hashes.get(`0/${index}`));
  }
  for (const [name, hash] of hashes) {
    const [level = 0, place = 0] = name.split('/').map(Number);
    const expected = [hash, hashes.get(`${level}/${place + 1}`), hashes.get(`${level}/${place + 2}`)];
    const found = leaves.findHashes({ level, place }, 3).map(hex);
    assert.deepEqual(
      found,
      expected.filter((each) => each !== undefined),
      name,
    );
  }
});

test('leaves after the last one, or of a deleted row, are not found', (t) => {
  const { client, leaves, data } = leavesInSteps(t);
  assert.deepEqual(leaves.dataFrom(data.length - 1, 2), data.slice(-1));
  assert.equal(leafHashIn(leaves, data.length), undefined);
  // The first two rows have one leaf each.
  const gone = Number(client.prepare('SELECT id FROM log_leaf ORDER BY id LIMIT 1 OFFSET 2').pluck().get());
  assert.ok(gone > 3);
  client.exec(`DROP TRIGGER log_leaf_is_kept; DELETE FROM log_leaf WHERE id = ${gone}`);
  assert.deepEqual(leaves.dataFrom(1, 2), data.slice(1, 2));
  assert.equal(leafHashIn(leaves, 2), undefined);
  assert.deepEqual(leaves.findHashes({ level: 1, place: 1 }, 1), []);
  const next = gone + 1;
  assert.equal(leafHashIn(leaves, next), hex(leafHash(data[next] ?? '')));
});

test('a row with too few or too many hashes has none', (t) => {
  const { client, leaves } = leavesInSteps(t);
  client.exec('DROP TRIGGER log_leaf_never_changes');
  for (const hashes of [
    'substr(hashes, 1, length(hashes) - 32)',
    "CAST(hashes || x'00' AS blob)",
    'zeroblob(0)',
  ]) {
    client.exec(`UPDATE log_leaf SET hashes = ${hashes} WHERE id = 16`);
    for (const place of [2, 16]) assert.equal(leafHashIn(leaves, place), undefined, hashes);
  }
  client.exec("UPDATE log_leaf SET data = data || char(10) || '{}' WHERE id = 16");
  assert.deepEqual(leaves.dataFrom(2, 1), []);
});

const by = { callerId: 1, caller: 'gallery' };
const filing: StoreRequest = { effect: toFile(by) };

/** A core on a new database with the platform of caller 1, and a function that opens more cores. */
function openGallery(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const openBeside = () => {
    const core = openCore({ dataDir, ...sandbox, opening: 'EITHER' });
    t.after(() => core.close());
    return core;
  };
  const core = openBeside();
  const key = { keyId: 'k', apiKey: 'k', sealedSecret: Buffer.alloc(32), createdAtS: 0 };
  const platform = { name: by.caller, tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
  core.executeBatch([{ effect: { kind: 'AddPlatform', by: tester, platform, key } }]);
  return { core, openBeside, openRaw: () => openRaw(t, dataDir) };
}

/** The numbers of filings; `failed` for each that failed. */
const numbersIn = (replies: readonly Reply[]) =>
  replies.map((reply) =>
    'failure' in reply || reply.outcome.kind !== 'DONE'
      ? 'failed'
      : (reply.outcome.result as { readonly filingNo: string }).filingNo.slice(-6),
  );

const rowsIn = (client: Sqlite.Database) =>
  client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all();

test('a batch of filings is one row, without the filings that are rejected or fail', (t) => {
  const { core, openRaw } = openGallery(t);
  const unknown = { effect: toOpen(by, 'AS-2026-000099') };
  const tree = { effect: { kind: 'GetTree' } } as const;
  const ofNobody = { effect: toFile({ callerId: 99, caller: 'nobody' }) };
  core.executeBatch([filing, ofNobody, filing, filing]);
  core.executeBatch([filing, unknown, filing, tree, filing]);
  const numbers = rowsIn(openRaw()).map((row) =>
    (leavesIn(row) ?? []).map(({ data }) => JSON.parse(data).number.slice(-6)),
  );
  assert.deepEqual(numbers, [['LOG', '000001', '000002', '000003'], ['000004'], ['000005'], ['000006']]);
});

test('filings follow the leaves of another process, and fail if these cannot be read', (t) => {
  const { core, openBeside, openRaw } = openGallery(t);
  const beside = openBeside();
  assert.deepEqual(numbersIn(core.executeBatch([filing, filing])), ['000001', '000002']);
  assert.deepEqual(numbersIn(beside.executeBatch([filing])), ['000003']);
  assert.deepEqual(numbersIn(core.executeBatch([filing, filing])), ['000004', '000005']);
  assert.deepEqual(numbersIn(beside.executeBatch([filing, filing])), ['000006', '000007']);
  const raw = openRaw();
  raw.exec('DROP TRIGGER log_leaf_never_changes');
  for (const damage of ["data = data || char(10) || '{}'", 'hashes = zeroblob(5)']) {
    raw.exec(`UPDATE log_leaf SET ${damage}`);
    const rows = rowsIn(raw);
    assert.deepEqual(numbersIn(core.executeBatch([filing, filing, filing])), ['failed', 'failed', 'failed']);
    assert.deepEqual(rowsIn(raw), rows);
  }
});

test('a row without a leaf stops filings until it is removed, and its number is issued once', (t) => {
  const { core, openRaw } = openGallery(t);
  core.executeBatch([filing]);
  const raw = openRaw();
  raw.exec(`INSERT INTO filing SELECT id + 1, 'AS-2026-000002', caller_id, author, era, size, material, condition, price, hash,
    timestamp, filed_at_s, id, salt, leaf_index, NULL FROM filing`);
  for (let attempt = 0; attempt < 2; attempt += 1)
    assert.deepEqual(numbersIn(core.executeBatch([filing, filing])), ['failed', 'failed']);
  raw.exec("DROP TRIGGER filing_is_retained; DELETE FROM filing WHERE filing_no = 'AS-2026-000002'");
  assert.deepEqual(numbersIn(core.executeBatch([filing, filing])), ['000002', '000003']);
});
