import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

const unknown = 3 as Webhook_Status;
const { ENABLED, DISABLED, STATUS_UNSPECIFIED } = Webhook_Status;

const service = await startService(fileScope);
const { admin, actor } = await service.operator();

/** A new platform with an endpoint, and its calls. */
async function newOwner() {
  const gallery = await service.platform();
  const terms = { scopes: ['read', 'webhook'], platform: gallery.caller } as const;
  const { webhooks, events } = await service.clients(terms);
  const url = 'https://ledger.example/hooks?token=unspoken';
  const { webhook = assert.fail() } = await webhooks.createWebhook({ url });
  return { gallery, webhooks, events, webhook, name: { webhookId: webhook.webhookId } };
}

/** An endpoint as operators see it. */
const withOrigin = <W extends { readonly url: string }>(webhook: W): W => ({
  ...webhook,
  url: new URL(webhook.url).origin,
});

const lastEntry = async () => {
  const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
  return [entry?.action, entry?.subject, entry?.reason, entry?.actor];
};

test('an operator lists, disables, enables and deletes endpoints', async () => {
  const { gallery, webhooks, events, webhook, name } = await newOwner();
  const platform = gallery.caller;
  const listed = async () => (await admin.listAllWebhooks({ platform })).webhooks;
  assert.deepEqual(await listed(), [withOrigin(webhook)]);

  const disabled = await admin.setWebhookStatus({ ...name, status: DISABLED, reason: 'on request' });
  const { disabledReason } = disabled.webhook ?? {};
  assert.equal(disabledReason, 'an operator disabled it');
  assert.deepEqual(disabled.webhook, { ...withOrigin(webhook), status: DISABLED, disabledReason });
  assert.deepEqual(await listed(), [disabled.webhook]);
  assert.deepEqual(await lastEntry(), ['webhook disable', name.webhookId, 'on request', actor]);
  const [event] = (await events.listEvents({})).events;
  assert.deepEqual([event?.type, event?.webhookId], ['webhook.disabled', name.webhookId]);

  const enabled = await admin.setWebhookStatus({ ...name, status: ENABLED });
  assert.deepEqual(enabled.webhook, withOrigin(webhook));
  assert.deepEqual(await lastEntry(), ['webhook enable', name.webhookId, '', actor]);

  await admin.removeWebhook({ ...name, reason: 'gone' });
  assert.deepEqual(await lastEntry(), ['webhook delete', name.webhookId, 'gone', actor]);
  assert.deepEqual(await listed(), []);
  await typedError(webhooks.getWebhook(name), 'WEBHOOK_NOT_FOUND');
});

test('endpoints are listed page by page, by platform and status', async () => {
  const [first, second] = [await newOwner(), await newOwner()];
  const ids = [first, second].map(({ name }) => name.webhookId);
  const idsOf = async (request: Parameters<typeof admin.listAllWebhooks>[0]) =>
    (await admin.listAllWebhooks(request)).webhooks.map(({ webhookId }) => webhookId);
  const { webhooks, nextPageToken: pageToken } = await admin.listAllWebhooks({ pageSize: 1 });
  const rest = await admin.listAllWebhooks({ pageSize: 1, pageToken });
  assert.deepEqual(
    [...webhooks, ...rest.webhooks].map(({ webhookId }) => webhookId),
    ids,
  );
  assert.equal(rest.nextPageToken, '');
  assert.deepEqual(await idsOf({ platform: second.gallery.caller }), [second.name.webhookId]);
  await admin.setWebhookStatus({ ...first.name, status: DISABLED });
  assert.deepEqual(await idsOf({ status: DISABLED }), [first.name.webhookId]);
  assert.deepEqual(await idsOf({ status: ENABLED }), [second.name.webhookId]);
  assert.deepEqual(await idsOf({ failing: true }), []);
});

test('a redelivery that sends nothing has no audit entry', async () => {
  const { name } = await newOwner();
  const entry = await lastEntry();
  const since = new Date(Date.now() - 3_600_000).toISOString();
  assert.equal((await admin.redeliverEvents({ ...name, since })).count, 0);
  assert.deepEqual(await lastEntry(), entry);
});

test('errors name the field that breaks a rule, and nothing changes', async () => {
  const { gallery, name } = await newOwner();
  const before = await lastEntry();
  for (const [call, message] of [
    [() => admin.listAllWebhooks({ status: unknown }), /^status must be ENABLED or DISABLED/],
    [
      () => admin.setWebhookStatus({ ...name, status: STATUS_UNSPECIFIED }),
      /^status must be ENABLED or DISABLED/,
    ],
    [() => admin.setWebhookStatus({ ...name, status: unknown }), /^status must be ENABLED or DISABLED/],
    [() => admin.redeliverEvents(name), /^sequence is required unless since is given/],
    [() => admin.redeliverEvents({ ...name, sequence: 1n }), /^sequence must be at most 0/],
  ] as const)
    assert.match((await typedError(call(), 'VALIDATION_FAILED')).message, message);
  const { message } = await typedError(admin.listAllWebhooks({ platform: 'nobody' }), 'NOT_FOUND');
  assert.match(message, /^platform names no platform/);
  for (const webhookId of ['', 'wh_none'])
    for (const call of [
      () => admin.setWebhookStatus({ webhookId, status: ENABLED }),
      () => admin.removeWebhook({ webhookId }),
      () => admin.redeliverEvents({ webhookId, sequence: 1n }),
    ])
      await typedError(call(), 'WEBHOOK_NOT_FOUND');
  assert.deepEqual(await lastEntry(), before);
  const { webhooks } = await admin.listAllWebhooks({ platform: gallery.caller });
  assert.deepEqual(
    webhooks.map((webhook) => [webhook.webhookId, webhook.status]),
    [[name.webhookId, ENABLED]],
  );
});
