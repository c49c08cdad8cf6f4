import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { serialize } from 'node:v8';
import type Sqlite from 'better-sqlite3';
import { appendLeaf, emptyTree, leafHash, rootOf } from '../../src/domain/merkle.ts';
import type { PageQuery } from '../../src/store/paging.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { idempotencyRetentionS, nonceRetentionS, perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  before,
  bringTo,
  filingOf,
  hashOf,
  idOf,
  makeEarlierDatabase,
  openedAtS,
  states,
  timestamp,
} from './earlier-database.ts';
import {
  allPages,
  anyOrder,
  caseOf,
  due,
  fileOne,
  inNeed,
  noon,
  nowS,
  opened,
  refused,
  resolved,
  sandbox,
  settled,
  spend,
  toFile,
  toResolve,
  transfersOf,
  underKey,
} from './promises/fixtures.ts';

const gallery = { callerId: 1, caller: 'gallery' };

/** The store on such a database. */
function openEarlier(t: TestContext) {
  const { dataDir, open } = makeEarlierDatabase(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  return { store, dataDir, open };
}

test('earlier orders get the instructions and the history that their state tells of', async (t) => {
  const { dataDir, open } = makeEarlierDatabase(t);
  openDatabase({ dataDir, ...sandbox }).$client.close();
  const raw = open();
  const operations = raw
    .prepare('SELECT order_id, kind, status, prepared_at_ms FROM escrow_instruction ORDER BY order_id, id')
    .raw()
    .all();
  const openedAtMs = openedAtS * 1_000;
  assert.deepEqual(operations, [
    [1, 'FREEZE', 'UNKNOWN', openedAtMs],
    [2, 'FREEZE', 'CONFIRMED', openedAtMs],
    [3, 'FREEZE', 'CONFIRMED', openedAtMs],
    [3, 'RELEASE', 'CONFIRMED', openedAtMs],
    [4, 'FREEZE', 'DECLINED', openedAtMs],
  ]);
  const names = raw.prepare('SELECT instruction_id FROM escrow_instruction').pluck().all() as string[];
  assert.equal(new Set(names).size, 5);
  for (const name of names) assert.match(name, /^[0-9a-f]{32}$/);
  const history = raw
    .prepare(
      'SELECT order_id, position, state, at, changed_at_s FROM escrow_change ORDER BY order_id, position',
    )
    .raw()
    .all();
  assert.deepEqual(history, [
    [1, 1, 'UNPAID', timestamp, openedAtS],
    [2, 1, 'UNPAID', timestamp, openedAtS],
    [2, 2, 'FROZEN', timestamp, openedAtS],
    [3, 1, 'UNPAID', timestamp, openedAtS],
    [3, 2, 'FROZEN', timestamp, openedAtS],
    [3, 3, 'RELEASED', timestamp, openedAtS],
    [4, 1, 'UNPAID', timestamp, openedAtS],
    [4, 2, 'CLOSED', timestamp, openedAtS],
  ]);
  assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok');
  assert.deepEqual(raw.pragma('foreign_key_check'), []);
});

test('earlier orders are found and listed as they were', async (t) => {
  const { store } = openEarlier(t);
  const { items } = await perform(store, {
    kind: 'ListEscrows',
    filter: { ...anyOrder, owner: 1 },
    page: { from: undefined, size: 10 },
  });
  assert.deepEqual(
    items.map(({ escrowId, state, filingNo, amount }) => [escrowId, state, filingNo, amount]),
    states.map((state) => [idOf(state), state, filingOf(state), 500n]).reverse(),
  );
  for (const state of states) {
    const found = await caseOf(store, idOf(state));
    const { reference, failedAttempts, review, accepted, openedAtMs } = found;
    assert.deepEqual(
      { reference, failedAttempts, review, accepted, openedAtMs },
      {
        reference: undefined,
        failedAttempts: 0,
        review: undefined,
        accepted: undefined,
        openedAtMs: openedAtS * 1_000,
      },
    );
    assert.equal(found.open.length, state === 'UNPAID' ? 1 : 0);
    assert.equal(found.order.history.at(-1)?.state, state);
  }
});

test('the numbers of earlier filings go on, and are stored with the filings alone', async (t) => {
  const { store, open } = openEarlier(t);
  assert.equal(await fileOne(store, gallery), 'AS-2026-000005');
  const sequences = open().prepare('SELECT * FROM number_sequence').raw().all();
  assert.deepEqual(sequences, [['ESCROW', 2026, 4]]);
});

test('the records of before are leaves of the evidence log, filings first, and a leaf says how many', async (t) => {
  const { store, open } = openEarlier(t);
  await fileOne(store, gallery);
  const { size, root } = await perform(store, { kind: 'GetTree' });
  const leaves = (await perform(store, { kind: 'ReadLeaves', index: 0, width: size })) ?? [];
  let tree = emptyTree;
  for (const leaf of leaves) ({ tree } = appendLeaf(tree, leafHash(leaf)));
  assert.deepEqual(Buffer.from(rootOf(tree.roots)), Buffer.from(root));
  const told = leaves.map((leaf) => JSON.parse(leaf));
  assert.deepEqual(
    told.map(({ kind, number, sequence, time }) => [kind, number, sequence, time]),
    [
      ...states.map((state) => ['FILING', filingOf(state), 1, openedAtS]),
      ['TRANSFER', filingOf('RELEASED'), 2, openedAtS],
      ['LOG_BEGUN', 'LOG', 1, openedAtS],
      ['FILING', 'AS-2026-000005', 1, noon.atMs / 1_000],
    ],
  );
  assert.deepEqual(told[5].detail, { adopted: 5 });
  for (const [at, filingNo] of states.map(filingOf).entries()) {
    const found = await perform(store, { kind: 'FindRecord', filingNo, sequence: 1, owner: undefined });
    assert.equal(found?.leafIndex, at);
    assert.equal(found.content?.salt.length, 32);
  }
  assert.throws(() => open().exec('UPDATE filing SET salt = randomblob(32)'), /never changes/);
});

for (const [what, hasRecords] of [
  ['with records', true],
  ['without records', false],
] as const)
  test(`numbers that were left out before are leaves behind the beginning of the log: ${what}`, async (t) => {
    const { dataDir, open } = makeEarlierDatabase(t, 14);
    const raw = open();
    raw.exec("UPDATE deployment SET currency = 'CNY'");
    if (!hasRecords) {
      for (const trigger of ['filing_is_retained', 'provenance_record_is_retained'])
        raw.exec(`DROP TRIGGER ${trigger}`);
      raw.pragma('foreign_keys = OFF');
      for (const table of ['provenance_record', 'filing']) raw.exec(`DELETE FROM ${table}`);
    }
    const [earlier, later] = [openedAtS + 50, openedAtS + 90];
    raw.exec(`INSERT INTO restoration VALUES (1, 1, 1, ${later}), (2, 1, 1, ${earlier}), (3, 1, 1, NULL)`);
    raw.exec(`INSERT INTO number_gap VALUES ('FILING', 2026, 900, 905, 1), ('FILING', 2025, 6, 9, 2),
      ('FILING', 2026, 20, 30, 2), ('ESCROW', 2026, 4, 40, 1), ('FILING', 2026, 950, 960, 3)`);
    raw.close();
    const store = createSqliteStore({ dataDir, ...sandbox });
    t.after(() => store.close());
    const { size } = await perform(store, { kind: 'GetTree' });
    const leaves = (await perform(store, { kind: 'ReadLeaves', index: 0, width: size })) ?? [];
    const acts = leaves.map((leaf) => JSON.parse(leaf)).filter(({ number }) => number === 'LOG');
    assert.deepEqual(
      acts.map(({ kind, time, detail }) => [kind, time, detail]),
      [
        ['LOG_BEGUN', hasRecords ? openedAtS : earlier, { adopted: hasRecords ? 5 : 0 }],
        ['NUMBERS_SKIPPED', earlier, { after: 6, through: 9, year: 2025 }],
        ['NUMBERS_SKIPPED', earlier, { after: 20, through: 30, year: 2026 }],
        ['NUMBERS_SKIPPED', later, { after: 900, through: 905, year: 2026 }],
      ],
    );
  });

/** Adds to such a database a second platform, and filings of both in two years. */
function addEarlierFilings(raw: Sqlite.Database): void {
  raw.exec("INSERT INTO caller VALUES (2, 'auction house', 'ENTERPRISE', NULL)");
  const fileArtwork = raw.prepare(
    `INSERT INTO filing VALUES (?, ?, ?, 'a', 'b', 'c', 'd', 'e', 1, ?, '${timestamp}', ${openedAtS})`,
  );
  fileArtwork.run(5, 'AS-2025-000001', 2, hashOf('AS-2025-000001'));
  fileArtwork.run(6, 'AS-2025-000002', 1, hashOf('AS-2025-000002'));
  fileArtwork.run(7, 'AS-2026-000005', 2, hashOf('AS-2026-000005'));
  fileArtwork.run(8, 'AS-2025-000003', 1, hashOf('AS-2025-000003'));
  fileArtwork.run(9, 'AS-2026-000006', 1, hashOf('AS-2026-000006'));
  fileArtwork.run(10, 'AS-2026-000007', 2, hashOf('AS-2026-000007'));
}

test('earlier filings of each caller are listed by number, page by page, and new ones before them', async (t) => {
  const { dataDir, open } = makeEarlierDatabase(t);
  addEarlierFilings(open());
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const list = (owner: number, year: number | undefined, page: PageQuery) =>
    perform(store, { kind: 'ListFilings', filter: { owner, year }, page });
  const own = {
    1: { 2026: [6, 4, 3, 2, 1], 2025: [3, 2] },
    2: { 2026: [7, 5], 2025: [1] },
  };
  const numbersOf = (places: readonly number[], year: number) =>
    places.map((place) => `AS-${year}-00000${place}`);
  const assertListed = async (owner: 1 | 2) => {
    const of2026 = numbersOf(own[owner][2026], 2026);
    const of2025 = numbersOf(own[owner][2025], 2025);
    for (const size of [1, 2, 3, 10]) {
      const listed = async (year?: number) =>
        (await allPages((page) => list(owner, year, page), size)).flat().map(({ filingNo }) => filingNo);
      assert.deepEqual(await listed(), [...of2026, ...of2025]);
      assert.deepEqual(await listed(2026), of2026);
      assert.deepEqual(await listed(2025), of2025);
      assert.deepEqual(await listed(2024), []);
    }
  };
  await assertListed(1);
  await assertListed(2);
  // A page that was asked for before goes on behind the row that it ended with.
  const { items } = await list(1, undefined, { from: 3, size: 3 });
  assert.deepEqual(
    items.map(({ filingNo }) => filingNo),
    ['AS-2026-000002', 'AS-2026-000001', 'AS-2025-000003'],
  );

  assert.equal(await fileOne(store, { callerId: 2, caller: 'auction house' }), 'AS-2026-000008');
  assert.equal(await fileOne(store, gallery), 'AS-2026-000009');
  own[2][2026].unshift(8);
  own[1][2026].unshift(9);
  await assertListed(1);
  await assertListed(2);
  assert.throws(() => open().exec('UPDATE filing SET previous_id = NULL'), /never changes/);
});

test('of the records that were stored for a filing only its transfers are kept, and it answers as before', async (t) => {
  const { store, open } = openEarlier(t);
  const raw = open();
  const transfer = [filingOf('RELEASED'), 2, 'TRANSFER', '2026-11-20', openedAtS];
  assert.deepEqual(
    raw.prepare('SELECT filing_no, position, event, at, recorded_at_s FROM provenance_record').raw().all(),
    [transfer],
  );
  assert.throws(() => raw.exec('DELETE FROM provenance_record'), { code: 'SQLITE_CONSTRAINT_TRIGGER' });
  for (const state of states) {
    const events = state === 'RELEASED' ? ['SUBMITTED', 'TRANSFER'] : ['SUBMITTED'];
    assert.deepEqual(await perform(store, { kind: 'GetProvenance', filingNo: filingOf(state) }), {
      filingNo: filingOf(state),
      author: 'a',
      records: events.map((event) => ({ event, at: '2026-11-20' })),
    });
  }
});

test('an earlier order that is UNPAID is asked about at the start, and settles', async (t) => {
  const { store } = openEarlier(t);
  await perform(store, { kind: 'ResumeOpen', nowMs: 5 });
  assert.deepEqual(await due(store, 5, 9), [idOf('UNPAID')]);
  await refused(opened(store, gallery, filingOf('UNPAID')), 'ESCROW_ACTIVE');
  await perform(store, {
    kind: 'NoteSent',
    instructionId: (await caseOf(store, idOf('UNPAID'))).holdId,
    lookUpAtMs: 6,
  });
  await settled(store, idOf('UNPAID'), { to: 'FROZEN' });
  await resolved(store, gallery, idOf('UNPAID'), 'RELEASE');
  assert.equal(await transfersOf(store, filingOf('UNPAID')), 1);
  const { order } = await caseOf(store, idOf('UNPAID'));
  assert.deepEqual(
    order.history.map(({ state, at }) => [state, at]),
    [
      ['UNPAID', timestamp],
      ['FROZEN', noon.timestamp],
      ['RELEASED', noon.timestamp],
    ],
  );
});

for (const kind of ['RELEASE', 'REFUND'] as const) {
  test(`an earlier order that is FROZEN can have its ${kind}`, async (t) => {
    const { store } = openEarlier(t);
    await refused(opened(store, gallery, filingOf('FROZEN')), 'ESCROW_ACTIVE');
    await resolved(store, gallery, idOf('FROZEN'), kind);
    const { order, open } = await caseOf(store, idOf('FROZEN'));
    assert.deepEqual([order.state, open], [kind === 'RELEASE' ? 'RELEASED' : 'REFUNDED', []]);
    assert.equal(order.history.length, 3);
    assert.equal(await transfersOf(store, filingOf('FROZEN')), kind === 'RELEASE' ? 1 : 0);
    await opened(store, gallery, filingOf('FROZEN'));
  });
}

for (const state of ['RELEASED', 'CLOSED'] as const) {
  test(`an earlier order that is ${state} stays so, and its filing can be sold again`, async (t) => {
    const { store } = openEarlier(t);
    for (const kind of ['RELEASE', 'REFUND'] as const) {
      const prepared = perform(store, toResolve(gallery, kind, idOf(state), { owner: 1 }));
      await refused(prepared, 'ESCROW_STATE_CONFLICT');
    }
    const transfers = await transfersOf(store, filingOf(state));
    const { escrowId } = await opened(store, gallery, filingOf(state));
    await settled(store, escrowId, { to: 'FROZEN' });
    await resolved(store, gallery, escrowId, 'RELEASE');
    assert.equal(await transfersOf(store, filingOf(state)), transfers + 1);
    assert.equal((await caseOf(store, idOf(state))).order.state, state);
  });
}

test('an earlier platform is ACTIVE, and can be suspended', async (t) => {
  const { store } = openEarlier(t);
  assert.equal((await perform(store, { kind: 'FindPlatform', name: 'gallery' }))?.status, 'ACTIVE');
  assert.equal(
    (await perform(store, { kind: 'SetPlatformStatus', by: tester, name: 'gallery', status: 'SUSPENDED' }))
      .status,
    'SUSPENDED',
  );
});

/** Adds to such a database what its next releases did, and a key that has an instruction. */
function addInstructedKey(raw: Sqlite.Database): void {
  bringTo(raw, 5);
  raw.exec(`INSERT INTO idempotency_key (caller_id, key, fingerprint, claimed_at_s, operation_id)
    SELECT 1, 'instructed', zeroblob(32), ${nowS}, operation_id FROM escrow_operation WHERE order_id = 1`);
}

test('earlier idempotency keys are kept for their time, and given to no request but that with an instruction', async (t) => {
  const { dataDir, open } = makeEarlierDatabase(t);
  addInstructedKey(open());
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const said = async (key: string, fill: number, atS = nowS + 1) => {
    const fingerprint = new Uint8Array(32).fill(fill);
    const unit = underKey(1, key, toFile(gallery), { nowS: atS, fingerprint });
    const { outcome } = await store.execute(unit);
    return outcome.kind === 'NOT_ADMITTED' ? outcome.why : outcome;
  };
  for (const key of ['answered', 'unanswered', 'instructed']) {
    assert.equal(await said(key, 1), 'IDEMPOTENCY_KEY_REUSED');
  }
  // What was answered then is not kept in a form that can be given now, and is not carried out again.
  for (const key of ['answered', 'unanswered']) assert.equal(await said(key, 0), 'IDEMPOTENCY_KEY_REUSED');
  const { holdId } = await caseOf(store, idOf('UNPAID'));
  assert.partialDeepStrictEqual(await said('instructed', 0), {
    result: { instructionId: holdId, status: 'UNKNOWN' },
    isReplay: false,
  });
  await settled(store, idOf('UNPAID'), { to: 'FROZEN' });
  assert.partialDeepStrictEqual(await said('instructed', 0), {
    result: { instructionId: holdId },
    isReplay: true,
  });
  assert.partialDeepStrictEqual(await said('answered', 1, nowS + idempotencyRetentionS), { kind: 'DONE' });
  assert.equal(open().pragma('integrity_check', { simple: true }), 'ok');
});

test('a nonce that was spent before stays spent', async (t) => {
  const { store } = openEarlier(t);
  assert.equal(await spend(store, 1, 'spent before', nowS + nonceRetentionS - 1), false);
  assert.equal(await spend(store, 2, 'spent before', nowS), true);
  assert.equal(await spend(store, 1, 'spent before', nowS + nonceRetentionS), true);
});

test('a database from before is stamped with the currency of its first opening', async (t) => {
  const { store, dataDir, open } = openEarlier(t);
  assert.equal(open().prepare('SELECT currency FROM deployment').pluck().get(), 'CNY');
  await store.close();
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox, currency: 'USD' }), DatabaseError);
  await createSqliteStore({ dataDir, ...sandbox }).close();
});

