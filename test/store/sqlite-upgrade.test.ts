import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../src/domain/filing.ts';
import { scopes } from '../../src/domain/token.ts';
import type { NewToken } from '../../src/store/caller-commands.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { goBack } from '../../src/store/sqlite/downgrade.ts';
import { takeBack } from '../../src/store/sqlite/downgrade-steps.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { faultsInLog } from '../../src/store/sqlite/log-check.ts';
import { logSchema } from '../../src/store/sqlite/migrations.ts';
import { takeServingLock } from '../../src/store/sqlite/serving-lock.ts';
import { copyBefore, planUpgrade, refuseWithoutRoom } from '../../src/store/sqlite/upgrade.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { forgeIn } from '../support/forging.ts';
import { startService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { businessScopes } from '../support/tokens.ts';
import { filingOf, idOf, makeEarlierDatabase, newestSchema, states } from './earlier-database.ts';
import {
  addPlatform,
  allPages,
  anyFiling,
  fileOne,
  newToken,
  opened,
  refused,
  sandbox,
  settled,
  spend,
  toRegister,
  transfersOf,
} from './promises/fixtures.ts';

const gallery = { callerId: 1, caller: 'gallery' };
/** Opens no URL: there are no endpoints here. */
const urlOf = () => assert.fail();
/** From the first on, all schemas that had no evidence log. */
const schemas = Array.from({ length: logSchema - 1 }, (_, place) => place + 1);
/** Those before this one that had. */
const loggedSchemas = Array.from({ length: newestSchema - logSchema }, (_, place) => logSchema + place);

/** The database of a release, in a folder that was served. */
function releasedDatabase(t: TestContext, schema: number) {
  const { dataDir, open } = makeEarlierDatabase(t, schema);
  const file = join(dataDir, 'artseal.db');
  const raw = open();
  if (schema >= 4) raw.exec("UPDATE deployment SET currency = 'CNY', provider = 'simulated'");
  raw.pragma('journal_mode = WAL');
  raw.close();
  takeServingLock(dataDir).release();
  return { dataDir, file, copy: copyBefore(file, schema), upgraded: () => openUpgraded(t, dataDir) };
}

function openUpgraded(t: TestContext, dataDir: string) {
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  return store;
}

/** Tables with their rows. */
type Rows = readonly (readonly [string, readonly (readonly unknown[])[]])[];

/** Everything in a database: its schema, and the rows of all tables. */
function contentOf(file: string) {
  const raw = new Sqlite(file, { readonly: true });
  try {
    assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok');
    assert.deepEqual(raw.pragma('foreign_key_check'), []);
    const tables = raw
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all();
    return {
      version: raw.pragma('user_version', { simple: true }),
      schema: raw.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY type, name').raw().all(),
      rows: tables.map((name) => [name, raw.prepare(`SELECT * FROM ${name}`).raw().all()]) as Rows,
    };
  } finally {
    raw.close();
  }
}

/** The number that a release of that schema gives next, by the rule that it has in its source. */
function nextNumber(raw: Sqlite.Database, schema: number): string {
  const query =
    schema < 9
      ? "SELECT last + 1 FROM number_sequence WHERE kind = 'FILING' AND year = 2026"
      : "SELECT CAST(substr(max(filing_no), 9) AS integer) + 1 FROM filing WHERE filing_no BETWEEN 'AS-2026-000001' AND 'AS-2026-999999'";
  return `AS-2026-${String(raw.prepare(query).pluck().get()).padStart(6, '0')}`;
}

/** The last schema in which a token could do everything, but for governing. */
const beforeScopes = 13;

test('tokens from before there were scopes keep what they could do, and going back gives none more', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, beforeScopes);
  const earlier = new Sqlite(file);
  earlier.exec(`INSERT INTO caller (id, name) VALUES (9, 'ledger')`);
  const insert = earlier.prepare('INSERT INTO service_token VALUES (NULL, ?, ?, 9, ?, 1, ?)');
  insert.run('tok_service', Buffer.alloc(32, 1), 0, null);
  insert.run('tok_operator', Buffer.alloc(32, 2), 1, null);
  insert.run('tok_revoked', Buffer.alloc(32, 3), 1, 5);
  earlier.close();

  const store = upgraded();
  const { items } = await perform(store, { kind: 'ListTokens', page: { from: undefined, size: 10 } });
  assert.deepEqual(
    items.map(({ tokenId, scopes, expiresAtS, revokedAtS, platform }) => [
      ...[tokenId, scopes.join(), expiresAtS, revokedAtS, platform],
    ]),
    [
      ['tok_service', 'read,file,escrow', null, null, null],
      ['tok_operator', 'read,file,escrow,operate', null, null, null],
      ['tok_revoked', 'read,file,escrow,operate', null, 5, null],
    ],
  );
  const add = async (tokenId: string, over: Partial<NewToken>) =>
    perform(store, { kind: 'AddToken', by: tester, name: 'ledger', token: newToken({ tokenId, ...over }) });
  await add('tok_new', { scopes: businessScopes });
  await add('tok_all', { scopes });
  await add('tok_less', { scopes: ['read', 'escrow'] });
  await add('tok_govern', { scopes: ['operate'] });
  await add('tok_none', { scopes: [] });
  await add('tok_ends', { expiresAtS: 4_000_000_000 });
  await add('tok_platform', { platform: 'gallery' });
  await store.close();

  goBack(dataDir, urlOf);
  const back = new Sqlite(file, { readonly: true });
  t.after(() => back.close());
  const tokens = back.prepare(
    'SELECT token_id, operator, revoked_at_s IS NULL FROM service_token ORDER BY id',
  );
  assert.deepEqual(tokens.raw().all(), [
    ['tok_service', 0, 1],
    ['tok_operator', 1, 1],
    ['tok_revoked', 1, 0],
    ['tok_new', 0, 1],
    ['tok_all', 1, 1],
    ['tok_less', 0, 0],
    ['tok_govern', 1, 0],
    ['tok_none', 0, 0],
    ['tok_ends', 0, 0],
    ['tok_platform', 0, 0],
  ]);
});

