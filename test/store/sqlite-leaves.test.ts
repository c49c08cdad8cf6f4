import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { appendLeaf, completedBy, emptyTree, leafHash } from '../../src/domain/merkle.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import { createLeaves, type LeafRow, leavesIn, type StoredLeaf } from '../../src/store/sqlite/leaves.ts';
import { databaseFile } from '../../src/store/sqlite/location.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox, toFile, toOpen } from './promises/fixtures.ts';

/** Numbers of leaves that are appended together: one, a row, more than a row, several rows. */
const appendedTogether = [1, 1, 32, 33, 2, 100, 31, 1, 64, 7];

/** The hashes of all complete subtrees, by level and place. */
type Hashes = Map<string, string>;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** A database with leaves that were appended in steps, and what each is. */
function leavesInSteps(t: TestContext) {
  const dataDir = temporaryFolder(t);
  openCore({ dataDir, ...sandbox, opening: 'NEW' }).close();
  const client = new Sqlite(databaseFile(dataDir));
  t.after(() => client.close());
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

test('leaves and the hashes of all subtrees are found, whichever were appended together', (t) => {
  const { client, leaves, data, hashes } = leavesInSteps(t);
  assert.equal(leaves.size(), data.length);
  assert.ok(Number(client.prepare('SELECT count(*) FROM log_leaf').pluck().get()) < data.length / 10);
  for (let index = 0; index < data.length; index += 1) {
    for (const width of [1, 40]) {
      assert.deepEqual(leaves.dataFrom(index, width), data.slice(index, index + width));
    }
    assert.equal(hex(leaves.findHash(index) ?? Buffer.alloc(0)), hashes.get(`0/${index}`));
  }
  for (const [name, hash] of hashes) {
    const [level = 0, place = 0] = name.split('/').map(Number);
    assert.equal(hex(leaves.hashOf({ level, place })), hash, name);
    const width = 3;
    if (completedBy({ level, place: place + width - 1 }) >= data.length) continue;
    const expected = [0, 1, 2].map((nth) => hashes.get(`${level}/${place + nth}`)).join('');
    assert.equal(hex(leaves.hashesFrom({ level, place }, width)), expected, name);
  }
});

test('what is beyond the leaves, or in a row that is gone, is not there', (t) => {
  const { client, leaves, data } = leavesInSteps(t);
  assert.deepEqual(leaves.dataFrom(data.length - 1, 2), data.slice(-1));
  assert.equal(leaves.findHash(data.length), undefined);
  assert.throws(() => leaves.hashOf({ level: 0, place: data.length }), /lacks the hash of subtree/);
  // The first two rows have one leaf each.
  const gone = Number(client.prepare('SELECT id FROM log_leaf ORDER BY id LIMIT 1 OFFSET 2').pluck().get());
  assert.ok(gone > 3);
  client.exec(`DROP TRIGGER log_leaf_is_kept; DELETE FROM log_leaf WHERE id = ${gone}`);
  assert.deepEqual(leaves.dataFrom(1, 2), data.slice(1, 2));
  assert.equal(leaves.findHash(2), undefined);
  assert.throws(() => leaves.hashOf({ level: 1, place: 1 }), /lacks the hash of subtree 1 of level 1/);
  const next = gone + 1;
  assert.equal(hex(leaves.findHash(next) ?? Buffer.alloc(0)), hex(leafHash(data[next] ?? '')));
});

test('a batch of filings is one row, and what is refused or fails among them leaves nothing', (t) => {
  const dataDir = temporaryFolder(t);
  const core = openCore({ dataDir, ...sandbox, opening: 'NEW' });
  const by = { callerId: 1, caller: 'gallery' };
  const actor = { actor: 'test', atS: 0, reason: undefined };
  const key = { keyId: 'k', apiKey: 'k', sealedSecret: Buffer.alloc(32), createdAtS: 0 };
  const platform = { name: 'gallery', tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
  core.executeBatch([{ effect: { kind: 'AddPlatform', by: actor, platform, key } }]);
  const filing = { effect: toFile(by) };
  const unknown = { effect: toOpen(by, 'AS-2026-000099') };
  const tree = { effect: { kind: 'GetTree' } } as const;
  const ofNobody = { effect: toFile({ callerId: 99, caller: 'nobody' }) };
  core.executeBatch([filing, ofNobody, filing, filing]);
  core.executeBatch([filing, unknown, filing, tree, filing]);
  core.close();
  const client = new Sqlite(databaseFile(dataDir), { readonly: true });
  t.after(() => client.close());
  const rows = client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all();
  const numbers = rows.map((row) => leavesIn(row).map(({ data }) => JSON.parse(data).number.slice(-6)));
  assert.deepEqual(numbers, [['LOG', '000001', '000002', '000003'], ['000004'], ['000005'], ['000006']]);
});