test('a database from before that is refused is neither migrated nor stamped', (t) => {
  const { dataDir, open } = makeEarlierDatabase(t);
  const environment = 'production';
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox, environment }), DatabaseError);
  const raw = open();
  assert.equal(raw.pragma('user_version', { simple: true }), before);
  assert.equal(
    raw.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'escrow_change'").pluck().get(),
    0,
  );
});

test('opening again migrates nothing a second time', async (t) => {
  const { store, dataDir, open } = openEarlier(t);
  const count = () =>
    open()
      .prepare('SELECT (SELECT count(*) FROM escrow_instruction), (SELECT count(*) FROM escrow_change)')
      .raw()
      .get();
  assert.deepEqual(count(), [5, 8]);
  await store.close();
  await createSqliteStore({ dataDir, ...sandbox }).close();
  assert.deepEqual(count(), [5, 8]);
});

/** The schema whose columns had other names. */
const renamedSince = 10;

/** Makes a database of that schema in which each of these columns says something. */
function makeBeforeRenaming(t: TestContext) {
  const { dataDir, open } = makeEarlierDatabase(t);
  const raw = open();
  bringTo(raw, renamedSince);
  raw.exec(`
    UPDATE escrow SET attention = 'The amounts differ.', found_standing = 'HELD', found_amount = 1,
      found_currency = 'CNY', unanswered = 2, notices = 3 WHERE state = 'FROZEN';
    UPDATE escrow SET found_standing = 'VOID', accepted = 1 WHERE state = 'CLOSED';
    INSERT INTO escrow_operation (operation_id, order_id, kind, status, prepared_at_ms)
      SELECT 'release of ' || escrow_id, id, 'RELEASE', 'UNKNOWN', 7 FROM escrow WHERE state = 'FROZEN';
    INSERT INTO idempotency_key (caller_id, key, fingerprint, claimed_at_s, operation_id)
      SELECT 1, kind, zeroblob(32), ${nowS}, operation_id FROM escrow_operation WHERE status = 'UNKNOWN'`);
  raw
    .prepare(
      `INSERT INTO idempotency_key (caller_id, key, fingerprint, claimed_at_s, outcome, request_id)
       VALUES (1, 'done', zeroblob(32), ?, ?, 'before')`,
    )
    .run(nowS, serialize({ kind: 'DONE', result: { filingNo: filingOf('FROZEN') }, isReplay: false }));
  return { dataDir, open };
}

