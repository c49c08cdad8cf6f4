import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import { reconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { tester } from '../../support/audit-log.ts';
import { type Kit, kitLimits, openKit } from './kit.ts';

const minuteMs = 60_000;
/** A round that is short enough to be waited for minute by minute, and the 180 days of the service. */
const roundMs = 100 * minuteMs;
const { releasedLookUpsMs: periodMs } = reconciliationLimits;
const dayMs = 86_400_000;

/** A kit in which recovery looks seldom, so that time passes soon. */
const openSlow = (t: TestContext) => openKit(t, { pollMs: 5 * minuteMs, releasedLookUpMs: roundMs });

async function released(kit: Kit): Promise<string> {
  const escrowId = await kit.open();
  await kit.resolve('RELEASE', escrowId);
  assert.equal((await kit.case(escrowId)).order.state, 'RELEASED');
  return escrowId;
}

/** What the history has since the release. */
async function since(kit: Kit, escrowId: string) {
  const { order } = await kit.case(escrowId);
  return order.history.slice(3).map(({ payment, amount }) => [payment, amount]);
}

/** The events that the platform has read of an order since its release. */
async function eventsSince({ execute, platform }: Kit, order: string) {
  const { events } = await execute({ kind: 'ReadEvents', callerId: platform.callerId, after: undefined });
  const types = events.filter(({ escrowId }) => escrowId === order).map(({ type }) => type);
  return types.slice(types.indexOf('escrow.released') + 1);
}

const accept = (kit: Kit, escrowId: string) => {
  const named = {
    escrowId,
    decision: 'ACCEPT',
    instructionId: 'by a person',
    nowMs: kit.clock.nowMs(),
  } as const;
  return kit.execute({ kind: 'Decide', by: tester, ...named });
};

const say = (kit: Kit, word: Pick<PaymentSnapshot, 'status' | 'amount'>) =>
  kit.provider.report((_, truth) => ({ ...truth, ...word }));

for (const [status, amount, event] of [
  ['RETURNED', undefined, 'escrow.payment_returned'],
  ['PARTLY_RETURNED', 1n, 'escrow.payment_returned'],
  ['DISPUTED', undefined, 'escrow.payment_disputed'],
] as const) {
  test(`${status} after a release is learned by a look-up though no notification came, and told once`, async (t) => {
    const kit = await openSlow(t);
    const escrowId = await released(kit);
    say(kit, { status, ...(amount !== undefined && { amount }) });
    await kit.pass(roundMs);
    assert.deepEqual(await since(kit, escrowId), [[status, amount]]);
    assert.match((await kit.case(escrowId)).review ?? '', new RegExp(status));
    await kit.pass(2 * roundMs);
    assert.deepEqual(await since(kit, escrowId), [[status, amount]]);
    assert.deepEqual(await eventsSince(kit, escrowId), [event, 'escrow.in_review']);

    const { holdId } = await kit.case(escrowId);
    const late = { eventId: 'late', about: { holdId }, nowMs: kit.clock.nowMs() };
    await kit.execute({ kind: 'TakeNotification', ...late });
    await kit.pass(5 * minuteMs);
    assert.deepEqual(await since(kit, escrowId), [[status, amount]]);
    assert.deepEqual(await eventsSince(kit, escrowId), [event, 'escrow.in_review']);

    await accept(kit, escrowId);
    await kit.pass(roundMs);
    assert.equal((await kit.case(escrowId)).review, undefined);
    assert.deepEqual(await eventsSince(kit, escrowId), [event, 'escrow.in_review']);
    const found = await kit.execute({
      kind: 'GetProvenance',
      filingNo: (await kit.case(escrowId)).order.filingNo,
    });
    assert.equal(found?.records.filter(({ event }) => event === 'TRANSFER').length, 1);
  });
}

test('a dispute that was won is learned by a look-up, before and after a person accepted the dispute', async (t) => {
  const kit = await openSlow(t);
  const [waiting, accepted] = [await released(kit), await released(kit)];
  say(kit, { status: 'DISPUTED' });
  await kit.pass(roundMs);
  await accept(kit, accepted);
  kit.provider.report();
  await kit.pass(roundMs);
  for (const escrowId of [waiting, accepted]) {
    assert.deepEqual(await since(kit, escrowId), [
      ['DISPUTED', undefined],
      ['PAID_OUT', undefined],
    ]);
    assert.match((await kit.case(escrowId)).review ?? '', /PAID_OUT after DISPUTED/);
  }
  const told = ['escrow.payment_disputed', 'escrow.in_review', 'escrow.dispute_won'];
  assert.deepEqual(await eventsSince(kit, waiting), told, 'it was in review all along');
  assert.deepEqual(await eventsSince(kit, accepted), [...told, 'escrow.in_review']);
});

test('an order is looked up for 180 days after its release, and after news of its money, and no more', async (t) => {
  const kit = await openSlow(t);
  const releasedAtMs = kit.clock.nowMs();
  const escrowId = await released(kit);
  const lookedUp = async (ms: number) => {
    const before = kit.provider.lookUps.length;
    await kit.pass(ms);
    return kit.provider.lookUps.slice(before).filter((order) => order.escrowId === escrowId).length;
  };
  kit.clock.setWall(releasedAtMs + periodMs - roundMs);
  assert.ok((await lookedUp(roundMs)) >= 1);
  assert.equal(await lookedUp(2 * roundMs), 0);

  kit.clock.setWall(releasedAtMs + periodMs - roundMs);
  say(kit, { status: 'DISPUTED' });
  await kit.pass(roundMs);
  await accept(kit, escrowId);
  assert.ok((await lookedUp(3 * roundMs)) >= 2);
});

test('look-ups that fail are repeated at the pace of others, and leave nothing behind', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  await kit.pass(minuteMs);
  const before = await kit.case(escrowId);
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.pass(4 * roundMs);
  assert.equal(kit.provider.lookUps.length, 4);
  assert.deepEqual(await kit.case(escrowId), before);
  assert.equal(before.failedAttempts, 0);
  const metrics = await kit.execute({ kind: 'ReadMetrics', nowMs: kit.clock.nowMs(), year: 2026 });
  assert.deepEqual([metrics.nextLookUpAtMs, metrics.ordersInReview], [undefined, 0]);
  await kit.execute({ kind: 'UseProvider', name: 'stripe' });
});

