import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { StoredKey } from '../../src/store/caller-commands.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { type Command, perform, type Store } from '../../src/store/store.ts';
import { plansOf } from '../support/statement.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  addPlatform,
  anyOrder,
  caseOf,
  done,
  due,
  endedAs,
  fileOne,
  findInstruction,
  firstPage,
  frozen,
  inNeed,
  noon,
  opened,
  sandbox,
  settled,
  settlementOf,
  stopped,
  toListDue,
  toOpen,
  toResolve,
  transfersOf,
  underKey,
} from './promises/fixtures.ts';

/** A store with a platform in it, and another connection to its database. */
async function openWithRaw(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const by = await addPlatform(store, 'gallery');
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => raw.close());
  return { store, by, raw };
}

/** Inserts an instruction of an order without the store. */
function insertOperation(raw: Sqlite.Database, escrowId: string, kind: string, status: string): void {
  raw
    .prepare(
      `INSERT INTO escrow_instruction (instruction_id, order_id, kind, status, prepared_at_ms)
       SELECT hex(randomblob(16)), id, ?, ?, 0 FROM escrow WHERE escrow_id = ?`,
    )
    .run(kind, status, escrowId);
}

const unique = { code: 'SQLITE_CONSTRAINT_UNIQUE' };
const openStatuses = ['PREPARED', 'SENT', 'UNKNOWN'];
const endStatuses = ['CONFIRMED', 'DECLINED'];

test('the database rejects a second FREEZE of an order, from any connection', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const [one, other] = [await opened(store, by), await frozen(store, by)];
  for (const { escrowId } of [one, other]) {
    for (const status of [...openStatuses, ...endStatuses]) {
      assert.throws(() => insertOperation(raw, escrowId, 'FREEZE', status), unique);
    }
  }
});

test('the database rejects a second open REFUND or CANCEL, and a second open RELEASE', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  for (const underWay of openStatuses) {
    const { escrowId } = await frozen(store, by);
    const insert = (kind: string, status: string) => insertOperation(raw, escrowId, kind, status);
    insert('RELEASE', 'DECLINED');
    insert('CANCEL', 'CONFIRMED');
    insert('REFUND', underWay);
    for (const kind of ['REFUND', 'CANCEL'])
      for (const status of openStatuses) assert.throws(() => insert(kind, status), unique);
    const reopen = (kind: string) =>
      raw.exec(
        `UPDATE escrow_instruction SET status = 'SENT' WHERE kind = '${kind}' AND status <> '${underWay}'`,
      );
    assert.throws(() => reopen('CANCEL'), unique);
    insert('RELEASE', underWay);
    for (const status of openStatuses) assert.throws(() => insert('RELEASE', status), unique);
    assert.throws(() => reopen('RELEASE'), unique);
    insert('RELEASE', 'DECLINED');
  }
});

test('the database rejects a second resolution that paid', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const kinds = ['RELEASE', 'REFUND'];
  for (const [kind = '', other = ''] of [kinds, kinds.toReversed()]) {
    const { escrowId } = await frozen(store, by);
    const insert = (each: string, status: string) => insertOperation(raw, escrowId, each, status);
    insert(kind, 'CONFIRMED');
    for (const each of kinds) assert.throws(() => insert(each, 'CONFIRMED'), unique);
    insert(other, 'DECLINED');
    insert(other, 'SENT');
    assert.throws(
      () => raw.exec("UPDATE escrow_instruction SET status = 'CONFIRMED' WHERE status = 'SENT'"),
      unique,
    );
  }
});

test('the database rejects a second order of a filing that is UNPAID or FROZEN', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const { escrowId } = await opened(store, by);
  const columns = 'filing_no, caller_id, type, amount, buyer_id, seller_id, timestamp';
  const insert = (state: string) =>
    raw.exec(
      `INSERT INTO escrow (escrow_id, state, ${columns})
       SELECT hex(randomblob(4)), '${state}', ${columns} FROM escrow WHERE escrow_id = '${escrowId}'`,
    );
  for (const state of ['UNPAID', 'FROZEN']) assert.throws(() => insert(state), unique);
  for (const state of ['RELEASED', 'REFUNDED', 'CLOSED']) insert(state);
  assert.throws(() => raw.exec("UPDATE escrow SET state = 'FROZEN' WHERE state = 'CLOSED'"), unique);
});

