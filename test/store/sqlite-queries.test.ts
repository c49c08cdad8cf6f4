import assert from 'node:assert/strict';
import type { Command } from '../../src/store/store.ts';
import { plansOf } from '../support/statement.ts';
import { sqliteInThisThread } from './engines.ts';
import { anyOrder, endedAs, inNeed, noon, settlementOf, toListDue, toResolve } from './promises/fixtures.ts';
import { storeTests } from './promises/tests.ts';
import { openRaw } from './raw-database.ts';

const { test } = storeTests(sqliteInThisThread);

/** Instructions of an order with a confirmed FREEZE: those that may be there, and those that the database rejects beside them. */
const exclusions: readonly (readonly [allowed: readonly string[], rejected: readonly string[]])[] = [
  [[], ['FREEZE PREPARED', 'FREEZE SENT', 'FREEZE UNKNOWN', 'FREEZE CONFIRMED', 'FREEZE DECLINED']],
  [
    ['RELEASE DECLINED', 'RELEASE PREPARED', 'REFUND SENT'],
    ['RELEASE SENT', 'RELEASE UNKNOWN'],
  ],
  [
    ['REFUND PREPARED', 'RELEASE UNKNOWN'],
    ['REFUND SENT', 'REFUND UNKNOWN', 'CANCEL PREPARED', 'CANCEL SENT'],
  ],
  [
    ['CANCEL SENT', 'REFUND DECLINED'],
    ['REFUND SENT', 'CANCEL UNKNOWN'],
  ],
  [
    ['RELEASE CONFIRMED', 'REFUND DECLINED', 'REFUND SENT'],
    ['RELEASE CONFIRMED', 'REFUND CONFIRMED'],
  ],
  [
    ['REFUND CONFIRMED', 'RELEASE DECLINED', 'RELEASE SENT'],
    ['RELEASE CONFIRMED', 'REFUND CONFIRMED'],
  ],
];

const unique = { code: 'SQLITE_CONSTRAINT_UNIQUE' };

for (const [allowed, rejected] of exclusions)
  test(`beside ${allowed.join(' and ') || 'a FREEZE'} the database rejects ${rejected.join(', ')}`, async (store, t) => {
    const raw = openRaw(t, store.dataDir);
    await store.frozen(store.gallery);
    const insert = (instruction: string, id = instruction) =>
      raw
        .prepare(
          `INSERT INTO escrow_instruction (instruction_id, order_id, kind, status, prepared_at_ms)
           VALUES (?, 1, ?, ?, 0)`,
        )
        .run(id, ...instruction.split(' '));
    for (const instruction of allowed) insert(instruction);
    for (const instruction of rejected) assert.throws(() => insert(instruction, 'another'), unique);
  });

test('the database rejects a second order of a filing that is UNPAID or FROZEN', async (store, t) => {
  const raw = openRaw(t, store.dataDir);
  await store.opened(store.gallery);
  const columns = 'filing_no, caller_id, type, amount, buyer_id, seller_id, timestamp';
  const insert = (state: string) =>
    raw.exec(
      `INSERT INTO escrow (escrow_id, state, ${columns}) SELECT hex(randomblob(4)), '${state}', ${columns} FROM escrow WHERE id = 1`,
    );
  for (const state of ['UNPAID', 'FROZEN']) assert.throws(() => insert(state), unique);
  for (const state of ['RELEASED', 'REFUNDED', 'CLOSED']) insert(state);
});

for (const table of ['provenance_record', 'escrow_change']) {
  test(`an update whose ${table} cannot be stored changes nothing`, async (store, t) => {
    const raw = openRaw(t, store.dataDir);
    const { escrowId, filingNo } = await store.frozen(store.gallery);
    await store.perform(toResolve(store.gallery, 'RELEASE', escrowId));
    const before = await store.caseOf(escrowId);
    const update = settlementOf(before, { to: 'RELEASED', ended: endedAs('CONFIRMED', before) });
    raw.exec(`CREATE TRIGGER nothing_more BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'no'); END`);
    await assert.rejects(store.updateOrder(update));
    assert.deepEqual(await store.caseOf(escrowId), before);
    raw.exec('DROP TRIGGER nothing_more');
    assert.equal((await store.updateOrder(update))?.order.state, 'RELEASED');
    assert.equal(await store.transfersOf(filingNo), 1);
  });
}

