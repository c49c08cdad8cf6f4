import assert from 'node:assert/strict';
import { type EventType, eventRetentionS } from '../../../src/domain/event.ts';
import { failingMaxS } from '../../../src/domain/webhook.ts';
import type { Command } from '../../../src/store/store.ts';
import type { DeliveryResult, StoredWebhook, WebhookWork } from '../../../src/store/webhook-commands.ts';
import { nameOf, resultOf } from './endpoints.ts';
import { assertListed, firstPage, later, noon } from './fixtures.ts';
import type { GalleryStore, StoreTests, TestStore } from './tests.ts';

const nowMs = noon.atMs + 60_000;

/** What is done with an endpoint. */
const actionsOn = (store: TestStore, webhook: StoredWebhook) => {
  const take = (over: Partial<Command<'ClaimDeliveries'>> = {}) => store.claim(webhook, nowMs, over);
  const change = (over: Command<'ChangeWebhook'>['change']) =>
    store.perform({ kind: 'ChangeWebhook', ...nameOf(webhook), change: over });
  return {
    take,
    taken: async (over?: Parameters<typeof take>[0]) => shortly(await take(over)),
    note: (...outcomes: readonly DeliveryResult[]) => store.perform({ kind: 'RecordAttempts', outcomes }),
    outcome: (sequence: number, over: Partial<DeliveryResult> = {}) =>
      resultOf(webhook, sequence, { atMs: nowMs, httpStatus: 204, answer: Buffer.alloc(0), ...over }),
    change,
    subscribe: (eventTypes: EventType[]) => change({ eventTypes }),
    statuses: () => store.statusesOf(webhook),
  };
};

/** The sequences to send, and whether there may be more. */
const shortly = ({ due, hasMore }: WebhookWork) => [due.map(({ event }) => event.sequence), hasMore];

const failed = {
  isDelivered: false,
  httpStatus: null,
  answer: null,
  error: 'it refuses connections',
} as const;

/** A store of a test whose platform has an endpoint. */
type EndpointStore = GalleryStore & { readonly webhook: StoredWebhook } & ReturnType<typeof actionsOn>;