for (const schema of schemas) {
  test(`from schema ${schema}: the copy is what was there, and going back loses no filing and gives no number twice`, async (t) => {
    const { dataDir, file, copy, upgraded } = releasedDatabase(t, schema);
    const was = contentOf(file);

    const store = upgraded();
    assert.deepEqual(contentOf(copy), was);
    assert.equal(statSync(copy).mode & 0o777, 0o600);
    const counted = () => perform(store, { kind: 'CountFilings', callerId: gallery.callerId, year: 2026 });
    assert.equal(await counted(), states.length);
    const given = [await fileOne(store, gallery), await fileOne(store, gallery)];
    assert.equal(await counted(), states.length + given.length);
    const later = await addPlatform(store, 'later');
    given.push(await fileOne(store, later));
    assert.equal(await spend(store, 1, 'spent after', 7_000), true);
    const { escrowId } = await opened(store, gallery, given[0] ?? '');
    await perform(store, { kind: 'SetKeyStatus', by: tester, keyId: later.keyId, status: 'REVOKED' });
    const suspended = await addPlatform(store, 'suspended');
    await perform(store, { kind: 'SetPlatformStatus', by: tester, name: 'suspended', status: 'SUSPENDED' });
    await settled(store, idOf('UNPAID'), { to: 'CLOSED' });
    await store.close();
    const newer = contentOf(file);

    const went = goBack(dataDir, urlOf);
    assert.partialDeepStrictEqual(went, {
      schema,
      filings: 3,
      lostOrders: [escrowId],
      changedOrders: [idOf('UNPAID')],
      forgetsNonces: schema < 8,
    });
    assert.deepEqual(contentOf(went.left), newer);
    const back = contentOf(file);
    assert.equal(back.version, schema);
    assert.deepEqual(back.schema, was.schema);
    const raw = new Sqlite(file);
    t.after(() => raw.close());
    const numbers = raw.prepare('SELECT filing_no FROM filing ORDER BY id').pluck().all();
    assert.deepEqual(numbers, [...states.map(filingOf), ...given]);
    assert.equal(nextNumber(raw, schema), 'AS-2026-000008');
    const ids = raw.prepare("SELECT last FROM number_sequence WHERE kind = 'ESCROW'").pluck().all();
    assert.deepEqual(ids, [5]);
    const status = raw.prepare<string, string>('SELECT status FROM api_key WHERE key_id = ?').pluck();
    assert.equal(status.get(later.keyId), 'REVOKED');
    assert.equal(status.get(suspended.keyId), schema < 5 ? 'SUSPENDED' : 'ACTIVE');
    raw.close();

    // The earlier version works on it, and then it is upgraded again.
    const again = upgraded();
    assert.equal(await fileOne(again, gallery), 'AS-2026-000008');
    const listed = await allPages(
      (page) => perform(again, { kind: 'ListFilings', filter: anyFiling, page }),
      10,
    );
    assert.equal(listed.flat().length, 8);
    const own = await allPages(
      (page) => perform(again, { kind: 'ListFilings', filter: { owner: 1, year: 2026 }, page }),
      10,
    );
    assert.deepEqual(
      own.flat().map(({ filingNo }) => filingNo),
      ['AS-2026-000008', given[1], given[0], ...states.map(filingOf).reverse()],
    );
    assert.equal(
      (await perform(again, { kind: 'GetProvenance', filingNo: given[2] ?? '' }))?.records.length,
      1,
    );
    assert.equal(await transfersOf(again, filingOf('RELEASED')), 1);
    assert.equal(await spend(again, 1, 'spent after', 7_001), schema < 8);
    await refused(opened(again, gallery, filingOf('UNPAID')), 'ESCROW_ACTIVE');
  });
}

