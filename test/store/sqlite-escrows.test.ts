import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type Sqlite from 'better-sqlite3';
import type { StoredKey } from '../../src/store/caller-commands.ts';
import { type Command, perform, type Store } from '../../src/store/store.ts';
import { plansOf } from '../support/statement.ts';
import { sqliteInThisThread } from './engines.ts';
import {
  anyOrder,
  caseOf,
  due,
  endedAs,
  findInstruction,
  frozen,
  inNeed,
  notify,
  opened,
  openGallery,
  settled,
  settlementOf,
  stopped,
  toListDue,
  toResolve,
  transfersOf,
  updateOrder,
} from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

/** A store with a platform, and another connection to its database. */
async function openWithRaw(t: TestContext) {
  const { dataDir, ...opened } = await openGallery(t, sqliteInThisThread);
  return { ...opened, raw: openRaw(t, dataDir) };
}

/** Inserts an instruction of an order without the store. */
function insertInstruction(raw: Sqlite.Database, escrowId: string, kind: string, status: string): void {
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
      assert.throws(() => insertInstruction(raw, escrowId, 'FREEZE', status), unique);
    }
  }
});

for (const [kinds, other] of [
  [['REFUND', 'CANCEL'], 'RELEASE'],
  [['RELEASE'], 'REFUND'],
] as const) {
  test(`the database rejects a second open ${kinds.join(' or ')}`, async (t) => {
    const { store, by, raw } = await openWithRaw(t);
    for (const status of openStatuses) {
      const { escrowId } = await frozen(store, by);
      for (const kind of kinds) insertInstruction(raw, escrowId, kind, 'DECLINED');
      insertInstruction(raw, escrowId, kinds[0], status);
      for (const kind of kinds)
        for (const second of openStatuses)
          assert.throws(() => insertInstruction(raw, escrowId, kind, second), unique);
      const reopen = "UPDATE escrow_instruction SET status = 'SENT' WHERE status = 'DECLINED'";
      assert.throws(() => raw.exec(reopen), unique);
      insertInstruction(raw, escrowId, other, status);
    }
  });
}

test('the database rejects a second resolution that paid', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  for (const [kind, other] of [
    ['RELEASE', 'REFUND'],
    ['REFUND', 'RELEASE'],
  ] as const) {
    const { escrowId } = await frozen(store, by);
    insertInstruction(raw, escrowId, kind, 'CONFIRMED');
    for (const each of [kind, other])
      assert.throws(() => insertInstruction(raw, escrowId, each, 'CONFIRMED'), unique);
    insertInstruction(raw, escrowId, other, 'DECLINED');
    insertInstruction(raw, escrowId, other, 'SENT');
    const confirm = "UPDATE escrow_instruction SET status = 'CONFIRMED' WHERE status = 'SENT'";
    assert.throws(() => raw.exec(confirm), unique);
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

/** An order with an open RELEASE, and the update that confirms it. */
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
  const readState = async () => ({
    found: await caseOf(store, escrowId),
    release: await findInstruction(store, instructionId),
    transfers: await transfersOf(store, filingNo),
    due: await due(store, 7, 9),
  });
  return { update, readState };
}

for (const [table, part] of [
  ['provenance_record', 'TRANSFER'],
  ['escrow_change', 'history'],
] as const) {
  test(`an update whose ${part} cannot be stored changes nothing`, async (t) => {
    const { store, by, raw } = await openWithRaw(t);
    const { update, readState } = await releasing(store, by);
    const before = await readState();
    raw.exec(`CREATE TRIGGER nothing_more BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'no'); END`);
    await assert.rejects(updateOrder(store, update));
    assert.deepEqual(await readState(), before);
    raw.exec('DROP TRIGGER nothing_more');
    assert.ok(await updateOrder(store, update));
    const after = await readState();
    assert.deepEqual([after.found.order.state, after.release?.status], ['RELEASED', 'CONFIRMED']);
    assert.deepEqual([after.transfers, after.due], [1, []]);
  });
}

test('new notifications delete expired ones', async (t) => {
  const { store, raw } = await openWithRaw(t);
  const nowMs = 1_790_000_000_000;
  const monthMs = 31 * 86_400_000;
  const notifyAll = (count: number, name: string, atMs: number) =>
    Promise.all(
      Array.from({ length: count }, (_, place) => notify(store, `${name} ${place}`, { holdId: 'x' }, atMs)),
    );
  await notifyAll(20, 'old', nowMs);
  await notifyAll(10, 'new', nowMs + monthMs);
  const remembered = raw.prepare('SELECT event_id FROM provider_notification').pluck().all() as string[];
  assert.equal(remembered.length, 10);
  assert.ok(remembered.every((event) => event.startsWith('new ')));
});

const page = { from: 5, size: 10 };

/** Commands that find orders, with the index that each must use. */
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

test('commands find orders by indexes and sort nothing', async (t) => {
  const { store, by, raw } = await openWithRaw(t);
  for (let count = 0; count < 3; count += 1) await stopped(store, (await frozen(store, by)).escrowId);
  const { escrowId, holdId } = await opened(store, by);
  for (const [what, [command, index]] of Object.entries(lookUps)) {
    const plans = await plansOf(t, raw, () => perform(store, command(escrowId, holdId)));
    for (const { source, detail } of plans)
      assert.doesNotMatch(detail, /^SCAN|TEMP B-TREE/, `${what}: ${source}`);
    const details = plans.map(({ detail }) => detail).join('\n');
    assert.ok(
      plans.some(({ detail }) => index.test(detail)),
      `${what}: ${details}`,
    );
  }
});