test('a provider that knows nothing of an order, as one that came later, changes nothing of it', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  const before = await kit.case(escrowId);
  kit.provider.report(() => ({ status: 'ABSENT' }));
  await kit.pass(roundMs);
  assert.equal(kit.provider.lookUps.length, 1);
  assert.deepEqual(await kit.case(escrowId), before);
});

test('a service that is restarted every few minutes looks at each order all the same', async (t) => {
  const kit = await openSlow(t);
  const orders: string[] = [];
  for (let count = 0; count < 5; count += 1) orders.push(await released(kit));
  for (let ms = 0; ms < roundMs; ms += 7 * minuteMs) {
    await kit.pass(7 * minuteMs);
    await kit.restart();
  }
  const asked = kit.provider.lookUps.map(({ escrowId }) => escrowId);
  assert.deepEqual([...new Set(asked)].sort(), orders.sort());
});

test('a database that cannot be read for a while delays look-ups, and none is left out', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  const heal = kit.fail('ListReleased', new Error('The disk is away.'));
  await kit.pass(roundMs);
  assert.equal(kit.provider.lookUps.length, 0);
  assert.ok(heal() > 1);
  await kit.pass(roundMs);
  assert.deepEqual([...new Set(kit.provider.lookUps.map((order) => order.escrowId))], [escrowId]);
});