/** The schema from which on there are events. */
const eventSchema = 17;

/** Tables to which schemas that have an evidence log added columns, each behind the others; the schemas. */
const widened: Readonly<Record<string, readonly number[]>> = {
  deployment: [eventSchema, 19],
  escrow: [eventSchema],
  escrow_change: [18],
  caller: [19],
  latest_filing: [19],
};

/** The rows of the tables that going back leaves as they are, in the columns that they have in a schema. */
function keptOf(rows: Rows, schema: number): Rows {
  const isLeft = /^(log_leaf|event_.*|webhook.*|evidence_link)$/;
  return rows
    .filter(([table]) => !isLeft.test(table))
    .map(([table, content]) => {
      const added = (widened[table] ?? []).filter((since) => since > schema).length;
      return [table, content.map((row) => row.slice(0, row.length - added))];
    });
}

for (const schema of loggedSchemas) {
  test(`from schema ${schema}, which has an evidence log: going back loses nothing at all`, async (t) => {
    const { dataDir, file, copy, upgraded } = releasedDatabase(t, schema);
    const was = contentOf(file);
    const treeOf = (store: Store) => perform(store, { kind: 'GetTree' });

    const store = upgraded();
    assert.deepEqual(contentOf(copy), was);
    const { size } = await treeOf(store);
    const { callerId } = gallery;
    assert.equal(await perform(store, { kind: 'CountFilings', callerId, year: 2026 }), states.length);
    const given = await Promise.all(Array.from({ length: 40 }, () => fileOne(store, gallery)));
    const { escrowId } = await opened(store, gallery, given[0] ?? '');
    await settled(store, idOf('UNPAID'), { to: 'CLOSED' });
    const tree = await treeOf(store);
    assert.equal(tree.size, size + given.length);
    await store.close();
    const newer = contentOf(file);

    const went = goBack(dataDir, urlOf);
    assert.deepEqual(went, {
      ...{ database: file, schema, left: `${file}.schema-${newestSchema}.left`, filings: given.length },
      ...{ lostOrders: [], changedOrders: [], erased: 0, leavesLog: false, forgetsNonces: false },
    });
    assert.deepEqual(contentOf(went.left), newer);
    // What is renamed to the database must be all of it.
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.includes('.back')),
      [`artseal.db.schema-${schema}.backup`],
    );
    const back = contentOf(file);
    assert.deepEqual([back.version, back.schema], [schema, was.schema]);
    assert.deepEqual(keptOf(back.rows, newestSchema), keptOf(newer.rows, schema));
    assert.deepEqual(faultsInLog(file), []);

    // The earlier version works on it, and then it is upgraded again.
    const again = upgraded();
    assert.deepEqual(await treeOf(again), tree);
    assert.equal(await fileOne(again, gallery), 'AS-2026-000045');
    const filingNo = given[0] ?? '';
    assert.equal(await perform(again, { kind: 'CountFilings', callerId, year: 2026 }), 45);
    const { events } = await perform(again, { kind: 'ReadEvents', callerId, after: undefined });
    const sequences = events.map(({ sequence }) => sequence);
    if (schema < eventSchema) {
      // Events go on where none was before.
      assert.deepEqual(sequences, [1_000_001]);
      await refused(perform(again, { kind: 'ReadEvents', callerId, after: 1 }), 'EVENTS_EXPIRED');
    } else {
      assert.deepEqual(
        sequences,
        sequences.map((_, place) => place + 1),
      );
      assert.equal(events.at(-1)?.filingNo, 'AS-2026-000045');
    }
    assert.equal((await perform(again, { kind: 'GetProvenance', filingNo }))?.records.length, 1);
    await refused(opened(again, gallery, filingNo), 'ESCROW_ACTIVE');
    assert.ok(escrowId);
    assert.deepEqual(faultsInLog(file), []);
  });
}

