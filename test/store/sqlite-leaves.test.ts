import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { appendLeaf, emptyTree, leafHash, rootOf, type TreeHead } from '../../src/domain/merkle.ts';
import type { Reply } from '../../src/store/engine/failure.ts';
import type { LeafRow, Leaves, StoredLeaf } from '../../src/store/engine/leaves.ts';
import { createLogIndex, type LogIndex } from '../../src/store/engine/log-index.ts';
import { createVerifiedTree, type VerifiedTree } from '../../src/store/engine/verified-tree.ts';
import { openCore } from '../../src/store/sqlite/core.ts';
import { createLeaves } from '../../src/store/sqlite/log.ts';
import type { StoreRequest } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox, toFile } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

/** Numbers of leaves that are appended together: one, less than a row, a row, more than a row, several rows. */
const appendedTogether = [1, 1, 15, 16, 2, 100, 14, 1, 30, 45, 7];

const dataOf = (index: number) => JSON.stringify({ kind: 'OTHER', number: `leaf ${index}` });

/** The hashes of all complete subtrees, by level and place. */
type Hashes = Map<string, string>;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The hash of a leaf, hex; undefined if there is none. */
const leafHashIn = (leaves: Leaves, place: number): string | undefined =>
  leaves.findHashes({ level: 0, place }, 1).map(hex)[0];

/** A new database, and a function that appends leaves to its log and to a tree and an index, as a transaction does. */
function openLeaves(t: TestContext) {
  const dataDir = temporaryFolder(t);
  openCore({ dataDir, ...sandbox, opening: 'NEW' }).close();
  const client = openRaw(t, dataDir);
  const leaves = createLeaves(drizzle({ client }));
  let head: TreeHead = emptyTree;
  function append(
    count: number,
    data = dataOf,
    tree?: VerifiedTree,
    index?: LogIndex,
  ): readonly StoredLeaf[] {
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
    return stored;
  }
  return {
    ...{ client, leaves, append },
    head: () => head,
    rootNow: () => hex(rootOf(head.roots)),
    restoreHead: (to: TreeHead) => {
      head = to;
    },
  };
}

