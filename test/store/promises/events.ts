import assert from 'node:assert/strict';
import { eventRetentionS, holdWarningS } from '../../../src/domain/event.ts';
import { type EventPage, type EventWithCaller, eventPageMax } from '../../../src/store/event-commands.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import { tester } from '../../support/audit-log.ts';
import { later, newKey, noon, nowS, refused, time, toFile, toOpen } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

/** All events after a cursor, page by page. */
async function allPagesOf(read: (after?: number) => Promise<EventPage>, after?: number) {
  const events: EventWithCaller[] = [];
  for (let from = after; ; ) {
    const page = await read(from);
    if (page.events.length === 0) return events;
    events.push(...page.events);
    from = page.next;
  }
}

const eventsOf = (store: TestStore, callerId: number, from?: number) =>
  allPagesOf((after) => store.perform({ kind: 'ReadEvents', callerId, after }), from);

const allEvents = (store: TestStore, from?: number) =>
  allPagesOf((after) => store.perform({ kind: 'ReadAllEvents', after }), from);

const typesOf = (events: readonly EventWithCaller[]) => events.map(({ type }) => type);
const sequencesOf = (events: readonly EventWithCaller[]) => events.map(({ sequence }) => sequence);
const from1To = (count: number) => Array.from({ length: count }, (_, place) => place + 1);

/** Asserts that a page has the first of these events. It may be short, but not empty. */
function assertBegins({ events }: EventPage, expected: readonly EventWithCaller[]): void {
  assert.deepEqual(events, expected.slice(0, Math.max(1, events.length)));
}

/** Files artworks at the same moment. */
const fileMany = (store: TestStore, by: CallerRef, count: number) =>
  Promise.all(Array.from({ length: count }, () => store.perform(toFile(by))));

