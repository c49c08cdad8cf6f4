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
  opened,
  openGallery,
  openStore,
  resolved,
  type StoreEngine,
  settled,
  settlementOf,
  stopped,
  terms,
  toOpen,
  toRegister,
  toResolve,
} from './fixtures.ts';

const nowMs = 1_790_000_000_999;
const retentionMs = notificationRetentionS * 1_000;

/** What the provider tells of its own accord. */
export function notificationPromises(engine: StoreEngine): void {
  test('a notification makes its order due, and changes nothing else', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [{ escrowId, holdId }, other] = [await frozen(store, by), await frozen(store, by)];
    await settled(store, escrowId, { lookUpAtMs: nowMs + 60_000 });
    await settled(store, other.escrowId, { lookUpAtMs: nowMs + 60_000 });
    const before = await caseOf(store, escrowId);
    assert.equal(
      await perform(store, { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs }),
      true,
    );
    assert.deepEqual(await caseOf(store, escrowId), {
      ...before,
      notificationCount: before.notificationCount + 1,
    });
    assert.deepEqual(await due(store, nowMs - 1, nowMs + 60_000), []);
    assert.deepEqual(await due(store, nowMs, nowMs + 60_000), [escrowId]);
  });

  test('a notification about a buyer makes the RELEASED orders due that were opened since', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const others = { customer: 'cus_2', paymentMethod: 'pm_1' };
    await perform(store, toRegister('gallery'));
    await perform(store, toRegister('gallery', { partyId: 'buyer-2', providerIds: others }));
    await perform(store, toRegister('gallery', { role: 'SELLER' }));
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
    const notify = { kind: 'TakeNotification', eventId: 'event', about, nowMs } as const;
    const before = await caseOf(store, contested);
    assert.deepEqual([await perform(store, notify), await perform(store, notify)], [true, false]);
    assert.deepEqual((await due(store, nowMs, nowMs)).toSorted(), [contested, inReview].toSorted());
    const notificationCount = before.notificationCount + 1;
    assert.deepEqual(await caseOf(store, contested), { ...before, notificationCount });
  });

  test('a notification about a buyer that comes while a RELEASE is under way has the order asked about after it', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await perform(store, toRegister('gallery'));
    await perform(store, toRegister('gallery', { role: 'SELLER' }));
    const over = { parties: neededNames, at: noon };
    const { escrowId } = (await perform(store, toOpen(by, await fileOne(store, by), over))).order;
    await settled(store, escrowId, { to: 'FROZEN' });
    await perform(store, toResolve(by, 'RELEASE', escrowId));
    const before = await caseOf(store, escrowId);
    const about = { buyer: { customer: 'cus_1' }, openedSinceMs: noon.atMs };
    await perform(store, { kind: 'TakeNotification', eventId: 'event', about, nowMs });
    const ended = endedAs('CONFIRMED', before);
    const update = settlementOf(before, { to: 'RELEASED', ended });
    assert.equal((await perform(store, { kind: 'UpdateOrder', update, at: noon }))?.order.state, 'RELEASED');
    assert.deepEqual(await due(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), [escrowId]);
  });

  test('a notification counts once, however often it comes, and whatever it is about then', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const [one, other] = [await opened(store, by), await frozen(store, by)];
    assert.equal(
      await perform(store, {
        kind: 'TakeNotification',
        eventId: 'event',
        about: { holdId: one.holdId },
        nowMs,
      }),
      true,
    );
    await settled(store, one.escrowId, { to: 'FROZEN' });
    const repeated = await Promise.all(
      [one, one, other].map(({ holdId }) =>
        perform(store, { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs: nowMs + 1 }),
      ),
    );
    assert.deepEqual(repeated, [false, false, false]);
    assert.deepEqual(await due(store, nowMs + 1, nowMs + 60_000), []);
    assert.equal(
      await perform(store, {
        kind: 'TakeNotification',
        eventId: 'another event',
        about: { holdId: one.holdId },
        nowMs: nowMs + 1,
      }),
      true,
    );
    assert.deepEqual(await due(store, nowMs + 1, nowMs + 60_000), [one.escrowId]);
  });

  test('of a notification that comes many times at once, one counts', async (t) => {
    const store = await openStore(t, engine);
    const { holdId } = await opened(store, await addPlatform(store, 'gallery'));
    const first = await Promise.all(
      [1, 2, 3, 4].map(() =>
        perform(store, { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs }),
      ),
    );
    assert.deepEqual(first, [true, false, false, false]);
  });

  test('a notification about no order is remembered and does no harm', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId } = await frozen(store, await addPlatform(store, 'gallery'));
    const before = await caseOf(store, escrowId);
    for (const holdId of ['', 'unknown', "' OR 1 = 1", escrowId]) {
      assert.equal(
        await perform(store, {
          kind: 'TakeNotification',
          eventId: `event ${holdId}`,
          about: { holdId },
          nowMs,
        }),
        true,
      );
      assert.equal(
        await perform(store, {
          kind: 'TakeNotification',
          eventId: `event ${holdId}`,
          about: { holdId },
          nowMs,
        }),
        false,
      );
    }
    assert.deepEqual(await caseOf(store, escrowId), before);
    assert.deepEqual(await due(store, nowMs, nowMs), []);
  });

  test('a notification is remembered for its time and then forgotten, however many there are', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId, holdId } = await opened(store, await addPlatform(store, 'gallery'));
    const events = Array.from({ length: 20 }, (_, place) => `event ${place}`);
    for (const event of events)
      assert.equal(
        await perform(store, { kind: 'TakeNotification', eventId: event, about: { holdId }, nowMs }),
        true,
      );
    for (let place = 0; place < 5; place += 1) {
      await perform(store, {
        kind: 'TakeNotification',
        eventId: `late ${place}`,
        about: { holdId: 'unknown' },
        nowMs: nowMs + retentionMs,
      });
    }
    for (const event of events) {
      assert.equal(
        await perform(store, {
          kind: 'TakeNotification',
          eventId: event,
          about: { holdId },
          nowMs: nowMs + retentionMs,
        }),
        false,
        event,
      );
    }
    await settled(store, escrowId, { ended: [] });
    const afterMs = nowMs + retentionMs + 1_000;
    for (const event of events.toReversed()) {
      assert.equal(
        await perform(store, { kind: 'TakeNotification', eventId: event, about: { holdId }, nowMs: afterMs }),
        true,
        event,
      );
      assert.equal(
        await perform(store, {
          kind: 'TakeNotification',
          eventId: event,
          about: { holdId },
          nowMs: afterMs + retentionMs,
        }),
        false,
        event,
      );
    }
    assert.deepEqual(await due(store, afterMs, afterMs), [escrowId]);
  });

  test('a notification is not forgotten where the clock is set back', async (t) => {
    const store = await openStore(t, engine);
    const { holdId } = await opened(store, await addPlatform(store, 'gallery'));
    await perform(store, { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs });
    for (const backMs of [1_000, retentionMs, 10 * retentionMs]) {
      assert.equal(
        await perform(store, {
          kind: 'TakeNotification',
          eventId: 'event',
          about: { holdId },
          nowMs: nowMs - backMs,
        }),
        false,
      );
    }
  });

  test('a notification is known after a crash, and its order due', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const { escrowId, holdId } = await frozen(store, await addPlatform(store, 'gallery'));
    const before = await openStore(t, engine, crashCopy(t, dataDir));
    const notify = { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs } as const;
    await perform(store, notify);
    const after = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await due(before, nowMs, nowMs), []);
    assert.equal(await perform(before, notify), true);
    assert.deepEqual(await due(after, nowMs, nowMs), [escrowId]);
    assert.equal(await perform(after, notify), false);
  });
}
