import assert from 'node:assert/strict';
import { notificationRetentionS } from '../../../src/store/reconciliation-commands.ts';
import {
  endedAs,
  neededNames,
  noon,
  settlementOf,
  terms,
  toOpen,
  toRegister,
  toResolve,
} from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const nowMs = 1_790_000_000_999;
const retentionMs = notificationRetentionS * 1_000;

/** Notifications of the provider. */
export function notificationPromises({ test }: StoreTests): void {
  test('a notification makes its order due and changes nothing else', async (store) => {
    const [{ escrowId, holdId }, other] = [
      await store.frozen(store.gallery),
      await store.frozen(store.gallery),
    ];
    await store.settled(escrowId, { lookUpAtMs: nowMs + 60_000 });
    await store.settled(other.escrowId, { lookUpAtMs: nowMs + 60_000 });
    const before = await store.caseOf(escrowId);
    assert.equal(await store.notify('event', { holdId }, nowMs), true);
    assert.deepEqual(await store.caseOf(escrowId), {
      ...before,
      notificationCount: before.notificationCount + 1,
      lookUpAtMs: nowMs,
    });
    assert.deepEqual(await store.due(nowMs - 1, nowMs + 60_000), []);
    assert.deepEqual(await store.due(nowMs, nowMs + 60_000), [escrowId]);
  });

  test('a notification about a buyer makes due the RELEASED orders that were opened since', async (store) => {
    const others = { customer: 'cus_2', paymentMethod: 'pm_1' };
    await store.registerBoth('gallery');
    await store.perform(toRegister('gallery', { partyId: 'buyer-2', providerIds: others }));
    const hourMs = 3_600_000;
    const orderOf = async (buyerId: string, atMs: number, isReleased: boolean) => {
      const filingNo = await store.fileOne(store.gallery);
      const at = { ...noon, atMs };
      const over = { terms: { ...terms(filingNo), buyerId }, parties: neededNames, at };
      const { escrowId } = (await store.perform(toOpen(store.gallery, filingNo, over))).order;
      await store.settled(escrowId, { to: 'FROZEN' });
      if (isReleased) await store.resolved(store.gallery, escrowId, 'RELEASE');
      return escrowId;
    };
    const contested = await orderOf('buyer-1', noon.atMs, true);
    const inReview = await orderOf('buyer-1', noon.atMs + hourMs, true);
    await store.stopped(inReview, 'The money is contested.');
    await orderOf('buyer-1', noon.atMs - 1, true);
    await orderOf('buyer-1', noon.atMs, false);
    await orderOf('buyer-2', noon.atMs, true);
    const about = { buyer: { customer: 'cus_1' }, openedSinceMs: noon.atMs };
    const before = await store.caseOf(contested);
    assert.equal(await store.notify('event', about, nowMs), true);
    assert.equal(await store.notify('event', about, nowMs), false);
    assert.deepEqual((await store.due(nowMs, nowMs)).toSorted(), [contested, inReview].toSorted());
    const notificationCount = before.notificationCount + 1;
    assert.deepEqual(await store.caseOf(contested), {
      ...{ ...before, notificationCount },
      lookUpAtMs: nowMs,
    });
  });

  test('a notification about a buyer during a RELEASE makes its order due after it', async (store) => {
    await store.registerBoth('gallery');
    const over = { parties: neededNames, at: noon };
    const { escrowId } = (
      await store.perform(toOpen(store.gallery, await store.fileOne(store.gallery), over))
    ).order;
    await store.settled(escrowId, { to: 'FROZEN' });
    await store.perform(toResolve(store.gallery, 'RELEASE', escrowId));
    const before = await store.caseOf(escrowId);
    const about = { buyer: { customer: 'cus_1' }, openedSinceMs: noon.atMs };
    await store.notify('event', about, nowMs);
    const ended = endedAs('CONFIRMED', before);
    const update = settlementOf(before, { to: 'RELEASED', ended });
    assert.equal((await store.updateOrder(update))?.order.state, 'RELEASED');
    assert.deepEqual(await store.due(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), [escrowId]);
  });

  test('a notification counts once', async (store) => {
    const [one, other] = [await store.opened(store.gallery), await store.frozen(store.gallery)];
    const { escrowId, holdId } = one;
    const concurrent = await Promise.all([1, 2, 3].map(() => store.notify('event', { holdId }, nowMs)));
    assert.deepEqual(concurrent, [true, false, false]);
    await store.settled(escrowId, { to: 'FROZEN' });
    for (const about of [one, other])
      assert.equal(await store.notify('event', { holdId: about.holdId }, nowMs + 1), false);
    assert.deepEqual(await store.due(nowMs + 1, nowMs + 60_000), []);
    assert.equal(await store.notify('another event', { holdId }, nowMs + 1), true);
    assert.deepEqual(await store.due(nowMs + 1, nowMs + 60_000), [escrowId]);
  });

  test('a notification about no order is remembered and changes nothing', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'FROZEN');
    const before = await store.caseOf(escrowId);
    for (const holdId of ['', 'unknown', "' OR 1 = 1", escrowId])
      for (const isNew of [true, false])
        assert.equal(await store.notify(`event ${holdId}`, { holdId }, nowMs), isNew);
    assert.deepEqual(await store.caseOf(escrowId), before);
    assert.deepEqual(await store.due(nowMs, nowMs), []);
  });

  test('a notification is forgotten after its retention, however many there are', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const events = Array.from({ length: 20 }, (_, place) => `event ${place}`);
    const notifyAll = (atMs: number) =>
      Promise.all(events.map((event) => store.notify(event, { holdId }, atMs)));
    assert.ok((await notifyAll(nowMs)).every(Boolean));
    for (let place = 0; place < 5; place += 1)
      await store.notify(`late ${place}`, { holdId: 'unknown' }, nowMs + retentionMs);
    assert.ok(!(await notifyAll(nowMs + retentionMs)).some(Boolean));
    await store.settled(escrowId, { ended: [] });
    const afterMs = nowMs + retentionMs + 1_000;
    assert.ok((await notifyAll(afterMs)).every(Boolean));
    assert.ok(!(await notifyAll(afterMs + retentionMs)).some(Boolean));
    assert.deepEqual(await store.due(afterMs, afterMs), [escrowId]);
  });

  test('a notification is remembered if the clock is set back', async (store) => {
    const { holdId } = await store.orderIn(store.gallery, 'UNPAID');
    await store.notify('event', { holdId }, nowMs);
    for (const backMs of [1_000, retentionMs, 10 * retentionMs])
      assert.equal(await store.notify('event', { holdId }, nowMs - backMs), false);
  });
}
