import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import { reconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { type Kit, kitLimits, openKit, released } from './kit.ts';

const minuteMs = 60_000;
/** A round that a test can wait for, and the 180 days of the service. */
const roundMs = 20 * minuteMs;
const { releasedLookUpsMs: periodMs } = reconciliationLimits;
const dayMs = 86_400_000;

/** Opens a kit with rare polls of recovery, so that time passes fast. */
const openSlow = (t: TestContext) => openKit(t, { pollMs: 5 * minuteMs, releasedLookUpMs: roundMs });

/** Returns the history after the release. */
async function since(kit: Kit, escrowId: string) {
  const { order } = await kit.case(escrowId);
  return order.history.slice(3).map(({ payment, amount }) => [payment, amount]);
}

/** Returns the events of an order after its release, as the platform reads them. */
async function eventsSince({ execute, platform }: Kit, order: string) {
  const { events } = await execute({ kind: 'ReadEvents', callerId: platform.callerId, after: undefined });
  const types = events.filter(({ escrowId }) => escrowId === order).map(({ type }) => type);
  return types.slice(types.indexOf('escrow.released') + 1);
}

const report = (kit: Kit, changes: Pick<PaymentSnapshot, 'status' | 'amount'>) =>
  kit.provider.report((_, truth) => ({ ...truth, ...changes }));

test('a look-up without a notification finds a partial return after a release and records it once', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  report(kit, { status: 'PARTLY_RETURNED', amount: 1n });
  await kit.pass(roundMs);
  assert.deepEqual(await since(kit, escrowId), [['PARTLY_RETURNED', 1n]]);
  assert.match((await kit.case(escrowId)).review ?? '', /PARTLY_RETURNED/);
  await kit.pass(2 * roundMs);
  assert.deepEqual(await since(kit, escrowId), [['PARTLY_RETURNED', 1n]]);
  assert.deepEqual(await eventsSince(kit, escrowId), ['escrow.payment_returned', 'escrow.in_review']);

  await kit.notify(escrowId);
  await kit.pass(5 * minuteMs);
  assert.deepEqual(await since(kit, escrowId), [['PARTLY_RETURNED', 1n]]);
  assert.deepEqual(await eventsSince(kit, escrowId), ['escrow.payment_returned', 'escrow.in_review']);

  await kit.decide(escrowId, 'ACCEPT');
  await kit.pass(roundMs);
  assert.equal((await kit.case(escrowId)).review, undefined);
  assert.deepEqual(await kit.provenance(escrowId), ['SUBMITTED', 'TRANSFER']);
});

test('a look-up finds a won dispute, before and after an operator accepts the dispute', async (t) => {
  const kit = await openSlow(t);
  const [waiting, accepted] = [await released(kit), await released(kit)];
  report(kit, { status: 'DISPUTED' });
  await kit.pass(roundMs);
  await kit.decide(accepted, 'ACCEPT');
  kit.provider.report();
  await kit.pass(roundMs);
  for (const escrowId of [waiting, accepted]) {
    assert.deepEqual(await since(kit, escrowId), [
      ['DISPUTED', undefined],
      ['PAID_OUT', undefined],
    ]);
    assert.match((await kit.case(escrowId)).review ?? '', /PAID_OUT after DISPUTED/);
  }
  const types = ['escrow.payment_disputed', 'escrow.in_review', 'escrow.dispute_won'];
  assert.deepEqual(await eventsSince(kit, waiting), types, 'it stayed in review');
  assert.deepEqual(await eventsSince(kit, accepted), [...types, 'escrow.in_review']);
});

test('an order is looked up for 180 days after its release and after each change of its money', async (t) => {
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
  report(kit, { status: 'DISPUTED' });
  await kit.pass(roundMs);
  await kit.decide(escrowId, 'ACCEPT');
  assert.ok((await lookedUp(3 * roundMs)) >= 2);
});

test('failed look-ups repeat at the usual pace and change nothing', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  await kit.pass(minuteMs);
  const before = await kit.case(escrowId);
  const { length } = kit.provider.lookUps;
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.pass(4 * roundMs);
  assert.equal(kit.provider.lookUps.length, length + 4);
  assert.deepEqual(await kit.case(escrowId), before);
  assert.equal(before.failedAttempts, 0);
  const metrics = await kit.execute({ kind: 'ReadMetrics', nowMs: kit.clock.nowMs(), year: 2026 });
  assert.deepEqual([metrics.nextLookUpAtMs, metrics.ordersInReview], [undefined, 0]);
  await kit.execute({ kind: 'UseProvider', name: 'stripe' });
});

test('a provider that does not know a RELEASED order changes nothing of it', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  const before = await kit.case(escrowId);
  kit.provider.report(() => ({ status: 'ABSENT' }));
  await kit.pass(roundMs);
  assert.equal(kit.provider.lookUps.length, 1);
  assert.deepEqual(await kit.case(escrowId), before);
});

test('a service that restarts every few minutes looks up each order', async (t) => {
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

test('a database that cannot be read delays look-ups and skips none', async (t) => {
  const kit = await openSlow(t);
  const escrowId = await released(kit);
  const heal = kit.fail('ListReleased', new Error('The disk is away.'));
  await kit.pass(roundMs);
  assert.equal(kit.provider.lookUps.length, 0);
  assert.ok(heal() > 1);
  await kit.pass(roundMs);
  assert.deepEqual([...new Set(kit.provider.lookUps.map((order) => order.escrowId))], [escrowId]);
});

/** Copies a RELEASED order in the database of a kit. */
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

test('RELEASED orders are looked up once a round each, evenly spread', async (t) => {
  const kit = await openSlow(t);
  const [orders, aMinute] = [200, 10];
  copyReleased(kit, await released(kit), orders - 1);
  await kit.restart();
  await kit.pass(roundMs);
  const { lookUps } = kit.provider;
  assert.equal(new Set(lookUps.map(({ escrowId }) => escrowId)).size, orders);
  // A round ends in the minute in which it began.
  assert.ok(lookUps.length <= orders + aMinute, `${lookUps.length}`);
  const minutes = Map.groupBy(lookUps, ({ atMs }) => Math.floor(atMs / minuteMs));
  for (const [minute, { length }] of minutes) assert.ok(length <= aMinute, `${length} in minute ${minute}`);
});

test('look-ups of 1,000 RELEASED orders without a response delay no order that is due', async (t) => {
  const kit = await openKit(t, { releasedLookUpMs: 100 * minuteMs });
  const sold = await released(kit);
  copyReleased(kit, sold, 999);
  kit.provider.treatLookUps(({ escrowId }) => ({ kind: /copy/.test(escrowId) ? 'SILENT' : 'NONE' }));
  await kit.restart();
  // Look-ups were missed, and are made up for.
  kit.clock.setWall(kit.clock.nowMs() + roundMs);
  for (let count = 0; count < 3; count += 1) {
    await kit.pass(minuteMs);
    kit.provider.treat({ FREEZE: 'ANSWER_LOST' });
    const escrowId = await kit.open();
    assert.equal(await kit.stateOf(escrowId), 'UNPAID');
    await kit.pass(2 * kitLimits.firstRetryMs);
    assert.equal(await kit.stateOf(escrowId), 'FROZEN');
  }
  assert.ok(kit.provider.lookUps.some(({ escrowId }) => /copy/.test(escrowId)));
});

test('missed look-ups are made up for at twice the pace, for one round at most, whatever the clock is set to', async (t) => {
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