/** Puts RELEASED orders into the database of a kit, each like the one given, as an earlier version left them. */
function copyReleased({ dataDir }: Kit, escrowId: string, count: number): void {
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  raw.exec(`
    CREATE TEMP TABLE copy AS WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${count})
      SELECT n, escrow.id AS of, (SELECT max(id) FROM escrow) + n AS id FROM number, escrow WHERE escrow_id = '${escrowId}';
    INSERT INTO escrow (id, escrow_id, filing_no, caller_id, type, amount, buyer_id, seller_id, state, timestamp)
      SELECT copy.id, 'ES-copy-' || n, filing_no, caller_id, type, amount, buyer_id, seller_id, state, timestamp
      FROM copy JOIN escrow ON escrow.id = of;
    INSERT INTO escrow_instruction (instruction_id, order_id, kind, status, prepared_at_ms)
      SELECT kind || n, copy.id, kind, status, prepared_at_ms FROM copy JOIN escrow_instruction ON order_id = of;
    INSERT INTO escrow_change (order_id, position, state, at, changed_at_s)
      SELECT copy.id, position, state, at, changed_at_s FROM copy JOIN escrow_change ON order_id = of;`);
  raw.close();
}

test('RELEASED orders of an earlier version are looked up once a round each, evenly spread', async (t) => {
  const kit = await openSlow(t);
  const [orders, aMinute] = [1_000, 10];
  copyReleased(kit, await released(kit), orders - 1);
  await kit.restart();
  await kit.pass(roundMs);
  const { lookUps } = kit.provider;
  assert.equal(new Set(lookUps.map(({ escrowId }) => escrowId)).size, orders);
  // The minute in which a round ends is that in which it began.
  assert.ok(lookUps.length <= orders + aMinute, `${lookUps.length}`);
  const minutes = Map.groupBy(lookUps, ({ atMs }) => Math.floor(atMs / minuteMs));
  for (const [minute, { length }] of minutes) assert.ok(length <= aMinute, `${length} in minute ${minute}`);
});

test('10,000 RELEASED orders about which there is no answer keep no order waiting that is due', async (t) => {
  const kit = await openKit(t);
  const sold = await released(kit);
  copyReleased(kit, sold, 9_999);
  kit.provider.treatLookUps(({ escrowId }) => ({ kind: /copy/.test(escrowId) ? 'SILENT' : 'NONE' }));
  await kit.restart();
  // FairQueue were missed, so that they are made up for as well.
  kit.clock.setWall(kit.clock.nowMs() + roundMs);
  for (let count = 0; count < 5; count += 1) {
    await kit.pass(minuteMs);
    kit.provider.treat({ FREEZE: 'ANSWER_LOST' });
    const escrowId = await kit.open();
    assert.equal((await kit.case(escrowId)).order.state, 'UNPAID');
    await kit.pass(2 * kitLimits.firstRetryMs);
    assert.equal((await kit.case(escrowId)).order.state, 'FROZEN');
  }
  assert.ok(kit.provider.lookUps.some(({ escrowId }) => /copy/.test(escrowId)));
});

test('turns that were missed are made up for at twice the pace, a round at most, wherever the clock was set', async (t) => {
  const orders = 10;
  const kit = await openKit(t, { releasedLookUpMs: orders * minuteMs });
  copyReleased(kit, await released(kit), orders - 1);
  const lookedUpWithin = async (minutes: number) => {
    const before = kit.provider.lookUps.length;
    await kit.pass(minutes * minuteMs);
    return kit.provider.lookUps.slice(before).map(({ escrowId }) => escrowId);
  };
  await kit.pass(minuteMs);
  kit.clock.setWall(kit.clock.nowMs() + 100 * dayMs);
  const madeUp = await lookedUpWithin(orders);
  assert.equal(new Set(madeUp).size, orders);
  assert.ok(madeUp.length <= 2 * orders + 1, `${madeUp.length} after it was set forward`);
  await kit.pass(orders * minuteMs);
  kit.clock.setWall(kit.clock.nowMs() - 90 * dayMs);
  const again = await lookedUpWithin(orders);
  assert.ok(
    again.length >= orders - 1 && again.length <= orders + 1,
    `${again.length} after it was set back`,
  );
});
