import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { appendLeaf, emptyTree, leafHash, rootOf, type TreeHead } from '../../src/domain/merkle.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import { RecordDamaged } from '../../src/store/sqlite/failure.ts';
import { createLeaves } from '../../src/store/sqlite/leaves.ts';
import { createLogIndex, type LogIndex } from '../../src/store/sqlite/log-index.ts';
import { createVerifiedTree, type VerifiedTree } from '../../src/store/sqlite/verified-tree.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

/** Leaves that are appended or rolled back together: within a tile, to its end, and over several. */
const steps = [1, 254, 1, 3, 300, 1, 212, 600, 40];

const dataOf = (index: number) => JSON.stringify({ kind: 'OTHER', number: `leaf ${index}` });

function openLeaves(t: TestContext) {
  const dataDir = temporaryFolder(t);
  openCore({ dataDir, ...sandbox, opening: 'NEW' }).close();
  const client = openRaw(t, dataDir);
  const leaves = createLeaves(drizzle({ client }));
  let head: TreeHead = emptyTree;

  /** Appends leaves to the tables, and to a tree if given, as a transaction does. */
  function append(
    count: number,
    data: (index: number) => string = dataOf,
    tree?: VerifiedTree,
    index?: LogIndex,
  ) {
    const from = head.size;
    const stored = Array.from({ length: count }, (_, nth) => {
      const appended = appendLeaf(head, leafHash(data(from + nth)));
      head = appended.tree;
      return { data: data(from + nth), completed: appended.completed };
    });
    leaves.append(from, stored);
    for (const [nth, leaf] of stored.entries()) {
      tree?.append(leaf.completed);
      index?.appended(from + nth, { time: 0, ...JSON.parse(leaf.data) });
    }
  }
  const rootNow = () => Buffer.from(rootOf(head.roots)).toString('hex');
  const restoreHead = (to: TreeHead) => {
    head = to;
  };
  return { client, leaves, append, rootNow, head: () => head, restoreHead };
}

const rootIn = (tree: VerifiedTree) => Buffer.from(rootOf(tree.head().roots)).toString('hex');

test('the tree has all leaves of this and other processes, and none that was rolled back', (t) => {
  const { client, leaves, append, rootNow, head, restoreHead } = openLeaves(t);
  const [own, following] = [createVerifiedTree(leaves), createVerifiedTree(leaves)];
  for (const [nth, count] of steps.entries()) {
    const before = head();
    for (const isKept of [false, true]) {
      client.exec('BEGIN');
      append(count, isKept ? dataOf : (index) => `another ${index}`, own);
      assert.equal(rootIn(own), rootNow());
      if (isKept) {
        client.exec('COMMIT');
        own.committed();
      } else {
        client.exec('ROLLBACK');
        own.rolledBack();
        restoreHead(before);
        assert.equal(rootIn(own), rootNow());
      }
    }
    // The tree of another process catches up by itself.
    if (nth % 2 === 0) following.catchUp();
  }
  const fresh = createVerifiedTree(leaves);
  for (const tree of [own, following, fresh]) {
    tree.catchUp();
    assert.equal(tree.size(), head().size);
    assert.equal(rootIn(tree), rootNow());
    for (let index = 0; index < tree.size(); index += 1) {
      assert.ok(tree.hasLeaf(index, dataOf(index)), `leaf ${index}`);
      assert.ok(!tree.hasLeaf(index, `another ${index}`));
    }
    assert.ok(!tree.hasLeaf(tree.size(), dataOf(tree.size())));
  }
});

test('a leaf that was replaced together with its hash is not in the tree, and distant leaves are', (t) => {
  const { client, leaves, append } = openLeaves(t);
  append(700);
  client.exec('DROP TRIGGER log_leaf_never_changes');
  const tree = createVerifiedTree(leaves);
  tree.catchUp();
  // The row of leaf 30 begins with it.
  const [data, hashes] = client.prepare('SELECT data, hashes FROM log_leaf WHERE first = 30').raw().get() as [
    string,
    Buffer,
  ];
  const forged = Buffer.concat([leafHash('forged'), hashes.subarray(32)]);
  const lines = data.split('\n').with(0, 'forged').join('\n');
  client.prepare('UPDATE log_leaf SET data = ?, hashes = ? WHERE first = 30').run(lines, forged);
  for (const known of [tree, createVerifiedTree(leaves)]) {
    known.catchUp();
    assert.ok(!known.hasLeaf(30, 'forged'));
    for (const index of [0, 29, 32, 45, 255, 256, 699])
      assert.ok(known.hasLeaf(index, dataOf(index)), `${index}`);
  }
});

