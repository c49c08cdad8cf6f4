import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventRetentionS } from '../../../src/domain/event.ts';
import { failingMaxS } from '../../../src/domain/webhook.ts';
import { type Command, perform, type Store } from '../../../src/store/store.ts';
import type { DeliveryResult, StoredWebhook, WebhookWork } from '../../../src/store/webhook-commands.ts';
import { eventsOf, fileSome, findWebhook, nameOf, resultOf, statusesOf } from './endpoints.ts';
import {
  addPlatform,
  addWebhook,
  allPages,
  crashCopy,
  fileOne,
  firstPage,
  frozen,
  later,
  noon,
  openGallery,
  openStore,
  resolved,
  type StoreEngine,
  setPlatformStatus,
} from './fixtures.ts';

const nowMs = noon.atMs + 60_000;

/** Opens a store with a gallery that has an endpoint. */
async function openEndpoint(t: TestContext, engine: StoreEngine, eventTypes?: StoredWebhook['eventTypes']) {
  const { store, by: gallery } = await openGallery(t, engine);
  return { store, gallery, webhook: await addWebhook(store, gallery, { eventTypes }) };
}

const take = (store: Store, { id }: StoredWebhook, over: Partial<Command<'ClaimDeliveries'>> = {}) =>
  perform(store, { kind: 'ClaimDeliveries', id, nowMs, limit: 100, underWay: [], ...over });

/** The sequences to send, and whether there may be more. */
const shortly = ({ due, hasMore }: WebhookWork) => [due.map(({ event }) => event.sequence), hasMore];

const outcome = (webhook: StoredWebhook, sequence: number, over: Partial<DeliveryResult> = {}) =>
  resultOf(webhook, sequence, { atMs: nowMs, httpStatus: 204, answer: Buffer.alloc(0), ...over });

const failed = {
  isDelivered: false,
  httpStatus: null,
  answer: null,
  error: 'it refuses connections',
} as const;

const note = (store: Store, ...outcomes: readonly DeliveryResult[]) =>
  perform(store, { kind: 'RecordAttempts', outcomes });