/** A database with leaves that were appended in steps, and the leaves. */
function leavesInSteps(t: TestContext) {
  const { client, leaves, append } = openLeaves(t);
  const stored = appendedTogether.flatMap((width) => append(width));
  const hashes: Hashes = new Map();
  for (const [index, { completed }] of stored.entries())
    for (const [level, hash] of completed.entries())
      hashes.set(`${level}/${Math.floor(index / 2 ** level)}`, hex(hash));
  return { client, leaves, data: stored.map(({ data }) => data), hashes };
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

/** Leaves that are appended or rolled back together: within a tile, to its end, and over several. */
const steps = [1, 254, 1, 3, 300, 1, 212, 600, 40];

const rootIn = (tree: VerifiedTree) => hex(rootOf(tree.head().roots));

test('the tree has all leaves that were appended or stored before, and none that was rolled back', (t) => {
  const { client, leaves, append, rootNow, head, restoreHead } = openLeaves(t);
  const own = createVerifiedTree(leaves);
  for (const count of steps) {
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
  }
  const fresh = createVerifiedTree(leaves);
  for (const tree of [own, fresh]) {
    tree.load();
    assert.equal(tree.size(), head().size);
    assert.equal(rootIn(tree), rootNow());
    for (let index = 0; index < tree.size(); index += 1) {
      assert.ok(tree.hasLeaf(index, dataOf(index)), `leaf ${index}`);
      assert.ok(!tree.hasLeaf(index, `another ${index}`));
    }
    assert.ok(!tree.hasLeaf(tree.size(), dataOf(tree.size())));
  }
});

const leaf = (kind: string, number: string, detail?: object) =>
  JSON.stringify({ kind, number, time: 0, detail });
const filingLeaf = (sequence: number) => leaf('FILING', `AS-2026-${String(sequence).padStart(6, '0')}`);

test('the index has what the leaves say, and drops what is rolled back', (t) => {
  const { client, leaves, append, head, restoreHead } = openLeaves(t);
  const data = [
    ...[filingLeaf(1), filingLeaf(2), leaf('TRANSFER', 'AS-2026-000001')],
    ...[leaf('NUMBERS_SKIPPED', 'LOG', { year: 2026, after: 2, through: 5 }), filingLeaf(6), filingLeaf(7)],
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

test('the index counts the advanced clock of an erasure as age in a sandbox alone', (t) => {
  const { leaves, append } = openLeaves(t);
  const detail = { records: 1, leaves: '0', before: 9, ahead: 5 * 365 * 86_400 + 7 };
  const data = [filingLeaf(1), leaf('RECORDS_ERASED', 'LOG', detail)];
  append(data.length, (at) => data[at] ?? '');
  for (const [isSandbox, before] of [
    [true, 7],
    [false, -5 * 365 * 86_400],
  ] as const) {
    const tree = createVerifiedTree(leaves);
    const index = createLogIndex(leaves, tree, () => assert.fail('no leaf is damaged'), isSandbox);
    assert.equal(index.erasedBefore(0), before);
  }
});

const by = { callerId: 1, caller: 'gallery' };
const filing: StoreRequest = { effect: toFile(by) };

/** A core on a new database with the platform of caller 1, and a function that opens the database again. */
async function openGallery(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const open = () => {
    const core = openCore({ dataDir, ...sandbox, opening: 'EITHER' });
    t.after(() => core.close());
    return core;
  };
  const core = open();
  const key = { keyId: 'k', apiKey: 'k', sealedSecret: Buffer.alloc(32), createdAtS: 0 };
  const platform = { name: by.caller, tier: 'ENTERPRISE', monthlyQuota: undefined } as const;
  await core.executeBatch([{ effect: { kind: 'AddPlatform', by: tester, platform, key } }]);
  return { core, open, openRaw: () => openRaw(t, dataDir) };
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

test('filings follow the leaves that are stored, and fail if these cannot be read', async (t) => {
  const { core: before, open, openRaw } = await openGallery(t);
  assert.deepEqual(numbersIn(await before.executeBatch([filing, filing])), ['000001', '000002']);
  before.close();
  const between = open();
  assert.deepEqual(numbersIn(await between.executeBatch([filing])), ['000003']);
  between.close();
  const core = open();
  const raw = openRaw();
  raw.exec('DROP TRIGGER log_leaf_never_changes');
  for (const damage of ["data = data || char(10) || '{}'", 'hashes = zeroblob(5)']) {
    raw.exec(`UPDATE log_leaf SET ${damage}`);
    const rows = rowsIn(raw);
    assert.deepEqual(numbersIn(await core.executeBatch([filing, filing, filing])), [
      'failed',
      'failed',
      'failed',
    ]);
    assert.deepEqual(rowsIn(raw), rows);
  }
});

test('a row without a leaf stops filings until it is removed, and its number is issued once', async (t) => {
  const { core, openRaw } = await openGallery(t);
  await core.executeBatch([filing]);
  const raw = openRaw();
  raw.exec(`INSERT INTO filing SELECT id + 1, 'AS-2026-000002', caller_id, author, era, size, material, condition, price, hash,
    timestamp, filed_at_s, id, salt, leaf_index, NULL, record_version, attachments FROM filing`);
  for (let attempt = 0; attempt < 2; attempt += 1)
    assert.deepEqual(numbersIn(await core.executeBatch([filing, filing])), ['failed', 'failed']);
  raw.exec("DROP TRIGGER filing_is_retained; DELETE FROM filing WHERE filing_no = 'AS-2026-000002'");
  assert.deepEqual(numbersIn(await core.executeBatch([filing, filing])), ['000002', '000003']);
});