/** Deliveries of events to endpoints. */
export function deliveryPromises(tests: StoreTests): void {
  const test = (name: string, run: (store: EndpointStore) => Promise<void>) =>
    tests.test(name, async (store) => {
      const webhook = await store.addWebhook(store.gallery);
      await run(Object.assign(store, { webhook, ...actionsOn(store, webhook) }));
    });

  test('a suspended platform gets nothing, and the missed events once it is resumed', async (store) => {
    const setStatus = (status: 'ACTIVE' | 'SUSPENDED') =>
      store.setPlatformStatus(store.gallery.caller, status);
    const listed = async () => {
      const { items } = await store.perform({ kind: 'ListSending', page: firstPage(10) });
      return items.map(({ webhookId }) => webhookId);
    };
    await store.fileSome(store.gallery, 2);
    await setStatus('SUSPENDED');
    assert.deepEqual(await listed(), []);
    assert.deepEqual(await store.take(), { webhook: undefined, due: [], hasMore: false });
    await store.fileSome(store.gallery, 1);
    await setStatus('ACTIVE');
    assert.deepEqual(await listed(), [store.webhook.webhookId]);
    assert.deepEqual(await store.taken(), [[1, 2, 3], false]);
  });

  test('an endpoint gets the events since its creation once, in order', async (store) => {
    const { gallery } = store;
    await store.fileSome(gallery, 2);
    const webhook = await store.addWebhook(gallery);
    const { take, taken } = actionsOn(store, webhook);
    assert.deepEqual(await taken(), [[], false]);
    const filingNo = await store.fileOne(gallery);
    await store.fileSome(gallery, 4);
    const work = await take({ limit: 2 });
    assert.deepEqual(shortly(work), [[3, 4], true]);
    const [first] = work.due;
    const { position, ...event } = first?.event ?? {};
    assert.equal(position, 3);
    assert.deepEqual(
      [first?.attempts, event],
      [
        0,
        {
          ...{ sequence: 3, type: 'filing.created', callerId: gallery.callerId, caller: 'gallery' },
          ...{ atMs: noon.atMs, filingNo },
        },
      ],
    );
    assert.deepEqual(work.webhook, { ...webhook, nextDueAtMs: null });
    assert.deepEqual(await taken({ underWay: [3, 4], limit: 2 }), [[5, 6], true]);
    assert.deepEqual(await taken({ underWay: [3, 4, 5, 6] }), [[7], false]);
    assert.deepEqual(await taken({ underWay: [3, 4, 5, 6, 7] }), [[], false]);
  });

  test('a claimed delivery without a recorded attempt is claimed again, unless it is under way', async (store) => {
    await store.fileSome(store.gallery, 3);
    await store.take();
    await store.note(store.outcome(2));
    const crashed = actionsOn(await store.openCrashed(), store.webhook);
    assert.deepEqual(await crashed.taken(), [[1, 3], false]);
    assert.deepEqual(await crashed.taken({ underWay: [1] }), [[3], false]);
  });

  test('an endpoint gets only the event types that it subscribes to', async (store) => {
    await store.subscribe(['escrow.frozen']);
    await Promise.all(Array.from({ length: 300 }, () => store.fileOne(store.gallery)));
    await store.frozen(store.gallery);
    assert.deepEqual(await store.taken(), [[], true]);
    assert.deepEqual(await store.taken(), [[302], false]);
    assert.deepEqual(await store.statuses(), [[302, 'PENDING', 0, nowMs]]);
  });

  test('an event waits until the earlier one of its resource has ended', async (store) => {
    const { gallery, webhook } = store;
    await store.subscribe(['escrow.frozen', 'escrow.released', 'provenance.transferred']);
    const { escrowId } = await store.frozen(gallery);
    const other = await store.frozen(gallery);
    await store.resolved(gallery, escrowId, 'RELEASE');
    await store.resolved(gallery, other.escrowId, 'RELEASE');
    // 2 and 4: they are FROZEN. 5 and 7: they are RELEASED. 6 and 8: the transfers of their filings.
    assert.deepEqual(await store.taken(), [[2, 4, 6, 8], false]);
    const again = { ...failed, retryAtMs: nowMs + 5_000 };
    const first = await store.note(store.outcome(2, again), store.outcome(4));
    assert.deepEqual(first, { disabled: [], released: [webhook.id] });
    assert.deepEqual(await store.taken({ underWay: [6, 8] }), [[7], false]);
    const soon = { nowMs: nowMs + 5_000, underWay: [6, 7, 8] };
    assert.deepEqual(await store.taken(soon), [[2], false]);
    const last = await store.note(store.outcome(2, { ...failed, attempts: 2 }));
    assert.deepEqual(last.released, [webhook.id]);
    assert.deepEqual(await store.taken(soon), [[5], false]);
    const none = await store.note(store.outcome(5));
    assert.deepEqual(none.released, []);
    assert.deepEqual(await store.statuses(), [
      [2, 'FAILED', 2, null],
      [4, 'DELIVERED', 1, null],
      [5, 'DELIVERED', 1, null],
      [6, 'PENDING', 0, nowMs],
      [7, 'PENDING', 0, nowMs],
      [8, 'PENDING', 0, nowMs],
    ]);
  });

  test('a due or redelivered event waits if an earlier one of its resource is sent again', async (store) => {
    const { webhook } = store;
    await store.subscribe(['escrow.frozen', 'escrow.released']);
    const { escrowId } = await store.frozen(store.gallery);
    await store.resolved(store.gallery, escrowId, 'RELEASE');
    await store.take();
    await store.note(store.outcome(2, failed));
    assert.deepEqual(await store.taken(), [[3], false]);
    await store.note(store.outcome(3, { ...failed, retryAtMs: nowMs }));
    const again = { kind: 'Redeliver', ...nameOf(webhook), which: { sequence: 2 }, nowMs } as const;
    await store.perform(again);
    assert.deepEqual(await store.taken(), [[2], false]);
    assert.deepEqual(await store.statuses(), [
      [2, 'PENDING', 0, nowMs],
      [3, 'WAITING', 1, null],
    ]);
    await store.perform({ ...again, which: { sequence: 3 } });
    assert.deepEqual((await store.statuses())[1], [3, 'WAITING', 0, null]);
    await store.note(store.outcome(2));
    assert.deepEqual(await store.taken(), [[3], false]);
  });

  test('retries are due at their times, the oldest first, and before new events', async (store) => {
    await store.fileSome(store.gallery, 3);
    await store.take();
    const retry = (sequence: number, retryAtMs: number) =>
      store.outcome(sequence, { ...failed, httpStatus: 503, answer: Buffer.from('later'), retryAtMs });
    await store.note(retry(1, nowMs + 9_000), retry(2, nowMs + 5_000), retry(3, nowMs + 7_000));
    await store.fileOne(store.gallery);
    const early = await store.take({ nowMs: nowMs + 4_999 });
    assert.deepEqual(shortly(early), [[4], false]);
    assert.equal(early.webhook?.nextDueAtMs, nowMs + 5_000);
    await store.fileOne(store.gallery);
    const due = await store.take({ nowMs: nowMs + 7_000, underWay: [4] });
    assert.deepEqual(shortly(due), [[2, 3, 5], false]);
    assert.deepEqual(
      due.due.map(({ attempts }) => attempts),
      [1, 1, 0],
    );
    assert.equal(due.webhook?.nextDueAtMs, nowMs + 9_000);
    const some = await store.take({ nowMs: nowMs + 7_000, limit: 1, underWay: [2, 4, 5] });
    assert.deepEqual([shortly(some), some.webhook?.nextDueAtMs], [[[3], false], nowMs + 9_000]);
    const many = await store.take({ nowMs: nowMs + 9_000, limit: 1, underWay: [4, 5] });
    assert.deepEqual(shortly(many), [[2], true]);
  });

  test('the result of an attempt is shown, and recording it again changes nothing', async (store) => {
    const { webhook } = store;
    await store.fileSome(store.gallery, 2);
    await store.take();
    const apiError = {
      isDelivered: false,
      httpStatus: 500,
      answer: Buffer.from('oh'),
      error: 'it answered 500',
    };
    const outcomes = [
      store.outcome(1, { ...apiError, retryAtMs: nowMs + 5_000 }),
      store.outcome(2, { atMs: nowMs - 1_000 }),
    ];
    const page = firstPage(2);
    const list = () => store.perform({ kind: 'ListDeliveries', ...nameOf(webhook), status: undefined, page });
    for (const _ of ['once', 'again']) {
      await store.note(...outcomes);
      const { items } = await list();
      assert.deepEqual(
        items.map(({ callerId: _, ...item }) => ({
          ...item,
          answer: item.answer && Buffer.from(item.answer),
        })),
        [
          {
            ...{ sequence: 2, type: 'filing.created', status: 'DELIVERED', attempts: 1 },
            ...{ lastAttemptAtMs: nowMs - 1_000, nextAttemptAtMs: null, httpStatus: 204 },
            ...{ answer: Buffer.alloc(0), error: null },
          },
          {
            ...{ sequence: 1, type: 'filing.created', status: 'PENDING', attempts: 1 },
            ...{ lastAttemptAtMs: nowMs, nextAttemptAtMs: nowMs + 5_000, httpStatus: 500 },
            ...{ answer: Buffer.from('oh'), error: 'it answered 500' },
          },
        ],
      );
    }
  });

  test('a failed attempt that is recorded late changes nothing of a later one', async (store) => {
    const { webhook } = store;
    await store.fileSome(store.gallery, 2);
    await store.take();
    const page = firstPage(2);
    const list = () => store.perform({ kind: 'ListDeliveries', ...nameOf(webhook), status: undefined, page });
    await store.note(
      store.outcome(1, { attempts: 3 }),
      store.outcome(2, { ...failed, attempts: 3, retryAtMs: nowMs + 5_000 }),
    );
    const before = await list();
    await store.note(
      store.outcome(1, { ...failed, attempts: 2 }),
      store.outcome(2, { ...failed, attempts: 2, retryAtMs: nowMs + 1_000 }),
    );
    assert.deepEqual(await list(), before);
    await store.note(store.outcome(2, { attempts: 2 }));
    assert.deepEqual(await store.statuses(), [
      [1, 'DELIVERED', 3, null],
      [2, 'DELIVERED', 2, null],
    ]);
  });

  test('an endpoint fails since the first of its failures in a row', async (store) => {
    await store.fileSome(store.gallery, 2);
    await store.take();
    const sinceS = async () => (await store.findWebhook(store.webhook)).failingSinceS;
    const at = (atMs: number) => store.outcome(1, { ...failed, atMs, retryAtMs: nowMs });
    await store.note(at(nowMs + 1_999), at(nowMs + 60_000));
    assert.equal(await sinceS(), nowMs / 1_000 + 1);
    await store.note(store.outcome(2));
    assert.equal(await sinceS(), null);
    await store.note(at(nowMs + 60_000), at(nowMs));
    assert.equal(await sinceS(), nowMs / 1_000, 'the clock was set back');
  });

  test('an endpoint is disabled, with an event, if all attempts failed for five days', async (store) => {
    const { webhook } = store;
    await store.fileSome(store.gallery, 3);
    await store.take();
    const retry = { ...failed, retryAtMs: nowMs + 86_400_000 };
    const fiveDaysMs = failingMaxS * 1_000;
    const before = await store.note(
      store.outcome(1, retry),
      store.outcome(2, { ...retry, atMs: nowMs + fiveDaysMs - 1_000 }),
    );
    assert.deepEqual(before.disabled, []);
    const atMs = nowMs + fiveDaysMs;
    const { disabled } = await store.note(store.outcome(2, { ...retry, attempts: 2, atMs }));
    assert.deepEqual(disabled, [webhook.id]);
    const { status, disabledReason } = await store.findWebhook(webhook);
    assert.deepEqual([status, disabledReason], ['DISABLED', 'every attempt failed for five days']);
    const { type, atMs: eventAtMs, webhookId } = (await store.eventsOf(store.gallery)).at(-1) ?? {};
    assert.deepEqual([type, eventAtMs, webhookId], ['webhook.disabled', atMs, webhook.webhookId]);
    assert.deepEqual(await store.statuses(), [
      [1, 'FAILED', 1, null],
      [2, 'FAILED', 2, null],
      [3, 'FAILED', 0, null],
    ]);
    assert.deepEqual(await store.take(), { webhook: undefined, due: [], hasMore: false });
  });

  test('a result can disable an endpoint at once, with one event', async (store) => {
    const { webhook } = store;
    await store.fileSome(store.gallery, 2);
    await store.take();
    const gone = { ...failed, httpStatus: 410, disables: 'the endpoint answered 410 Gone' };
    const both = [store.outcome(1, gone), store.outcome(2, gone)];
    assert.deepEqual(await store.note(...both), { disabled: [webhook.id], released: [] });
    assert.deepEqual((await store.note(...both)).disabled, []);
    assert.equal((await store.findWebhook(webhook)).disabledReason, 'the endpoint answered 410 Gone');
    const disabled = (await store.eventsOf(store.gallery)).filter(({ type }) => type === 'webhook.disabled');
    assert.equal(disabled.length, 1);
  });

  test('a result that comes after an endpoint was disabled or deleted opens no delivery again', async (store) => {
    await store.fileSome(store.gallery, 3);
    await store.take();
    await store.change({ status: 'DISABLED' });
    const retry = { ...failed, retryAtMs: nowMs + 5_000 };
    await store.note(store.outcome(1), store.outcome(2, retry));
    await store.change({ status: 'ENABLED' });
    await store.note(store.outcome(3, retry));
    assert.deepEqual(await store.statuses(), [
      [1, 'DELIVERED', 1, null],
      [2, 'FAILED', 1, null],
      [3, 'FAILED', 1, null],
    ]);
    await store.perform({ kind: 'DeleteWebhook', ...nameOf(store.webhook) });
    assert.deepEqual(await store.note(store.outcome(1)), { disabled: [], released: [] });
    assert.equal((await store.take()).webhook, undefined);
  });

  test('a delivery is due at once if it is scheduled later than any retry', async (store) => {
    await store.fileSome(store.gallery, 2);
    await store.take();
    const dayMs = 86_400_000;
    const retry = (sequence: number, retryAtMs: number) => store.outcome(sequence, { ...failed, retryAtMs });
    await store.note(retry(1, nowMs + 30 * dayMs), retry(2, nowMs + dayMs));
    assert.deepEqual(await store.taken(), [[1], false]);
  });

  test('the delivery of an expired event fails, the next one is due, and the cursor skips expired events', async (store) => {
    const { gallery, webhook } = store;
    await store.subscribe(['escrow.frozen', 'escrow.released']);
    const { escrowId } = await store.frozen(gallery);
    const idle = await store.addWebhook(gallery);
    await store.fileSome(gallery, 2);
    await store.take({ limit: 1 });
    await store.note(store.outcome(2, { ...failed, retryAtMs: nowMs }));
    const longAfter = later(eventRetentionS + 1);
    await store.resolved(gallery, escrowId, 'RELEASE', longAfter);
    // Each transaction that writes events deletes some of the oldest.
    await store.fileSome(gallery, 3, longAfter);
    const kept = (await store.eventsOf(gallery)).map(({ sequence }) => sequence);
    assert.equal(kept[0], 5);
    const wanted = { nowMs: longAfter.atMs };
    assert.deepEqual(await store.taken(wanted), [[5], false]);
    const page = firstPage(10);
    const listed = await store.perform({
      ...{ kind: 'ListDeliveries', ...nameOf(webhook), status: 'FAILED', page },
    });
    assert.deepEqual(
      listed.items.map(({ sequence, error }) => [sequence, error]),
      [[2, 'the event has expired']],
    );
    assert.deepEqual(await actionsOn(store, idle).taken(wanted), [kept, false]);
  });

  test('deliveries of expired events are deleted, also those of endpoints without traffic', async (store) => {
    const idle = await store.addWebhook(store.gallery);
    await store.fileSome(store.gallery, 4);
    for (const { take, note, outcome } of [store, actionsOn(store, idle)]) {
      await take();
      await note(...[1, 2, 3, 4].map((sequence) => outcome(sequence)));
    }
    await actionsOn(store, idle).change({ status: 'DISABLED' });
    const atMs = noon.atMs + (eventRetentionS + 1) * 1_000;
    await store.note(store.outcome(4, { atMs }));
    assert.equal((await store.statuses()).length, 4, 'no filing is dated by this clock');
    await store.fileSome(store.gallery, 1, later(eventRetentionS + 1));
    await store.take({ nowMs: atMs });
    await store.note(store.outcome(5, { atMs: noon.atMs + eventRetentionS * 1_000 }));
    assert.equal((await store.statuses()).length, 5, 'nothing is too old yet');
    for (const _ of ['in turn', 'in turn', 'in turn']) await store.note(store.outcome(5, { atMs }));
    assert.deepEqual(await store.statuses(), [[5, 'DELIVERED', 1, null]]);
    assert.deepEqual(await store.statusesOf(idle), []);
  });

  test('enabled endpoints are listed with the time of their next retry', async (store) => {
    const other = await store.addWebhook(await store.addPlatform('auction house'));
    const [disabled, last] = [await store.addWebhook(store.gallery), await store.addWebhook(store.gallery)];
    await actionsOn(store, disabled).change({ status: 'DISABLED' });
    await store.fileSome(store.gallery, 2);
    await store.take();
    const retry = (sequence: number, retryAtMs: number) => store.outcome(sequence, { ...failed, retryAtMs });
    await store.note(retry(1, nowMs + 9_000), retry(2, nowMs + 5_000));
    const failing = { ...store.webhook, failingSinceS: nowMs / 1_000 };
    await assertListed(
      (page) => store.perform({ kind: 'ListSending', page }),
      (each) => each,
      [
        { ...failing, nextDueAtMs: nowMs + 5_000 },
        { ...other, nextDueAtMs: null },
        { ...last, nextDueAtMs: null },
      ],
    );
  });
}
