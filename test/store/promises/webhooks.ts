import assert from 'node:assert/strict';
import { eventRetentionS } from '../../../src/domain/event.ts';
import { urlSealId, webhooksMax } from '../../../src/domain/webhook.ts';
import { type Command, executorOf } from '../../../src/store/store.ts';
import {
  type DeliveryResult,
  deletedPerRequest,
  redeliveredPerRequest,
  type StoredDelivery,
  type StoredWebhook,
} from '../../../src/store/webhook-commands.ts';
import { deleteWebhook, redeliver } from '../../../src/store/webhook-requests.ts';
import { tester } from '../../support/audit-log.ts';
import { nameOf, resultOf } from './endpoints.ts';
import { assertListed, firstPage, newWebhook, noon, refused, time, toFile } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const afternoon = time('2026-11-21T15:00:00+00:00');
const evening = time('2026-11-21T20:00:00+00:00');
const nowMs = evening.atMs;

const change = (
  store: TestStore,
  webhook: StoredWebhook,
  over: Command<'ChangeWebhook'>['change'],
  by?: Command<'ChangeWebhook'>['by'],
) => store.perform({ kind: 'ChangeWebhook', ...nameOf(webhook), change: over, by });

const gaveUp = { isDelivered: false, httpStatus: 500, answer: null, error: 'answered 500' };

/** Claims deliveries of an endpoint and records the given results. */
async function attempted(
  store: TestStore,
  webhook: StoredWebhook,
  outcomes: Readonly<Record<number, Partial<DeliveryResult>>>,
): Promise<void> {
  const { due } = await store.claim(webhook, nowMs, { limit: Object.keys(outcomes).length });
  const claimed = due.filter(({ event }) => event.sequence in outcomes);
  assert.deepEqual(
    claimed.map(({ event }) => event.sequence),
    Object.keys(outcomes).map(Number),
  );
  const noted = claimed.map(({ event: { sequence }, attempts }) =>
    resultOf(webhook, sequence, { attempts: attempts + 1, ...outcomes[sequence] }),
  );
  await store.perform({ kind: 'RecordAttempts', outcomes: noted });
}

const again = (
  store: TestStore,
  webhook: StoredWebhook,
  which: Command<'Redeliver'>['which'],
): Promise<number> => redeliver(executorOf(store), { ...nameOf(webhook), which, nowMs });

