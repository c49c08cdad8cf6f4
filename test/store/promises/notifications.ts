import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notificationRetentionS } from '../../../src/store/reconciliation-commands.ts';
import { perform } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  caseOf,
  crashCopy,
  due,
  endedAs,
  fileOne,
  frozen,
  neededNames,
  noon,
  notify,
  opened,
  openGallery,
  openOrder,
  openStore,
  registerBoth,
  resolved,
  type StoreEngine,
  settled,
  settlementOf,
  stopped,
  terms,
  toOpen,
  toRegister,
  toResolve,
  updateOrder,
} from './fixtures.ts';

const nowMs = 1_790_000_000_999;
const retentionMs = notificationRetentionS * 1_000;

/** Notifications of the provider. */
export function notificationPromises(engine: StoreEngine): void {
  test('a notification makes its order due and changes nothing else', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [{ escrowId, holdId }, other] = [await frozen(store, by), await frozen(store, by)];
    await settled(store, escrowId, { lookUpAtMs: nowMs + 60_000 });
    await settled(store, other.escrowId, { lookUpAtMs: nowMs + 60_000 });
    const before = await caseOf(store, escrowId);
    assert.equal(await notify(store, 'event', { holdId }, nowMs), true);
    assert.deepEqual(await caseOf(store, escrowId), {
      ...before,
      notificationCount: before.notificationCount + 1,
    });
    assert.deepEqual(await due(store, nowMs - 1, nowMs + 60_000), []);
    assert.deepEqual(await due(store, nowMs, nowMs + 60_000), [escrowId]);
  });

  test('a notification about a buyer makes due the RELEASED orders that were opened since', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const others = { customer: 'cus_2', paymentMethod: 'pm_1' };
    await registerBoth(store, 'gallery');
    await perform(store, toRegister('gallery', { partyId: 'buyer-2', providerIds: others }));
    const hourMs = 3_600_000;
    const orderOf = async (buyerId: string, atMs: number, isReleased: boolean) => {
      const filingNo = await fileOne(store, by);
      const at = { ...noon, atMs };
      const over = { terms: { ...terms(filingNo), buyerId }, parties: neededNames, at };
      const { escrowId } = (await perform(store, toOpen(by, filingNo, over))).order;
      await settled(store, escrowId, { to: 'FROZEN' });
      if (isReleased) await resolved(store, by, escrowId, 'RELEASE');
      return escrowId;
    };
    const contested = await orderOf('buyer-1', noon.atMs, true);
    const inReview = await orderOf('buyer-1', noon.atMs + hourMs, true);
    await stopped(store, inReview, 'The money is contested.');
    await orderOf('buyer-1', noon.atMs - 1, true);
    await orderOf('buyer-1', noon.atMs, false);
    await orderOf('buyer-2', noon.atMs, true);
    const about = { buyer: { customer: 'cus_1' }, openedSinceMs: noon.atMs };
    const before = await caseOf(store, contested);
    assert.equal(await notify(store, 'event', about, nowMs), true);
    assert.equal(await notify(store, 'event', about, nowMs), false);
    assert.deepEqual((await due(store, nowMs, nowMs)).toSorted(), [contested, inReview].toSorted());
    const notificationCount = before.notificationCount + 1;
    assert.deepEqual(await caseOf(store, contested), { ...before, notificationCount });
  });

  test('a notification about a buyer during a RELEASE makes its order due after it', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await registerBoth(store, 'gallery');
    const over = { parties: neededNames, at: noon };
    const { escrowId } = (await perform(store, toOpen(by, await fileOne(store, by), over))).order;
    await settled(store, escrowId, { to: 'FROZEN' });
    await perform(store, toResolve(by, 'RELEASE', escrowId));
    const before = await caseOf(store, escrowId);
    const about = { buyer: { customer: 'cus_1' }, openedSinceMs: noon.atMs };
    await notify(store, 'event', about, nowMs);
    const ended = endedAs('CONFIRMED', before);
    const update = settlementOf(before, { to: 'RELEASED', ended });
    assert.equal((await updateOrder(store, update))?.order.state, 'RELEASED');
    assert.deepEqual(await due(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), [escrowId]);
  });

  test('a notification counts once', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [one, other] = [await opened(store, by), await frozen(store, by)];
    const { escrowId, holdId } = one;
    const concurrent = await Promise.all([1, 2, 3].map(() => notify(store, 'event', { holdId }, nowMs)));
    assert.deepEqual(concurrent, [true, false, false]);
    await settled(store, escrowId, { to: 'FROZEN' });
    for (const about of [one, other])
      assert.equal(await notify(store, 'event', { holdId: about.holdId }, nowMs + 1), false);
    assert.deepEqual(await due(store, nowMs + 1, nowMs + 60_000), []);
    assert.equal(await notify(store, 'another event', { holdId }, nowMs + 1), true);
    assert.deepEqual(await due(store, nowMs + 1, nowMs + 60_000), [escrowId]);
  });

  test('a notification about no order is remembered and changes nothing', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'FROZEN');
    const before = await caseOf(store, escrowId);
    for (const holdId of ['', 'unknown', "' OR 1 = 1", escrowId])
      for (const isNew of [true, false])
        assert.equal(await notify(store, `event ${holdId}`, { holdId }, nowMs), isNew);
    assert.deepEqual(await caseOf(store, escrowId), before);
    assert.deepEqual(await due(store, nowMs, nowMs), []);
  });

  test('a notification is forgotten after its retention, however many there are', async (t) => {
    const { store, escrowId, holdId } = await openOrder(t, engine);
    const events = Array.from({ length: 20 }, (_, place) => `event ${place}`);
    const notifyAll = (atMs: number) =>
      Promise.all(events.map((event) => notify(store, event, { holdId }, atMs)));
    assert.ok((await notifyAll(nowMs)).every(Boolean));
    for (let place = 0; place < 5; place += 1)
      await notify(store, `late ${place}`, { holdId: 'unknown' }, nowMs + retentionMs);
    assert.ok(!(await notifyAll(nowMs + retentionMs)).some(Boolean));
    await settled(store, escrowId, { ended: [] });
    const afterMs = nowMs + retentionMs + 1_000;
    assert.ok((await notifyAll(afterMs)).every(Boolean));
    assert.ok(!(await notifyAll(afterMs + retentionMs)).some(Boolean));
    assert.deepEqual(await due(store, afterMs, afterMs), [escrowId]);
  });

  test('a notification is remembered if the clock is set back', async (t) => {
    const { store, holdId } = await openOrder(t, engine);
    await notify(store, 'event', { holdId }, nowMs);
    for (const backMs of [1_000, retentionMs, 10 * retentionMs])
      assert.equal(await notify(store, 'event', { holdId }, nowMs - backMs), false);
  });

  test('a notification survives a crash, and its order is due then', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const { escrowId, holdId } = await frozen(store, await addPlatform(store, 'gallery'));
    const before = await openStore(t, engine, crashCopy(t, dataDir));
    await notify(store, 'event', { holdId }, nowMs);
    const after = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await due(before, nowMs, nowMs), []);
    assert.equal(await notify(before, 'event', { holdId }, nowMs), true);
    assert.deepEqual(await due(after, nowMs, nowMs), [escrowId]);
    assert.equal(await notify(after, 'event', { holdId }, nowMs), false);
  });
}