/** Events. */
export function eventPromises({ test }: StoreTests): void {
  test('filings, orders and transfers have events in order, with their resources', async (store) => {
    const { escrowId, filingNo } = await store.orderIn(store.gallery, 'FROZEN');
    await store.resolved(store.gallery, escrowId, 'RELEASE');
    const { callerId, caller } = store.gallery;
    const shared = { callerId, caller, atMs: noon.atMs };
    assert.deepEqual(await eventsOf(store, callerId), [
      { ...shared, type: 'filing.created', filingNo, sequence: 1, position: 1 },
      { ...shared, type: 'escrow.frozen', filingNo, escrowId, state: 'FROZEN', sequence: 2, position: 2 },
      {
        ...shared,
        type: 'escrow.released',
        filingNo,
        escrowId,
        state: 'RELEASED',
        sequence: 3,
        position: 3,
      },
      { ...shared, type: 'provenance.transferred', filingNo, sequence: 4, position: 4 },
    ]);
  });

  test('refunded, closed and reviewed orders have events, by the provider and by an operator', async (store) => {
    const by = store.gallery;
    const first = await store.frozen(by);
    await store.resolved(by, first.escrowId, 'REFUND');
    const second = await store.opened(by);
    await store.stopped(second.escrowId);
    const third = await store.opened(by);
    const order = { escrowId: third.escrowId, instructionId: 'op', nowMs: noon.atMs };
    await store.perform({ kind: 'Decide', by: tester, decision: 'STOP', ...order });
    const fourth = await store.opened(by);
    await store.perform({ kind: 'CloseOrder', by: tester, escrowId: fourth.escrowId, at: noon });
    const events = (await eventsOf(store, by.callerId)).filter(({ escrowId }) => escrowId !== undefined);
    assert.deepEqual(
      events.map(({ type, escrowId, state }) => [type, escrowId, state]),
      [
        ['escrow.frozen', first.escrowId, 'FROZEN'],
        ['escrow.refunded', first.escrowId, 'REFUNDED'],
        ['escrow.in_review', second.escrowId, 'UNPAID'],
        ['escrow.in_review', third.escrowId, 'UNPAID'],
        ['escrow.closed', fourth.escrowId, 'CLOSED'],
      ],
    );
  });

  test('the caller of an order gets its events, the caller of the filing gets the transfer', async (store) => {
    const house = await store.addPlatform('house');
    const filingNo = await store.fileOne(store.gallery);
    const { order } = await store.perform({
      ...{ kind: 'OpenEscrow', violations: [], parties: undefined, at: noon, owner: undefined },
      terms: { filingNo, type: 'GUARANTEE', amount: 5n, buyerId: 'b', sellerId: 's' },
      work: { callerId: house.callerId, caller: house.caller, instructionId: 'op' },
    });
    await store.settled(order.escrowId, { to: 'FROZEN' });
    await store.resolved(house, order.escrowId, 'RELEASE');
    assert.deepEqual(typesOf(await eventsOf(store, store.gallery.callerId)), [
      'filing.created',
      'provenance.transferred',
    ]);
    assert.deepEqual(typesOf(await eventsOf(store, house.callerId)), ['escrow.frozen', 'escrow.released']);
  });

  test('a hold that ends within a day has one event for each reported end', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    const end = noon.atMs + (holdWarningS + 60) * 1_000;
    await store.settled(escrowId, { to: 'FROZEN', holdExpiresAtMs: end });
    const warn = (nowMs: number) => store.perform({ kind: 'WarnOfEndingHolds', nowMs, limit: 10 });
    assert.equal(await warn(noon.atMs), 0, 'more than a day before');
    assert.equal(await warn(noon.atMs + 60_000), 1);
    assert.equal(await warn(noon.atMs + 120_000), 0, 'again');
    await store.settled(escrowId, { holdExpiresAtMs: end + 3_600_000, ended: [] });
    assert.equal(await warn(end + 7_200_000), 0, 'once it is over');
    assert.equal(await warn(end), 1, 'another end');
    const warnings = (await eventsOf(store, store.gallery.callerId)).filter(
      ({ type }) => type === 'escrow.hold_expiring',
    );
    assert.deepEqual(
      warnings.map((event) => [event.escrowId, event.state, event.atMs]),
      [
        [escrowId, 'FROZEN', noon.atMs + 60_000],
        [escrowId, 'FROZEN', end],
      ],
    );
  });

  test('rotated keys and quota thresholds have events', async (store) => {
    const { callerId, keyId } = store.gallery;
    await store.rotateKey(keyId, newKey(), nowS);
    const call = (limit: number | undefined) =>
      store.execute({ admission: { nowS, quota: { callerId, month: '2026-11', limit, take: true } } });
    for (const _ of from1To(7)) await call(6);
    const events = await eventsOf(store, callerId);
    assert.deepEqual(
      events.map(({ type, keyId, month, percent }) => [type, keyId, month, percent]),
      [
        ['key.rotated', keyId, undefined, undefined],
        ['usage.threshold', undefined, '2026-11', 80],
        ['usage.threshold', undefined, '2026-11', 100],
      ],
    );
    for (const _ of from1To(3)) await call(undefined);
    assert.equal((await eventsOf(store, callerId)).length, 3, 'without a limit');
  });

  test('a rejected call has no event, but its quota threshold has', async (store) => {
    const { callerId, caller } = store.gallery;
    const quota = { callerId, month: '2026-11', limit: 1, take: true };
    const apiError = { reason: 'NOT_FOUND', message: 'no', hints: {} } as const;
    await store.execute({ admission: { nowS, quota }, effect: { kind: 'Reject', apiError } });
    await store.acceptClock(time('2026-11-22T12:00:00+00:00'));
    await refused(
      store.perform(toFile({ callerId, caller }, time('2016-11-21T12:00:00+00:00'))),
      'UNAVAILABLE',
    );
    assert.deepEqual(typesOf(await eventsOf(store, callerId)), ['usage.threshold']);
  });

  test('the sequences of a caller have no gaps, even after a crash, and pages have each once', async (before) => {
    const callers = [before.gallery, await before.addPlatform('house')];
    for (const round of from1To(4))
      await Promise.all(callers.map((by, place) => fileMany(before, by, round * 20 * (place + 1))));
    const store = await before.openCrashed();
    await Promise.all(callers.map((by, place) => fileMany(store, by, 100 * (place + 1))));
    for (const [place, { callerId }] of callers.entries()) {
      const count = 300 * (place + 1);
      assert.deepEqual(sequencesOf(await eventsOf(store, callerId)), from1To(count));
      for (const after of [0, 1, 63, 64, 65, 100, count - 1, count])
        assert.deepEqual(sequencesOf(await eventsOf(store, callerId, after)), from1To(count).slice(after));
    }
    const all = await allEvents(store);
    assert.deepEqual(
      all.map(({ position }) => position),
      from1To(900),
    );
    assert.deepEqual(await allEvents(store, 450), all.slice(450));
    const page = await store.perform({ kind: 'ReadEvents', callerId: 1, after: undefined });
    assert.ok(page.events.length <= eventPageMax);
  });

  test('a list since a time begins with the first event of that time, of one caller and of all', async (store) => {
    const callers = [store.gallery, await store.addPlatform('house')] as const;
    const [gallery, house] = callers;
    // More than the events of a row and than a mark has, and many of one moment.
    for (const [second, by, count] of [
      ...[[0, house, 3] as const, [10, gallery, 90] as const, [10, house, 30] as const],
      ...[[11, gallery, 1] as const, [60, house, 80] as const, [61, gallery, 70] as const],
    ])
      await Promise.all(from1To(count).map(() => store.perform(toFile(by, later(second)))));
    const sinceOf = (second: number) => noon.atMs + second * 1_000;
    const all = await allEvents(store);
    for (const second of [-1_000, 0, 0.001, 9, 10, 10.5, 11, 12, 60, 60.001, 61, 62]) {
      const sinceMs = sinceOf(second);
      const expected = all.filter(({ atMs }) => atMs >= sinceMs);
      const page = await store.perform({ kind: 'ReadAllEvents', after: undefined, sinceMs });
      assertBegins(page, expected);
      if (expected.length === 0) assert.equal(page.next, all.length);
      for (const { callerId } of callers) {
        const own = await store.perform({ kind: 'ReadEvents', callerId, after: undefined, sinceMs });
        assertBegins(
          own,
          expected.filter((event) => event.callerId === callerId),
        );
      }
    }
    const { callerId } = await store.addPlatform('museum');
    const none = await store.perform({ kind: 'ReadEvents', callerId, after: undefined, sinceMs: 0 });
    assert.deepEqual(none, { events: [], next: 0 });
  });

  test('a cursor after the newest event is rejected', async (store) => {
    const { callerId, caller } = store.gallery;
    await refused(store.perform({ kind: 'ReadEvents', callerId, after: 1 }), 'VALIDATION_FAILED');
    await store.fileOne({ callerId, caller });
    assert.deepEqual(await eventsOf(store, callerId, 1), []);
    await refused(store.perform({ kind: 'ReadEvents', callerId, after: 2 }), 'VALIDATION_FAILED');
    await refused(store.perform({ kind: 'ReadAllEvents', after: 2 }), 'VALIDATION_FAILED');
  });

  test('events are kept for 30 days; a cursor before expired events is rejected', async (store) => {
    const by = store.gallery;
    const daysLater = (days: number) => later(days * 86_400);
    await fileMany(store, by, 100);
    await store.perform(toFile(by, daysLater(10)));
    // Each takes some of the oldest with it.
    const kept = eventRetentionS / 86_400;
    for (const minute of from1To(60)) await store.perform(toFile(by, daysLater(kept + 1 + minute / 1_440)));
    const events = await eventsOf(store, by.callerId);
    assert.deepEqual(sequencesOf(events), from1To(161).slice(100));
    assert.deepEqual(await eventsOf(store, by.callerId, 100), events);
    assert.deepEqual(await allEvents(store), events);
    for (const after of [0, 1, 50, 99]) {
      await refused(store.perform({ kind: 'ReadEvents', callerId: by.callerId, after }), 'EVENTS_EXPIRED');
      await refused(store.perform({ kind: 'ReadAllEvents', after }), 'EVENTS_EXPIRED');
    }
    await assert.rejects(
      store.perform({ kind: 'ReadEvents', callerId: by.callerId, after: 99 }),
      /The oldest event is 101: continue after 100\./,
    );
    const newest = events.slice(1);
    for (const [sinceMs, expected] of [
      [noon.atMs, events],
      [daysLater(11).atMs, newest],
    ] as const) {
      const since = { after: undefined, sinceMs };
      assertBegins(await store.perform({ kind: 'ReadEvents', callerId: by.callerId, ...since }), expected);
      assertBegins(await store.perform({ kind: 'ReadAllEvents', ...since }), expected);
    }
  });

  test('by an advanced clock events expire, and filings and transfers have the real time', async (store) => {
    const by = store.gallery;
    const seconds = eventRetentionS + 86_400;
    await fileMany(store, by, 10);
    await store.perform({ kind: 'AdvanceClock', by: tester, seconds });
    const real = later(60);
    const at = { ...later(60 + seconds), real };
    const filed = await store.perform(toFile(by, at));
    assert.equal(filed.timestamp, real.timestamp);
    const { order } = await store.perform(toOpen(by, filed.filingNo, { at }));
    assert.equal(order.timestamp, at.timestamp);
    await store.settled(order.escrowId, { to: 'FROZEN' }, at);
    await store.resolved(by, order.escrowId, 'RELEASE', at);
    for (let count = 0; count < 10; count += 1) await store.perform(toFile(by, at));
    await store.rotateKey(by.keyId);
    const leaves = (await store.allLeaves()).map((leaf) => JSON.parse(leaf));
    const times = leaves.filter(({ kind }) => kind === 'TRANSFER').map(({ time: atS }) => atS * 1_000);
    assert.deepEqual(times, [real.atMs]);
    const events = await eventsOf(store, by.callerId);
    assert.deepEqual(sequencesOf(events), from1To(sequencesOf(events).at(-1) ?? 0).slice(10));
    assert.deepEqual(
      typesOf(events).filter((type) => type !== 'filing.created'),
      ['escrow.frozen', 'escrow.released', 'provenance.transferred', 'key.rotated'],
    );
    assert.ok(events.slice(0, -1).every(({ atMs }) => atMs === at.atMs));
    assert.equal(events.at(-1)?.atMs, (tester.atS + seconds) * 1_000);
    await refused(store.perform({ kind: 'ReadEvents', callerId: by.callerId, after: 0 }), 'EVENTS_EXPIRED');
  });

  test('a clock that is ahead deletes no events until a filing has its time', async (store) => {
    const { callerId, caller } = store.gallery;
    await store.fileOne({ callerId, caller });
    const aheadS = Math.floor(noon.atMs / 1_000) + 2 * eventRetentionS;
    const quota = { callerId, month: '2027-01', limit: 1, take: true };
    await store.execute({ admission: { nowS: aheadS, quota } });
    assert.deepEqual(typesOf(await eventsOf(store, callerId)), ['filing.created', 'usage.threshold']);
  });

  test('listeners get the callers with new events', async (store) => {
    const by = store.gallery;
    const heard: (readonly number[])[] = [];
    const end = store.onEvents((callerIds) => heard.push(callerIds));
    await store.fileOne(by);
    assert.deepEqual(heard, [[by.callerId]]);
    end();
    await store.fileOne(by);
    assert.equal(heard.length, 1);
  });
}