test('a database with fewer leaves than the tree is damaged', (t) => {
  const { client, leaves, append } = openLeaves(t);
  append(20);
  const tree = createVerifiedTree(leaves);
  tree.catchUp();
  client.exec('DROP TRIGGER log_leaf_is_kept; DELETE FROM log_leaf WHERE first = 15');
  assert.throws(() => tree.catchUp(), RecordDamaged);
});

const leaf = (kind: string, number: string, detail?: object) =>
  JSON.stringify({ kind, number, time: 0, detail });
const filing = (sequence: number) => leaf('FILING', `AS-2026-${String(sequence).padStart(6, '0')}`);

test('the index has what the leaves say, and drops what is rolled back', (t) => {
  const { client, leaves, append, head, restoreHead } = openLeaves(t);
  const data = [
    ...[filing(1), filing(2), leaf('TRANSFER', 'AS-2026-000001')],
    ...[leaf('NUMBERS_SKIPPED', 'LOG', { year: 2026, after: 2, through: 5 }), filing(6), filing(7)],
    ...[
      leaf('TRANSFER', 'AS-2026-000001'),
      leaf('RECORDS_ERASED', 'LOG', { records: 2, leaves: '0,2', before: 9 }),
    ],
    leaf('FILING', 'AS-2027-000001'),
  ];
  const tree = createVerifiedTree(leaves);
  const index = createLogIndex(leaves, tree, () => assert.fail('no leaf is damaged'));
  for (const isKept of [false, true]) {
    const before = head();
    client.exec('BEGIN');
    append(data.length, (at) => data[at] ?? '', tree, index);
    client.exec(isKept ? 'COMMIT' : 'ROLLBACK');
    if (!isKept) {
      tree.rolledBack();
      index.rolledBack();
      restoreHead(before);
      assert.equal(index.lastOf(2026), 0);
      assert.equal(index.transfersOf('AS-2026-000001'), 0);
      assert.equal(index.erasedBefore(0), undefined);
      assert.equal(index.skippedThrough(2026), 0);
      continue;
    }
    tree.committed();
    index.committed();
  }
  const afresh = createLogIndex(leaves, createVerifiedTree(leaves), () => assert.fail('no leaf is damaged'));
  const loaded = createLogIndex(leaves, tree, () => assert.fail('no leaf is damaged'));
  loaded.load(index.save());
  assert.equal(loaded.scanned(), data.length);
  for (const each of [index, afresh, loaded]) {
    assert.deepEqual([each.lastOf(2025), each.lastOf(2026), each.lastOf(2027)], [0, 7, 1]);
    assert.equal(each.skippedThrough(2026), 5);
    const has = [1, 2, 3, 5, 6, 7, 8].filter((n) => each.hasFiling(`AS-2026-00000${n}`));
    assert.deepEqual(has, [1, 2, 6, 7]);
    for (const other of ['AS-2026-000000', 'AS-2026-1', 'LOG', '', 'AS-2028-000001'])
      assert.ok(!each.hasFiling(other));
    const between = (below: string, above: string) => each.filingsBetween(`AS-${below}`, `AS-${above}`);
    assert.equal(between('0000-000000', '9999-999999'), 5);
    assert.equal(between('2026-000000', '2027-000000'), 4);
    assert.equal(between('2026-000002', '2026-000006'), 0);
    assert.equal(between('2026-000002', '2026-000007'), 1);
    assert.equal(between('2026-000006', '2027-000001'), 1);
    assert.equal(each.transfersOf('AS-2026-000001'), 2);
    assert.equal(each.transfersOf('AS-2026-000002'), 0);
    // The event is of time 0 and says 9: five years before the event count.
    assert.deepEqual([each.erasedBefore(0), each.erasedBefore(2)], [-5 * 365 * 86_400, -5 * 365 * 86_400]);
    assert.equal(each.erasedBefore(1), undefined);
  }
});