test('new notifications delete expired ones', async (store, t) => {
  const raw = openRaw(t, store.dataDir);
  const nowMs = 1_790_000_000_000;
  const monthMs = 31 * 86_400_000;
  const notifyAll = (count: number, name: string, atMs: number) =>
    Promise.all(
      Array.from({ length: count }, (_, place) => store.notify(`${name} ${place}`, { holdId: 'x' }, atMs)),
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
    (_, holdId) => ({
      ...{ kind: 'RecordSent', instructionId: holdId, status: 'PREPARED' },
      ...{ expectedLookUpAtMs: undefined, lookUpAtMs: 1 },
    }),
    /instruction_id_unique/,
  ],
  'recording that the provider did not answer': [
    (escrowId) => ({
      ...{ kind: 'RecordUnanswered', escrowId, expectedLookUpAtMs: 1, lookUpAtMs: 1 },
      ...{ notificationCount: 0, nowMs: 1 },
    }),
    /escrow_id_unique/,
  ],
  'taking a notification': [
    (_, holdId) => ({ kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs: 1 }),
    /provider_notification_by_age/,
  ],
};

test('commands find orders by indexes and sort nothing', async (store, t) => {
  const raw = openRaw(t, store.dataDir);
  for (let count = 0; count < 3; count += 1)
    await store.stopped((await store.frozen(store.gallery)).escrowId);
  const { escrowId, holdId } = await store.opened(store.gallery);
  for (const [what, [command, index]] of Object.entries(lookUps)) {
    const plans = await plansOf(t, raw, () => store.perform(command(escrowId, holdId)));
    for (const { source, detail } of plans)
      assert.doesNotMatch(detail, /^SCAN|TEMP B-TREE/, `${what}: ${source}`);
    const details = plans.map(({ detail }) => detail).join('\n');
    assert.ok(
      plans.some(({ detail }) => index.test(detail)),
      `${what}: ${details}`,
    );
  }
});

test('claims and redeliveries read deliveries by key or by index', async (store, t) => {
  const gallery = store.gallery;
  const raw = openRaw(t, store.dataDir, { readonly: true });
  const { id, webhookId } = await store.addWebhook(gallery);
  await store.fileOne(gallery);
  const all = await plansOf(t, raw, async () => {
    const work = { kind: 'ClaimDeliveries', id, nowMs: noon.atMs, limit: 9, underWay: [] } as const;
    await store.perform(work);
    await store.perform({
      ...{ kind: 'Redeliver', webhookId, owner: undefined, nowMs: noon.atMs },
      which: { sinceMs: noon.atMs },
    });
    await store.perform(work);
  });
  const plans = all.filter(({ detail }) => detail.includes('webhook_delivery'));
  assert.ok(plans.length >= 3, JSON.stringify(plans));
  for (const { source, detail } of plans)
    assert.match(
      detail,
      /webhook_delivery USING (PRIMARY KEY \(webhook=\? AND sequence=\?\)|(COVERING )?INDEX webhook_delivery_)/,
      source,
    );
});

test('a page of deliveries of one status reads a bounded number of rows', async (store, t) => {
  const by = store.gallery;
  const { id, webhookId } = await store.addWebhook(by);
  const raw = openRaw(t, store.dataDir);
  raw.exec(`INSERT INTO webhook_delivery (webhook, sequence, type, resource, event_at_s, status, attempts)
    WITH RECURSIVE place(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 15000)
    SELECT ${id}, n, 'filing.created', 'AS-2026-' || n, 1, iif(n = 1, 'FAILED', 'DELIVERED'), 1 FROM place`);
  const list = (status: 'FAILED' | undefined, from?: number) =>
    store.perform({
      ...{ kind: 'ListDeliveries', webhookId, owner: undefined, status },
      page: { from, size: 10 },
    });
  const first = await list('FAILED');
  assert.deepEqual(first, { items: [], next: 5_001 });
  const second = await list('FAILED', first.next);
  assert.deepEqual([second.items.map(({ sequence }) => sequence), second.next], [[1], undefined]);
  assert.equal((await list(undefined)).next, 14_991);
});