test('the database rejects an instruction with an id in use, and one without an order', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const { holdId } = await opened(store, by);
  const insert = (instructionId: string, orderId: number) =>
    raw.exec(`INSERT INTO escrow_instruction (instruction_id, order_id, kind, status, prepared_at_ms)
      VALUES ('${instructionId}', ${orderId}, 'RELEASE', 'PREPARED', 0)`);
  assert.throws(() => insert(holdId, 1), unique);
  raw.pragma('foreign_keys = ON');
  assert.throws(() => insert('another', 99), { code: 'SQLITE_CONSTRAINT_FOREIGNKEY' });
});

/** An order whose RELEASE is under way, and the update that settles it. */
async function releasing(store: Store, by: StoredKey) {
  const { escrowId, filingNo } = await frozen(store, by);
  const { instructionId } = await perform(store, toResolve(by, 'RELEASE', escrowId, { owner: by.callerId }));
  await settled(store, escrowId, { ended: [], lookUpAtMs: 7 });
  const found = await caseOf(store, escrowId);
  const update = settlementOf(found, {
    to: 'RELEASED',
    ended: endedAs('CONFIRMED', found),
    reference: 'theirs',
  });
  const stateOf = async () => ({
    found: await caseOf(store, escrowId),
    release: await findInstruction(store, instructionId),
    transfers: await transfersOf(store, filingNo),
    due: await due(store, 7, 9),
  });
  return { escrowId, update, stateOf };
}

for (const [table, part] of [
  ['provenance_record', 'a TRANSFER'],
  ['escrow_change', 'a row of history'],
] as const) {
  test(`${part} that cannot be appended undoes the release`, async (t) => {
    const { store, by, raw } = await openWithRaw(t);
    const { update, stateOf } = await releasing(store, by);
    const before = await stateOf();
    raw.exec(`CREATE TRIGGER nothing_more BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'no'); END`);
    await assert.rejects(perform(store, { kind: 'UpdateOrder', update, at: noon }));
    assert.deepEqual(await stateOf(), before);
    raw.exec('DROP TRIGGER nothing_more');
    assert.ok(await perform(store, { kind: 'UpdateOrder', update, at: noon }));
    const after = await stateOf();
    assert.deepEqual([after.found.order.state, after.release?.status], ['RELEASED', 'CONFIRMED']);
    assert.deepEqual([after.transfers, after.due], [1, []]);
  });
}

test('an update whose commit fails is undone as a whole, and can be repeated', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const { update, stateOf } = await releasing(store, by);
  const before = await stateOf();
  // Only the commit rejects a child without its parent.
  raw.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER orphan AFTER INSERT ON escrow_change BEGIN INSERT INTO child VALUES (1); END;`);
  await assert.rejects(perform(store, { kind: 'UpdateOrder', update, at: noon }), /FOREIGN KEY/);
  assert.deepEqual(await stateOf(), before);
  raw.exec('DROP TRIGGER orphan');
  assert.ok(await perform(store, { kind: 'UpdateOrder', update, at: noon }));
  assert.equal((await stateOf()).found.order.state, 'RELEASED');
  assert.equal((await stateOf()).transfers, 1);
});

test('an opening whose commit fails leaves no order, instruction, number or key', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  const filingNo = await fileOne(store, by);
  raw.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER orphan AFTER INSERT ON escrow_instruction BEGIN INSERT INTO child VALUES (1); END;`);
  const lost = toOpen(by, filingNo);
  await assert.rejects(store.execute(underKey(by.callerId, 'k', lost)), /FOREIGN KEY/);
  const { instructionId } = lost.work;
  assert.equal(await findInstruction(store, instructionId), undefined);
  raw.exec('DROP TRIGGER orphan');
  const again = await done(store, underKey(by.callerId, 'k', toOpen(by, filingNo)));
  assert.equal(again.isReplay, false);
  assert.notEqual(again.result.instructionId, instructionId);
  const last = raw.prepare("SELECT last FROM number_sequence WHERE kind = 'ESCROW'").pluck();
  assert.equal(last.get(), 1, 'the unused number is issued');
  const listed = await perform(store, {
    kind: 'ListEscrows',
    filter: anyOrder,
    page: firstPage(10),
  });
  assert.equal(listed.items.length, 1);
});