/** Deliveries of events to endpoints. */
export function deliveryPromises(engine: StoreEngine): void {
  test('a suspended platform gets nothing, and the missed events once it is resumed', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    const setStatus = (status: 'ACTIVE' | 'SUSPENDED') => setPlatformStatus(store, gallery.caller, status);
    const listed = async () => {
      const { items } = await perform(store, { kind: 'ListSending', page: firstPage(10) });
      return items.map(({ webhookId }) => webhookId);
    };
    await fileSome(store, gallery, 2);
    await setStatus('SUSPENDED');
    assert.deepEqual(await listed(), []);
    assert.deepEqual(await take(store, webhook), { webhook: undefined, due: [], hasMore: false });
    await fileSome(store, gallery, 1);
    await setStatus('ACTIVE');
    assert.deepEqual(await listed(), [webhook.webhookId]);
    assert.deepEqual(shortly(await take(store, webhook)), [[1, 2, 3], false]);
  });

  test('an endpoint gets the events since its creation once, in order', async (t) => {
    const { store, by: gallery } = await openGallery(t, engine);
    await fileSome(store, gallery, 2);
    const webhook = await addWebhook(store, gallery);
    assert.deepEqual(shortly(await take(store, webhook)), [[], false]);
    const filingNo = await fileOne(store, gallery);
    await fileSome(store, gallery, 4);
    const work = await take(store, webhook, { limit: 2 });
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
    const more = { underWay: [3, 4] };
    assert.deepEqual(shortly(await take(store, webhook, { ...more, limit: 2 })), [[5, 6], true]);
    const rest = await take(store, webhook, { underWay: [3, 4, 5, 6] });
    assert.deepEqual(shortly(rest), [[7], false]);
    assert.deepEqual(shortly(await take(store, webhook, { underWay: [3, 4, 5, 6, 7] })), [[], false]);
  });

  test('a claimed delivery without a recorded attempt is claimed again, unless it is under way', async (t) => {
    const { store, by: gallery, dataDir } = await openGallery(t, engine);
    const webhook = await addWebhook(store, gallery);
    await fileSome(store, gallery, 3);
    await take(store, webhook);
    await note(store, outcome(webhook, 2));
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(shortly(await take(crashed, webhook)), [[1, 3], false]);
    assert.deepEqual(shortly(await take(crashed, webhook, { underWay: [1] })), [[3], false]);
  });

  test('an endpoint gets only the event types that it subscribes to', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine, ['escrow.frozen']);
    await Promise.all(Array.from({ length: 300 }, () => fileOne(store, gallery)));
    await frozen(store, gallery);
    assert.deepEqual(shortly(await take(store, webhook)), [[], true]);
    assert.deepEqual(shortly(await take(store, webhook)), [[302], false]);
    assert.deepEqual(await statusesOf(store, webhook), [[302, 'PENDING', 0, nowMs]]);
  });

  test('an event waits until the earlier one of its resource has ended', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine, [
      'escrow.frozen',
      'escrow.released',
      'provenance.transferred',
    ]);
    const { escrowId } = await frozen(store, gallery);
    const other = await frozen(store, gallery);
    await resolved(store, gallery, escrowId, 'RELEASE');
    await resolved(store, gallery, other.escrowId, 'RELEASE');
    const events = (await eventsOf(store, gallery)).map(({ type, escrowId: id, sequence }) => [
      sequence,
      type,
      id,
    ]);
    assert.deepEqual(
      events.filter(([, type]) => type !== 'filing.created'),
      [
        [2, 'escrow.frozen', escrowId],
        [4, 'escrow.frozen', other.escrowId],
        [5, 'escrow.released', escrowId],
        [6, 'provenance.transferred', undefined],
        [7, 'escrow.released', other.escrowId],
        [8, 'provenance.transferred', undefined],
      ],
    );
    // No other event of the filing is sent.
    assert.deepEqual(shortly(await take(store, webhook)), [[2, 4, 6, 8], false]);
    const again = { ...failed, retryAtMs: nowMs + 5_000 };
    const first = await note(store, outcome(webhook, 2, again), outcome(webhook, 4));
    assert.deepEqual(first, { disabled: [], released: [webhook.id] });
    assert.deepEqual(shortly(await take(store, webhook, { underWay: [6, 8] })), [[7], false]);
    const soon = { nowMs: nowMs + 5_000, underWay: [6, 7, 8] };
    assert.deepEqual(shortly(await take(store, webhook, soon)), [[2], false]);
    const last = await note(store, outcome(webhook, 2, { ...failed, attempts: 2 }));
    assert.deepEqual(last.released, [webhook.id]);
    assert.deepEqual(shortly(await take(store, webhook, soon)), [[5], false]);
    const none = await note(store, outcome(webhook, 5));
    assert.deepEqual(none.released, []);
    assert.deepEqual(await statusesOf(store, webhook), [
      [2, 'FAILED', 2, null],
      [4, 'DELIVERED', 1, null],
      [5, 'DELIVERED', 1, null],
      [6, 'PENDING', 0, nowMs],
      [7, 'PENDING', 0, nowMs],
      [8, 'PENDING', 0, nowMs],
    ]);
  });

  test('a due or redelivered event waits if an earlier one of its resource is sent again', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine, ['escrow.frozen', 'escrow.released']);
    const { escrowId } = await frozen(store, gallery);
    await resolved(store, gallery, escrowId, 'RELEASE');
    await take(store, webhook);
    await note(store, outcome(webhook, 2, failed));
    assert.deepEqual(shortly(await take(store, webhook)), [[3], false]);
    await note(store, outcome(webhook, 3, { ...failed, retryAtMs: nowMs }));
    const again = { kind: 'Redeliver', ...nameOf(webhook), which: { sequence: 2 }, nowMs } as const;
    await perform(store, again);
    assert.deepEqual(shortly(await take(store, webhook)), [[2], false]);
    assert.deepEqual(await statusesOf(store, webhook), [
      [2, 'PENDING', 0, nowMs],
      [3, 'WAITING', 1, null],
    ]);
    await perform(store, { ...again, which: { sequence: 3 } });
    assert.deepEqual((await statusesOf(store, webhook))[1], [3, 'WAITING', 0, null]);
    await note(store, outcome(webhook, 2));
    assert.deepEqual(shortly(await take(store, webhook)), [[3], false]);
  });

  test('retries are due at their times, the oldest first, and before new events', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 3);
    await take(store, webhook);
    const retry = (sequence: number, retryAtMs: number) =>
      outcome(webhook, sequence, { ...failed, httpStatus: 503, answer: Buffer.from('later'), retryAtMs });
    await note(store, retry(1, nowMs + 9_000), retry(2, nowMs + 5_000), retry(3, nowMs + 7_000));
    await fileOne(store, gallery);
    const early = await take(store, webhook, { nowMs: nowMs + 4_999 });
    assert.deepEqual(shortly(early), [[4], false]);
    assert.equal(early.webhook?.nextDueAtMs, nowMs + 5_000);
    await fileOne(store, gallery);
    const due = await take(store, webhook, { nowMs: nowMs + 7_000, underWay: [4] });
    assert.deepEqual(shortly(due), [[2, 3, 5], false]);
    assert.deepEqual(
      due.due.map(({ attempts }) => attempts),
      [1, 1, 0],
    );
    assert.equal(due.webhook?.nextDueAtMs, nowMs + 9_000);
    const some = await take(store, webhook, { nowMs: nowMs + 7_000, limit: 1, underWay: [2, 4, 5] });
    assert.deepEqual([shortly(some), some.webhook?.nextDueAtMs], [[[3], false], nowMs + 9_000]);
    const many = await take(store, webhook, { nowMs: nowMs + 9_000, limit: 1, underWay: [4, 5] });
    assert.deepEqual(shortly(many), [[2], true]);
  });

  test('the result of an attempt is shown, and recording it again changes nothing', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const apiError = {
      isDelivered: false,
      httpStatus: 500,
      answer: Buffer.from('oh'),
      error: 'it answered 500',
    };
    const outcomes = [
      outcome(webhook, 1, { ...apiError, retryAtMs: nowMs + 5_000 }),
      outcome(webhook, 2, { atMs: nowMs - 1_000 }),
    ];
    const page = firstPage(2);
    const list = () =>
      perform(store, { kind: 'ListDeliveries', ...nameOf(webhook), status: undefined, page });
    for (const _ of ['once', 'again']) {
      await note(store, ...outcomes);
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

  test('an endpoint fails since the first of its failures in a row', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const sinceS = async () => (await findWebhook(store, webhook)).failingSinceS;
    const at = (atMs: number) => outcome(webhook, 1, { ...failed, atMs, retryAtMs: nowMs });
    await note(store, at(nowMs + 1_999), at(nowMs + 60_000));
    assert.equal(await sinceS(), nowMs / 1_000 + 1);
    await note(store, outcome(webhook, 2));
    assert.equal(await sinceS(), null);
    await note(store, at(nowMs + 60_000), at(nowMs));
    assert.equal(await sinceS(), nowMs / 1_000, 'the clock was set back');
  });

  test('an endpoint is disabled, with an event, if all attempts failed for five days', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 3);
    await take(store, webhook);
    const retry = { ...failed, retryAtMs: nowMs + 86_400_000 };
    const fiveDaysMs = failingMaxS * 1_000;
    const before = await note(
      store,
      outcome(webhook, 1, retry),
      outcome(webhook, 2, { ...retry, atMs: nowMs + fiveDaysMs - 1_000 }),
    );
    assert.deepEqual(before.disabled, []);
    const atMs = nowMs + fiveDaysMs;
    const { disabled } = await note(store, outcome(webhook, 2, { ...retry, attempts: 2, atMs }));
    assert.deepEqual(disabled, [webhook.id]);
    const { status, disabledWhy } = await findWebhook(store, webhook);
    assert.deepEqual([status, disabledWhy], ['DISABLED', 'every attempt failed for five days']);
    const { type, atMs: eventAtMs, webhookId } = (await eventsOf(store, gallery)).at(-1) ?? {};
    assert.deepEqual([type, eventAtMs, webhookId], ['webhook.disabled', atMs, webhook.webhookId]);
    assert.deepEqual(await statusesOf(store, webhook), [
      [1, 'FAILED', 1, null],
      [2, 'FAILED', 2, null],
      [3, 'FAILED', 0, null],
    ]);
    assert.deepEqual(await take(store, webhook), { webhook: undefined, due: [], hasMore: false });
  });

  test('a result can disable an endpoint at once, with one event', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const gone = { ...failed, httpStatus: 410, disables: 'the endpoint answered 410 Gone' };
    const both = [outcome(webhook, 1, gone), outcome(webhook, 2, gone)];
    assert.deepEqual(await note(store, ...both), { disabled: [webhook.id], released: [] });
    assert.deepEqual((await note(store, ...both)).disabled, []);
    assert.equal((await findWebhook(store, webhook)).disabledWhy, 'the endpoint answered 410 Gone');
    const disabled = (await eventsOf(store, gallery)).filter(({ type }) => type === 'webhook.disabled');
    assert.equal(disabled.length, 1);
  });

  test('an attempt of a disabled endpoint ends its delivery, that of a deleted one is ignored', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    await perform(store, { kind: 'ChangeWebhook', ...nameOf(webhook), change: { status: 'DISABLED' } });
    await note(store, outcome(webhook, 1), outcome(webhook, 2, { ...failed, retryAtMs: nowMs + 5_000 }));
    assert.deepEqual(await statusesOf(store, webhook), [
      [1, 'DELIVERED', 1, null],
      [2, 'FAILED', 1, null],
    ]);
    await perform(store, { kind: 'DeleteWebhook', ...nameOf(webhook) });
    assert.deepEqual(await note(store, outcome(webhook, 1)), { disabled: [], released: [] });
    assert.equal((await take(store, webhook)).webhook, undefined);
  });

  test('a late result does not reopen a delivery that failed when its endpoint was disabled', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 1);
    await take(store, webhook);
    for (const status of ['DISABLED', 'ENABLED'] as const)
      await perform(store, { kind: 'ChangeWebhook', ...nameOf(webhook), change: { status } });
    await note(store, outcome(webhook, 1, { ...failed, retryAtMs: nowMs + 5_000 }));
    assert.deepEqual(await statusesOf(store, webhook), [[1, 'FAILED', 1, null]]);
    assert.deepEqual((await take(store, webhook, { nowMs: noon.atMs + 86_400_000 })).due, []);
  });

  test('a delivery is due at once if it is scheduled later than any retry', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const dayMs = 86_400_000;
    const retry = (sequence: number, retryAtMs: number) =>
      outcome(webhook, sequence, { ...failed, retryAtMs });
    await note(store, retry(1, nowMs + 30 * dayMs), retry(2, nowMs + dayMs));
    assert.deepEqual(shortly(await take(store, webhook)), [[1], false]);
  });

  test('the delivery of an expired event fails, the next one is due, and the cursor skips expired events', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine, ['escrow.frozen', 'escrow.released']);
    const { escrowId } = await frozen(store, gallery);
    const idle = await addWebhook(store, gallery);
    await fileSome(store, gallery, 2);
    await take(store, webhook, { limit: 1 });
    await note(store, outcome(webhook, 2, { ...failed, retryAtMs: nowMs }));
    const longAfter = later(eventRetentionS + 1);
    await resolved(store, gallery, escrowId, 'RELEASE', longAfter);
    // Each transaction that writes events deletes some of the oldest.
    await fileSome(store, gallery, 3, longAfter);
    const kept = (await eventsOf(store, gallery)).map(({ sequence }) => sequence);
    assert.equal(kept[0], 5);
    const wanted = { nowMs: longAfter.atMs };
    assert.deepEqual(shortly(await take(store, webhook, wanted)), [[5], false]);
    const page = firstPage(10);
    const listed = await perform(store, {
      ...{ kind: 'ListDeliveries', ...nameOf(webhook), status: 'FAILED', page },
    });
    assert.deepEqual(
      listed.items.map(({ sequence, error }) => [sequence, error]),
      [[2, 'the event has expired']],
    );
    assert.deepEqual(shortly(await take(store, idle, wanted)), [kept, false]);
  });

  test('deliveries of expired events are deleted, also those of endpoints without traffic', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    const idle = await addWebhook(store, gallery);
    await fileSome(store, gallery, 4);
    for (const one of [webhook, idle]) {
      await take(store, one);
      await note(store, ...[1, 2, 3, 4].map((sequence) => outcome(one, sequence)));
    }
    await perform(store, { kind: 'ChangeWebhook', ...nameOf(idle), change: { status: 'DISABLED' } });
    const atMs = noon.atMs + (eventRetentionS + 1) * 1_000;
    await fileSome(store, gallery, 1, later(eventRetentionS + 1));
    await take(store, webhook, { nowMs: atMs });
    await note(store, outcome(webhook, 5, { atMs: noon.atMs + eventRetentionS * 1_000 }));
    assert.equal((await statusesOf(store, webhook)).length, 5, 'nothing is too old yet');
    for (const _ of ['in turn', 'in turn', 'in turn']) await note(store, outcome(webhook, 5, { atMs }));
    assert.deepEqual(await statusesOf(store, webhook), [[5, 'DELIVERED', 1, null]]);
    assert.deepEqual(await statusesOf(store, idle), []);
  });

  test('a clock that is set ahead deletes no deliveries before a filing is dated by it', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const atMs = noon.atMs + 2 * eventRetentionS * 1_000;
    for (const sequence of [1, 2]) await note(store, outcome(webhook, sequence, { atMs }));
    assert.equal((await statusesOf(store, webhook)).length, 2);
  });

  test('enabled endpoints are listed with the time of their next retry', async (t) => {
    const { store, gallery, webhook } = await openEndpoint(t, engine);
    const other = await addWebhook(store, await addPlatform(store, 'auction house'));
    const [disabled, last] = [await addWebhook(store, gallery), await addWebhook(store, gallery)];
    await perform(store, { kind: 'ChangeWebhook', ...nameOf(disabled), change: { status: 'DISABLED' } });
    await fileSome(store, gallery, 2);
    await take(store, webhook);
    const retry = (sequence: number, retryAtMs: number) =>
      outcome(webhook, sequence, { ...failed, retryAtMs });
    await note(store, retry(1, nowMs + 9_000), retry(2, nowMs + 5_000));
    const failing = { ...webhook, failingSinceS: nowMs / 1_000 };
    for (const size of [1, 2, 3, 4]) {
      const pages = await allPages((page) => perform(store, { kind: 'ListSending', page }), size);
      assert.deepEqual(pages.flat(), [
        { ...failing, nextDueAtMs: nowMs + 5_000 },
        { ...other, nextDueAtMs: null },
        { ...last, nextDueAtMs: null },
      ]);
    }
  });
}