test('going back to a schema that has them carries over parties and what operators did', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, 14);
  const earlier = new Sqlite(file);
  earlier.exec(
    `INSERT INTO party VALUES (1, 1, 'BUYER', 'stays', '{}', 5, NULL), (2, 1, 'BUYER', 'goes', '{}', 5, NULL)`,
  );
  earlier.exec(
    "INSERT INTO audit_entry VALUES (1, 5, 'user of before', 'party add', 'buyer', NULL, NULL, NULL)",
  );
  earlier.close();
  const store = upgraded();
  await perform(store, toRegister('gallery', { partyId: 'new' }));
  await perform(
    store,
    toRegister('gallery', { partyId: 'goes', names: { customer: 'cus_9', paymentMethod: 'pm_9' } }),
  );
  await perform(store, { kind: 'RemoveParty', by: tester, caller: 'gallery', role: 'BUYER', partyId: 'new' });
  await store.close();
  const rowsOf = (name: string) => contentOf(file).rows.find(([table]) => table === name)?.[1];
  const [parties, acts] = [rowsOf('party'), rowsOf('audit_entry')];
  assert.deepEqual(
    [parties, acts].map((rows) => (rows as unknown[]).length),
    [4, 4],
  );
  goBack(dataDir, urlOf);
  assert.equal(contentOf(file).version, 14);
  assert.deepEqual([rowsOf('party'), rowsOf('audit_entry')], [parties, acts]);
});

test('filings that were erased since the upgrade are told when going back brings them again', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, 9);
  const [filingNo, timestamp] = ['AS-2015-000001', '2015-06-01T12:00:00+00:00'];
  const work = { author: 'of long ago', era: 'b', size: 'c', material: 'd', condition: 'e', price: 1n };
  const hash = evidenceHash({ ...work, filingNo, timestamp });
  const earlier = new Sqlite(file);
  earlier.exec(`INSERT INTO filing VALUES (9, '${filingNo}', 1, 'of long ago', 'b', 'c', 'd', 'e', 1, '${hash}',
    '${timestamp}', 1433160000)`);
  earlier.close();
  const store = upgraded();
  await perform(store, { kind: 'AcceptClock', by: tester });
  const erased = await perform(store, { kind: 'EraseFilings', by: tester, filingNos: [filingNo] });
  assert.equal(erased.length, 1);
  await store.close();
  assert.equal(goBack(dataDir, urlOf).erased, 1);
  const back = new Sqlite(file, { readonly: true });
  t.after(() => back.close());
  assert.equal(back.prepare('SELECT author FROM filing WHERE id = 9').pluck().get(), 'of long ago');
});

test('a copy is made of what is in the log as well, and none where nothing is to be migrated', async (t) => {
  const { dataDir, file, copy, upgraded } = releasedDatabase(t, 12);
  const other = new Sqlite(file);
  other.exec("INSERT INTO caller (id, name, tier) VALUES (2, 'in the log', 'TRIAL')");
  assert.ok(existsSync(`${file}-wal`));
  await upgraded().close();
  other.close();
  const raw = new Sqlite(copy, { readonly: true });
  assert.equal(raw.prepare('SELECT count(*) FROM caller').pluck().get(), 2);
  raw.close();
  const names = readdirSync(dataDir);
  await upgraded().close();
  assert.deepEqual(readdirSync(dataDir), names);
});

test('the copies of the last two upgrades are kept', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, 7);
  // Those of 9 and 11 are from before it was brought back.
  for (const schema of [2, 4, 5, 9, 11]) writeFileSync(copyBefore(file, schema), '');
  await upgraded().close();
  const copies = readdirSync(dataDir).filter((name) => name.endsWith('.backup'));
  assert.deepEqual(copies.sort(), ['artseal.db.schema-5.backup', 'artseal.db.schema-7.backup']);
});

test('what another process serves is not migrated under it, and its own commands go on', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, 9);
  const was = contentOf(file);
  const lock = takeServingLock(dataDir);
  assert.throws(upgraded, {
    name: 'DatabaseError',
    message: /schema 9\), and another artseal serves it: use the commands of that version, or stop it/,
  });
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox, serving: true }), DatabaseError);
  assert.deepEqual(contentOf(file), was);
  assert.equal(planUpgrade(dataDir).isServed, true);
  lock.release();
  await upgraded().close();
  assert.equal(contentOf(file).version, newestSchema);
});