test('what columns said before they were renamed is read as before', async (t) => {
  const { dataDir } = makeBeforeRenaming(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const { holdId } = await caseOf(store, idOf('UNPAID'));
  const release = `release of ${idOf('FROZEN')}`;
  const inReview = await perform(store, {
    kind: 'ListCases',
    selection: inNeed,
    page: { from: undefined, size: 10 },
  });
  assert.equal(inReview.items.length, 1);
  assert.partialDeepStrictEqual(inReview.items[0], {
    order: { escrowId: idOf('FROZEN'), pending: 'RELEASE' },
    review: 'The amounts differ.',
    failedAttempts: 2,
    notificationCount: 3,
    accepted: undefined,
    open: [{ instructionId: release, kind: 'RELEASE', status: 'UNKNOWN' }],
  });
  const found = (await caseOf(store, idOf('CLOSED'))).accepted;
  assert.deepEqual(found, { status: 'VOID', amount: undefined, currency: undefined });

  const repeated = async (key: string) => {
    const fingerprint = new Uint8Array(32);
    return store.execute(underKey(1, key, toFile(gallery), { nowS: nowS + 1, fingerprint }));
  };
  for (const [key, instructionId] of [
    ['FREEZE', holdId],
    ['RELEASE', release],
  ] as const) {
    const { outcome } = await repeated(key);
    assert.partialDeepStrictEqual(outcome, {
      result: { instructionId, kind: key, status: 'UNKNOWN' },
      isReplay: false,
    });
  }
  assert.partialDeepStrictEqual(await repeated('done'), {
    outcome: { result: { filingNo: filingOf('FROZEN') }, isReplay: true },
    claimedBy: 'before',
  });

  await perform(store, {
    kind: 'Decide',
    by: tester,
    escrowId: idOf('FROZEN'),
    decision: 'ACCEPT',
    instructionId: 'none',
    nowMs: 5,
  });
  const decided = await caseOf(store, idOf('FROZEN'));
  assert.deepEqual(
    [decided.review, decided.accepted],
    [undefined, { status: 'HELD', amount: 1n, currency: 'CNY' }],
  );
});

test('a database with columns of other names has the schema of a new one after it was opened', (t) => {
  const { dataDir, open } = makeBeforeRenaming(t);
  openDatabase({ dataDir, ...sandbox }).$client.close();
  const raw = open();
  const { $client: fresh } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => fresh.close());
  const schemaOf = (client: Sqlite.Database) =>
    client.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name').all();
  assert.deepEqual(schemaOf(raw), schemaOf(fresh));
  const text = JSON.stringify(schemaOf(raw));
  assert.doesNotMatch(text, /attention|notices|unanswered|standing|operation|in_need/);
  assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok');
  assert.deepEqual(raw.pragma('foreign_key_check'), []);
});