test('expired notifications are deleted as others arrive', async (t) => {
  const { store, raw } = await openWithRaw(t);
  const nowMs = 1_790_000_000_000;
  const month = 31 * 86_400_000;
  for (let event = 0; event < 20; event += 1)
    await perform(store, {
      kind: 'TakeNotification',
      eventId: `old ${event}`,
      about: { holdId: 'x' },
      nowMs,
    });
  for (let event = 0; event < 10; event += 1) {
    await perform(store, {
      kind: 'TakeNotification',
      eventId: `new ${event}`,
      about: { holdId: 'x' },
      nowMs: nowMs + month,
    });
  }
  const remembered = raw.prepare('SELECT event_id FROM provider_notification').pluck().all() as string[];
  assert.equal(remembered.length, 10);
  assert.ok(remembered.every((event) => event.startsWith('new ')));
});

const page = { from: 5, size: 10 };

/** Each look-up of orders, and the index that it must use. */
const lookUps: Record<string, [(escrowId: string, holdId: string) => Command, RegExp]> = {
  'whether an order is due': [() => toListDue(), /escrow USING INDEX escrow_by_look_up \(look_up_at_ms</],
  'which callers have an order that is due': [
    () => toListDue({ nowMs: Date.now() }),
    /escrow USING (COVERING )?INDEX escrow_due \(caller_id=\? AND <expr>=\? AND look_up_at_ms</,
  ],
  'which callers have an order that waits because the clock was set back': [
    () => toListDue({ horizonMs: 0 }),
    /escrow USING (COVERING )?INDEX escrow_due \(caller_id=\? AND <expr>=\? AND look_up_at_ms>/,
  ],
  'the RELEASED orders of a share': [
    () => ({ kind: 'ListReleased', share: 1, shares: 2, sinceMs: 0 }),
    /escrow USING INTEGER PRIMARY KEY/,
  ],
  'the orders of a caller': [
    () => ({ kind: 'ListEscrows', filter: { ...anyOrder, owner: 1 }, page }),
    /escrow USING INDEX escrow_by_caller/,
  ],
  'the orders in a state': [
    () => ({ kind: 'ListEscrows', filter: { ...anyOrder, state: 'FROZEN' }, page }),
    /escrow USING INDEX escrow_by_state/,
  ],
  'the orders of a filing': [
    () => ({ kind: 'ListEscrows', filter: { ...anyOrder, filingNo: 'AS-2026-000001' }, page }),
    /escrow USING INDEX escrow_by_filing/,
  ],
  'the orders of a filing, a caller and a state': [
    () => ({
      kind: 'ListEscrows',
      filter: { owner: 1, state: 'FROZEN', filingNo: 'AS-2026-000001' },
      page,
    }),
    /escrow USING INDEX escrow_by_filing/,
  ],
  'all orders': [() => ({ kind: 'ListEscrows', filter: anyOrder, page }), /escrow USING INTEGER PRIMARY KEY/],
  'the orders in review': [
    () => ({ kind: 'ListCases', selection: inNeed, page }),
    /escrow USING INDEX escrow_in_review/,
  ],
  'the orders in review by state': [
    () => ({ kind: 'ListCases', selection: { ...inNeed, state: 'FROZEN' }, page }),
    /escrow USING INDEX escrow_in_review/,
  ],
  'an instruction': [
    (_, holdId) => ({ kind: 'FindInstruction', instructionId: holdId }),
    /instruction_id_unique/,
  ],
  'an order with its instructions': [
    (escrowId) => ({ kind: 'FindCase', escrowId }),
    /escrow_instruction USING INDEX escrow_instruction_open/,
  ],
  'recording an instruction as sent': [
    (_, holdId) => ({ kind: 'RecordSent', instructionId: holdId, lookUpAtMs: 1 }),
    /instruction_id_unique/,
  ],
  'recording that the provider did not answer': [
    (escrowId) => ({ kind: 'RecordUnanswered', escrowId, lookUpAtMs: 1, notificationCount: 0 }),
    /escrow_id_unique/,
  ],
  'taking a notification': [
    (_, holdId) => ({ kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs: 1 }),
    /provider_notification_by_age/,
  ],
};

test('an index answers each look-up, and nothing is sorted', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  for (let count = 0; count < 3; count += 1) await stopped(store, (await frozen(store, by)).escrowId);
  const { escrowId, holdId } = await opened(store, by);
  for (const [what, [command, index]] of Object.entries(lookUps)) {
    const plans = await plansOf(t, raw, () => perform(store, command(escrowId, holdId)));
    for (const { source, detail } of plans)
      assert.doesNotMatch(detail, /^SCAN|TEMP B-TREE/, `${what}: ${source}`);
    const details = plans.map(({ detail }) => detail);
    assert.ok(
      details.some((detail) => index.test(detail)),
      `${what}: ${details.join('\n')}`,
    );
  }
});