/** Endpoints and redeliveries. */
export function webhookPromises({ test }: StoreTests): void {
  test('an endpoint is returned as added, only to its owner and to internal systems', async (store) => {
    const other = await store.addPlatform('auction house');
    const given = newWebhook({ eventTypes: ['escrow.frozen', 'filing.created'] });
    const added = await store.perform({ kind: 'AddWebhook', owner: store.gallery.callerId, webhook: given });
    const { id, ...returned } = added;
    assert.ok(id > 0);
    assert.deepEqual(returned, {
      ...given,
      callerId: store.gallery.callerId,
      caller: 'gallery',
      eventTypes: ['filing.created', 'escrow.frozen'],
      status: 'ENABLED',
      disabledReason: null,
      previousSecret: null,
      previousEndsAtS: null,
      failingSinceS: null,
    });
    assert.deepEqual(await store.findWebhook(added), added);
    const { webhookId } = added;
    assert.deepEqual(await store.perform({ kind: 'FindWebhook', webhookId, owner: undefined }), added);
    const foreign = { webhookId, owner: other.callerId };
    for (const command of [
      { kind: 'FindWebhook', ...foreign },
      { kind: 'ChangeWebhook', ...foreign, change: { status: 'DISABLED' } },
      { kind: 'RotateWebhookSecret', ...foreign, sealedSecret: Buffer.of(1), previousEndsAtS: 1 },
      { kind: 'DeleteWebhook', ...foreign },
      { kind: 'ListDeliveries', ...foreign, status: undefined, page: firstPage(1) },
      { kind: 'Redeliver', ...foreign, which: { sequence: 1 }, nowMs },
      { kind: 'FindWebhook', webhookId: 'wh_none', owner: undefined },
    ] as const)
      await refused(store.perform(command), 'WEBHOOK_NOT_FOUND');
    assert.deepEqual(await store.findWebhook(added), added);
  });

  test('endpoints are listed oldest first, by caller, status and failure', async (store) => {
    const added: StoredWebhook[] = [];
    for (let count = 0; count < 5; count += 1) added.push(await store.addWebhook(store.gallery));
    const [failing, alsoFailing, disabled] = added as [StoredWebhook, StoredWebhook, StoredWebhook];
    await store.fileOne(store.gallery);
    for (const webhook of [failing, alsoFailing, disabled])
      await attempted(store, webhook, { 1: { ...gaveUp, retryAtMs: nowMs } });
    await change(store, disabled, { status: 'DISABLED' });
    const other = await store.addWebhook(await store.addPlatform('auction house'));
    for (const [filter, expected] of [
      [{}, [...added, other]],
      [{ owner: other.callerId }, [other]],
      [{ status: 'DISABLED' }, [disabled]],
      [{ status: 'ENABLED' }, [...added.filter((one) => one !== disabled), other]],
      [{ isFailing: true }, [failing, alsoFailing]],
      [{ isFailing: true, status: 'DISABLED' }, []],
    ] as const)
      await assertListed(
        (page) => store.perform({ kind: 'ListWebhooks', owner: undefined, ...filter, page }),
        ({ webhookId }) => webhookId,
        expected.map(({ webhookId }) => webhookId),
      );
  });

  test('a caller has at most `webhooksMax` endpoints, and may add another once one is deleted', async (store) => {
    const { gallery } = store;
    const other = await store.addPlatform('auction house');
    const added: StoredWebhook[] = [];
    for (let count = 0; count < webhooksMax; count += 1) added.push(await store.addWebhook(gallery));
    await refused(store.addWebhook(gallery), 'WEBHOOKS_EXHAUSTED');
    const gone = added.at(-1) ?? assert.fail();
    await store.perform({ kind: 'DeleteWebhook', ...nameOf(gone) });
    await refused(store.findWebhook(gone), 'WEBHOOK_NOT_FOUND');
    const last = await store.addWebhook(gallery);
    assert.ok(
      added.every(({ id }) => id < last.id),
      'no id is used again',
    );
    await refused(store.addWebhook(gallery), 'WEBHOOKS_EXHAUSTED');
    await store.addWebhook(other);
  });

  test('an endpoint with many deliveries is deleted some at a time, and leaves none', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    const count = 2 * deletedPerRequest + 7;
    await Promise.all(Array.from({ length: count }, () => store.perform(toFile(store.gallery))));
    await store.claim(webhook, nowMs, { limit: count });
    assert.deepEqual(await store.perform({ kind: 'DeleteWebhook', ...nameOf(webhook) }), { isDone: false });
    assert.equal((await store.deliveriesOf(webhook)).length, count - deletedPerRequest);
    await deleteWebhook(executorOf(store), nameOf(webhook));
    await refused(store.findWebhook(webhook), 'WEBHOOK_NOT_FOUND');
  });

  test('given members of an endpoint change, the others stay', async (store) => {
    const before = await store.addWebhook(store.gallery);
    assert.deepEqual(await change(store, before, {}), before);
    for (const over of [{ eventTypes: ['key.rotated'] }, { description: '' }] as const) {
      const known = await store.findWebhook(before);
      assert.deepEqual(await change(store, before, over), { ...known, ...over });
    }
    const url = { origin: 'https://other.example', sealedUrl: Buffer.from('main\0other') };
    assert.deepEqual(await change(store, before, { url }), { ...(await store.findWebhook(before)), ...url });
    const all = await change(store, before, { eventTypes: 'ALL' });
    assert.equal(all.eventTypes, undefined);
    assert.deepEqual(await store.findWebhook(before), all);
  });

  test('a rotation replaces the current secret, which stays valid until the overlap ends', async (store) => {
    const first = await store.addWebhook(store.gallery);
    const rotate = (secret: number, previousEndsAtS: number) =>
      store.perform({
        kind: 'RotateWebhookSecret',
        ...nameOf(first),
        ...{ sealedSecret: Buffer.of(secret), previousEndsAtS },
      });
    const rotated = await rotate(1, 100);
    assert.deepEqual(rotated, {
      ...first,
      ...{ sealedSecret: Buffer.of(1), previousSecret: first.sealedSecret, previousEndsAtS: 100 },
    });
    const { sealedSecret, previousSecret, previousEndsAtS } = await rotate(2, 200);
    assert.deepEqual([sealedSecret, previousSecret, previousEndsAtS], [Buffer.of(2), Buffer.of(1), 200]);
  });

  test('seals of both secrets and of the URL of an endpoint are replaced unless they changed', async (store) => {
    const first = await store.addWebhook(store.gallery);
    const { webhookId: keyId } = first;
    const sealedSecret = Buffer.from('main\0second');
    await store.perform({
      kind: 'RotateWebhookSecret',
      ...nameOf(first),
      ...{ sealedSecret, previousEndsAtS: 1 },
    });
    const replace = (from: Uint8Array, to: string, sealId = keyId) =>
      store.perform({
        ...{ kind: 'ReplaceSeals', by: tester, masterKey: 'next' },
        seals: [{ keyId: sealId, from, to: Buffer.from(to) }],
      });
    assert.equal(await replace(Buffer.from('main\0other'), 'no'), 0);
    assert.equal(await replace(sealedSecret, 'next\0a'), 1);
    assert.equal(await replace(first.sealedSecret, 'next\0b'), 1);
    const { sealedUrl } = first;
    assert.equal(await replace(sealedUrl ?? assert.fail(), 'next\0c'), 0, 'of the secret, not of the URL');
    assert.equal(await replace(sealedUrl ?? assert.fail(), 'next\0c', urlSealId(keyId)), 1);
    const { sealedSecret: current, previousSecret, sealedUrl: url } = await store.findWebhook(first);
    assert.deepEqual(
      [current, previousSecret, url],
      [...'abc'].map((end) => Buffer.from(`next\0${end}`)),
    );
  });

  test('an endpoint gets events from its creation on, and none while disabled', async (store) => {
    const { gallery } = store;
    await store.fileOne(gallery);
    const webhook = await store.addWebhook(gallery);
    await store.fileOne(gallery);
    await attempted(store, webhook, { 2: { ...gaveUp, retryAtMs: nowMs } });
    const disabled = await change(store, webhook, { status: 'DISABLED' });
    assert.deepEqual([disabled.status, disabled.disabledReason], ['DISABLED', 'a call disabled it']);
    assert.deepEqual(await change(store, webhook, { status: 'DISABLED' }), disabled);
    assert.deepEqual(await store.statusesOf(webhook), [[2, 'FAILED', 1, null]]);
    assert.equal((await store.deliveriesOf(webhook))[0]?.error, 'answered 500');
    await store.fileOne(gallery);
    const enabled = await change(store, webhook, { status: 'ENABLED' });
    assert.deepEqual(enabled, { ...webhook, failingSinceS: null });
    await store.fileOne(gallery);
    await attempted(store, webhook, { 4: {} });
    assert.deepEqual(await store.statusesOf(webhook), [
      [2, 'FAILED', 1, null],
      [4, 'DELIVERED', 1, null],
    ]);
  });

  test('disabling an endpoint fails waiting deliveries, too, and says so', async (store) => {
    const webhook = await store.addWebhook(store.gallery, {
      eventTypes: ['escrow.frozen', 'escrow.released'],
    });
    const { escrowId } = await store.frozen(store.gallery);
    await store.resolved(store.gallery, escrowId, 'RELEASE');
    await attempted(store, webhook, { 2: { ...gaveUp, retryAtMs: nowMs } });
    await store.claim(webhook, noon.atMs);
    assert.deepEqual(await store.statusesOf(webhook), [
      [2, 'PENDING', 1, nowMs],
      [3, 'WAITING', 0, null],
    ]);
    const disabled = await change(store, webhook, { status: 'DISABLED' }, tester);
    assert.equal(disabled.disabledReason, 'an operator disabled it');
    assert.deepEqual(
      (await store.deliveriesOf(webhook)).map(({ status, error }) => [status, error]),
      [
        ['FAILED', 'answered 500'],
        ['FAILED', 'the webhook was disabled: an operator disabled it'],
      ],
    );
  });

  test('the owner gets an event if an operator disables its endpoint, not if it does so itself', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    const events = () => store.eventsOf(store.gallery);
    await change(store, webhook, { status: 'DISABLED' });
    await change(store, webhook, { status: 'ENABLED' });
    assert.deepEqual(await events(), []);
    await change(store, webhook, { status: 'DISABLED' }, tester);
    await change(store, webhook, { status: 'DISABLED' }, tester);
    const [event, ...more] = await events();
    assert.deepEqual(
      [event?.type, event?.webhookId, event?.atMs, more],
      ['webhook.disabled', webhook.webhookId, tester.atS * 1_000, []],
    );
  });

  test('the audit log has what a system changes at the endpoints of others, not at its own', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    const url = { origin: webhook.origin, sealedUrl: Buffer.from('main\0other') };
    const before = (await store.auditEntries()).length;
    for (const callerId of [webhook.callerId, webhook.callerId + 1]) {
      const by = { ...tester, callerId };
      for (const each of [{ status: 'DISABLED' }, { status: 'ENABLED' }, {}] as const)
        await change(store, webhook, each, by);
      if (callerId !== webhook.callerId) await change(store, webhook, { url }, by);
    }
    const own = { ...nameOf(webhook), by: { ...tester, callerId: webhook.callerId } };
    await store.perform({
      ...{ kind: 'RotateWebhookSecret', ...own },
      ...{ sealedSecret: Buffer.of(1), previousEndsAtS: 1 },
    });
    await store.perform({ kind: 'DeleteWebhook', ...own });
    const entries = (await store.auditEntries()).slice(0, -before);
    assert.deepEqual(
      entries.map(({ action, subject, actor }) => [action, subject, actor]).toReversed(),
      ['disable', 'enable', 'set'].map((action) => [
        ...[`webhook ${action}`, webhook.webhookId, tester.actor],
      ]),
    );
  });

  test('a new URL resets the failures of an endpoint', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    await store.fileOne(store.gallery);
    await attempted(store, webhook, { 1: { ...gaveUp, retryAtMs: nowMs } });
    const failingSinceS = noon.atMs / 1_000;
    assert.equal((await store.findWebhook(webhook)).failingSinceS, failingSinceS);
    assert.equal((await change(store, webhook, { description: 'moved' })).failingSinceS, failingSinceS);
    const url = { origin: 'https://other.example', sealedUrl: Buffer.from('main\0other') };
    assert.equal((await change(store, webhook, { url })).failingSinceS, null);
  });

  test('deliveries are listed newest first, of one status or of all, and go with their endpoint', async (store) => {
    const [webhook, other] = [await store.addWebhook(store.gallery), await store.addWebhook(store.gallery)];
    await store.fileSome(store.gallery, 4);
    await attempted(store, webhook, { 1: {}, 2: gaveUp, 3: {}, 4: { ...gaveUp, retryAtMs: nowMs } });
    assert.deepEqual(await store.statusesOf(webhook), [
      [1, 'DELIVERED', 1, null],
      [2, 'FAILED', 1, null],
      [3, 'DELIVERED', 1, null],
      [4, 'PENDING', 1, nowMs],
    ]);
    const sequencesOf = async (status: StoredDelivery['status']) =>
      (await store.deliveriesOf(webhook, status)).map(({ sequence }) => sequence);
    assert.deepEqual(await sequencesOf('DELIVERED'), [1, 3]);
    assert.deepEqual(await sequencesOf('FAILED'), [2]);
    assert.deepEqual(await sequencesOf('WAITING'), []);
    await attempted(store, other, { 1: {} });
    await store.perform({ kind: 'DeleteWebhook', ...nameOf(webhook) });
    await refused(store.deliveriesOf(webhook), 'WEBHOOK_NOT_FOUND');
    assert.deepEqual(await store.statusesOf(other), [[1, 'DELIVERED', 1, null]]);
  });

  test('any event can be sent again, with its attempts reset', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    await store.fileSome(store.gallery, 4);
    await attempted(store, webhook, { 1: {}, 2: gaveUp, 3: { ...gaveUp, retryAtMs: nowMs + 5_000 } });
    for (const sequence of [1, 2, 3]) assert.equal(await again(store, webhook, { sequence }), 1);
    assert.deepEqual(await store.statusesOf(webhook), [
      [1, 'PENDING', 0, nowMs],
      [2, 'PENDING', 0, nowMs],
      [3, 'PENDING', 0, nowMs],
    ]);
    const [first] = await store.deliveriesOf(webhook);
    assert.deepEqual([first?.httpStatus, first?.answer, first?.error], [null, null, null]);
    assert.equal(await again(store, webhook, { sequence: 4 }), 1, 'it is sent for the first time anyway');
    assert.equal((await store.deliveriesOf(webhook)).length, 3);
    await refused(again(store, webhook, { sequence: 5 }), 'VALIDATION_FAILED');
    await refused(again(store, webhook, { sequence: 0 }), 'EVENTS_EXPIRED');
    await change(store, webhook, { eventTypes: ['key.rotated'] });
    await refused(again(store, webhook, { sequence: 1 }), 'VALIDATION_FAILED');
    await change(store, webhook, { status: 'DISABLED' });
    await refused(again(store, webhook, { sequence: 1 }), 'WEBHOOK_DISABLED');
    await refused(again(store, webhook, { sinceMs: nowMs }), 'WEBHOOK_DISABLED');
  });

  test('all undelivered events since a time are sent again, including those while it was disabled', async (store) => {
    const { gallery } = store;
    const webhook = await store.addWebhook(gallery);
    await store.fileSome(gallery, 2);
    await store.fileSome(gallery, 2, afternoon);
    await attempted(store, webhook, { 1: gaveUp, 2: {}, 3: {}, 4: gaveUp });
    await change(store, webhook, { status: 'DISABLED' });
    await store.fileSome(gallery, 2, evening);
    await change(store, webhook, { status: 'ENABLED' });
    const since = (sinceMs: number) => again(store, webhook, { sinceMs });
    assert.equal(await since(evening.atMs + 1), 0);
    assert.equal(await since(evening.atMs), 2);
    assert.equal(await since(afternoon.atMs + 1), 2);
    assert.equal(await since(afternoon.atMs), 3);
    assert.deepEqual(
      (await store.deliveriesOf(webhook)).map(({ sequence, status }) => [sequence, status]),
      [
        [1, 'FAILED'],
        [2, 'DELIVERED'],
        [3, 'DELIVERED'],
        [4, 'PENDING'],
        [5, 'PENDING'],
        [6, 'PENDING'],
      ],
    );
    assert.equal(await since(noon.atMs), 4);
    await refused(since(nowMs - eventRetentionS * 1_000 - 1), 'EVENTS_EXPIRED');
    assert.equal(await since(nowMs - eventRetentionS * 1_000), 4);
  });

  test('a redelivery of many events takes several requests', async (store) => {
    const webhook = await store.addWebhook(store.gallery, { eventTypes: ['filing.created'] });
    const filed = 2 * redeliveredPerRequest + 7;
    await change(store, webhook, { status: 'DISABLED' });
    await Promise.all(Array.from({ length: filed }, () => store.perform(toFile(store.gallery))));
    await change(store, webhook, { status: 'ENABLED' });
    const command = { kind: 'Redeliver', ...nameOf(webhook), nowMs } as const;
    const first = await store.perform({ ...command, which: { sinceMs: noon.atMs } });
    const rest = { after: redeliveredPerRequest, upTo: filed };
    assert.deepEqual(first, { count: redeliveredPerRequest, rest });
    assert.equal(await again(store, webhook, { sinceMs: noon.atMs }), filed);
    assert.equal((await store.deliveriesOf(webhook, 'PENDING')).length, filed);
  });
}