test('the lock is let go when a migration was done, and the serving process keeps its own', async (t) => {
  const { dataDir } = releasedDatabase(t, 9);
  const serving = createSqliteStore({ dataDir, ...sandbox, serving: true });
  t.after(() => serving.close());
  assert.throws(() => takeServingLock(dataDir), DatabaseError);
  await serving.beginServing();
  await serving.close();
  takeServingLock(dataDir).release();
});

test('a plan says what an upgrade does, and changes nothing', (t) => {
  const { dataDir, file, copy } = releasedDatabase(t, 9);
  const bytes = readFileSync(file);
  const plan = planUpgrade(dataDir);
  assert.partialDeepStrictEqual(plan, {
    database: file,
    schema: 9,
    newSchema: newestSchema,
    migrations: ['0009_filing_chains', '0010_columns_renamed', '0011_resolutions_open', '0012_restorations'],
    copy,
    isServed: false,
  });
  assert.ok(plan.neededBytes > 2 * bytes.length && plan.freeBytes > 0 && plan.estimatedS >= 1);
  assert.deepEqual(readFileSync(file), bytes);
  assert.ok(!existsSync(copy));
});

test('without room for the copy nothing is migrated, unless it is to go without', (t) => {
  const { dataDir, file, copy } = releasedDatabase(t, 9);
  assert.throws(
    () => refuseWithoutRoom(file, 2_000, 1_000),
    /needs .* MB free beside it .* artseal upgrade --without-copy/,
  );
  const older = copyBefore(file, 8);
  writeFileSync(older, '');
  openDatabase({ dataDir, ...sandbox }, { keepsCopy: false }).$client.close();
  assert.equal(contentOf(file).version, newestSchema);
  assert.ok(!existsSync(copy));
  assert.ok(!existsSync(older), 'going back would skip the upgrade that has no copy');
});

test('going back is refused without a copy, while it is served, and while another process has it open', async (t) => {
  const { dataDir, file, copy, upgraded } = releasedDatabase(t, 9);
  assert.throws(() => goBack(dataDir, urlOf), /there is no copy of an earlier version/);
  await upgraded().close();
  const newer = contentOf(file);
  const lock = takeServingLock(dataDir);
  assert.throws(() => goBack(dataDir, urlOf), /another artseal serves/);
  lock.release();
  const other = new Sqlite(file);
  other.exec("UPDATE caller SET name = 'renamed'; UPDATE caller SET name = 'gallery'");
  assert.throws(() => goBack(dataDir, urlOf), /another process has .* open/);
  other.close();
  assert.deepEqual(contentOf(file), newer);
  assert.ok(!existsSync(`${file}.back`));
  assert.ok(existsSync(copy));
  goBack(dataDir, urlOf);
  assert.equal(contentOf(file).version, 9);
});

/** The journal of a process that was killed while it changed another copy of a database. */
function journalOfKilled(t: TestContext, database: string): Buffer {
  const file = join(temporaryFolder(t), 'other.db');
  copyFileSync(database, file);
  const raw = new Sqlite(file);
  try {
    raw.exec('CREATE TABLE other (x)');
    // So that it is written before the commit.
    raw.pragma('cache_size = 1');
    raw.exec(`BEGIN; CREATE TABLE another (x); INSERT INTO another VALUES (zeroblob(1000000))`);
    return readFileSync(`${file}-journal`);
  } finally {
    raw.close();
  }
}

for (const schema of [9, newestSchema - 1]) {
  test(`what a killed run of going back to schema ${schema} left is no part of the next one`, async (t) => {
    const { dataDir, file, copy, upgraded } = releasedDatabase(t, schema);
    const was = contentOf(file);
    await upgraded().close();
    writeFileSync(`${file}.back`, readFileSync(copy).subarray(0, 10_000));
    writeFileSync(`${file}.back-journal`, journalOfKilled(t, copy));
    writeFileSync(`${file}.back-wal`, Buffer.alloc(10_000, 7));
    goBack(dataDir, urlOf);
    assert.deepEqual(contentOf(file).schema, was.schema);
  });
}

test('what another process writes meanwhile is not lost: going back is refused, and done again', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, newestSchema - 1);
  await upgraded().close();
  const { prepare } = Sqlite.prototype;
  const meanwhile = t.mock.method(
    Sqlite.prototype,
    'prepare',
    function (this: Sqlite.Database, query: string) {
      if (query.startsWith('ALTER') || query.includes('FROM event_head')) {
        meanwhile.mock.restore();
        const other = new Sqlite(file);
        other.exec("UPDATE caller SET name = 'renamed'");
        other.close();
      }
      return prepare.call(this, query);
    },
  );
  assert.throws(() => goBack(dataDir, urlOf), /another process changed .* meanwhile: run this again/);
  assert.equal(meanwhile.mock.callCount() > 0, true);
  assert.equal(contentOf(file).version, newestSchema);
  goBack(dataDir, urlOf);
  const raw = new Sqlite(file, { readonly: true });
  t.after(() => raw.close());
  assert.equal(raw.prepare('SELECT name FROM caller').pluck().get(), 'renamed');
});

test('going back names a copy that cannot be read, before anything is done', async (t) => {
  const { dataDir, file, copy, upgraded } = releasedDatabase(t, newestSchema - 1);
  await upgraded().close();
  writeFileSync(copy, 'none');
  assert.throws(() => goBack(dataDir, urlOf), {
    name: 'DatabaseError',
    message: new RegExp(`schema-${newestSchema - 1}\\.backup cannot be read`),
  });
  assert.equal(contentOf(file).version, newestSchema);
});

test('what was left by going back is not overwritten by going back again', async (t) => {
  const { dataDir, file, upgraded } = releasedDatabase(t, 9);
  await upgraded().close();
  const { left } = goBack(dataDir, urlOf);
  const kept = readFileSync(left);
  await upgraded().close();
  assert.throws(() => goBack(dataDir, urlOf), {
    name: 'DatabaseError',
    message: /schema-\d+\.left is there, .* move it/,
  });
  assert.deepEqual(readFileSync(left), kept);
  assert.equal(contentOf(file).version, newestSchema);
});

test('a migration that fails leaves the database as it was', (t) => {
  const { dataDir, file } = releasedDatabase(t, 9);
  const raw = new Sqlite(file);
  // In the way of what the next migration makes.
  raw.exec('CREATE TABLE latest_filing (x)');
  raw.close();
  const was = contentOf(file);
  assert.throws(() => openDatabase({ dataDir, ...sandbox }));
  assert.deepEqual(contentOf(file), was);
  const repaired = new Sqlite(file);
  repaired.exec('DROP TABLE latest_filing');
  repaired.close();
  openDatabase({ dataDir, ...sandbox }).$client.close();
});

test('a TRANSFER that was recorded while the clock was behind gets the time of its leaf', async (t) => {
  const dataDir = temporaryFolder(t);
  const store = openUpgraded(t, dataDir);
  const by = await addPlatform(store, 'gallery');
  const filingNo = await fileOne(store, by);
  const { escrowId } = await opened(store, by, filingNo);
  await settled(store, escrowId, { to: 'FROZEN' });
  await settled(store, escrowId, { to: 'RELEASED' });
  await store.close();
  const file = join(dataDir, 'artseal.db');
  takeBack(file, 17, urlOf);
  forgeIn(file, (client) => client.exec('UPDATE provenance_record SET recorded_at_s = recorded_at_s - 7'));
  const upgraded = openUpgraded(t, dataDir);
  const provenance = await perform(upgraded, { kind: 'GetProvenance', filingNo });
  assert.equal(provenance?.records.length, 2);
  await upgraded.close();
  assert.deepEqual(faultsInLog(file), []);
});

for (const isStoreInThisThread of [true, false])
  test(`a server logs once that it upgraded the database, with the store in ${isStoreInThisThread ? 'this' : 'its own'} thread`, async (t) => {
    const { dataDir } = makeEarlierDatabase(t, newestSchema - 1);
    const upgrades = ({ logLines }: TestService) =>
      logLines.map((line) => JSON.parse(line)).filter(({ msg }) => /upgraded/.test(msg));
    const options = { dataDir, isStoreInThisThread, env: { ARTSEAL_MASTER_KEY: `k1:${'0'.repeat(64)}` } };
    const service = await startService(t, options);
    const [upgraded, ...more] = upgrades(service);
    assert.deepEqual([upgraded?.fromSchema, upgraded?.toSchema], [newestSchema - 1, newestSchema]);
    assert.deepEqual(more, []);
    await service.close();
    assert.deepEqual(upgrades(await startService(t, options)), []);
  });
