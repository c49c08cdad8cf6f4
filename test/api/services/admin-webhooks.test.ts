import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Delivery_Status, Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { startServer } from '../../events/webhooks/receiver.ts';
import { transports } from '../../http/connect/transports.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { operatorTerms, tokenTerms } from '../../support/tokens.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

const timeoutMs = 60_000;
const unknown = 3 as Webhook_Status;
const { ENABLED, DISABLED, STATUS_UNSPECIFIED } = Webhook_Status;

const service = await startService(fileScope);
const operator = { ...operatorTerms('office'), scopes: ['operate'] as const };
const { token, stored } = await service.issuance.issueToken(operator, tester);
const { admin } = typedClients(createTypedTransport(service.internalUrl, token));

/** The bodies that arrived at the receiver, which responds with `status`. */
const arrived: string[] = [];
let status = 200;
const receiver = await startServer(
  fileScope,
  createServer(async (request, response) => {
    arrived.push(await text(request));
    response.writeHead(status).end();
  }),
);

/** A new platform with an endpoint at the receiver, and its calls. */
async function newOwner() {
  const gallery = await service.platform();
  const terms = { scopes: ['read', 'webhook'] as const, platform: gallery.caller };
  const issued = await service.issuance.issueToken(tokenTerms(`of ${gallery.caller}`, terms), tester);
  const { webhooks, events } = typedClients(createTypedTransport(service.internalUrl, issued.token));
  const url = `http://127.0.0.1:${receiver.port}/${gallery.caller}?token=unspoken`;
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

for (const [name, transport] of Object.entries(transports))
  test(`an operator lists, disables, enables and deletes endpoints: ${name}`, async () => {
    const { admin: office } = typedClients(transport(service.internalUrl, token));
    const { gallery, webhooks, events, webhook, name: named } = await newOwner();
    const platform = gallery.caller;
    const listed = async () => (await office.listAllWebhooks({ platform })).webhooks;
    assert.deepEqual(await listed(), [withOrigin(webhook)]);

    const disabled = await office.setWebhookStatus({ ...named, status: DISABLED, reason: `over ${name}` });
    const { disabledReason } = disabled.webhook ?? {};
    assert.equal(disabledReason, 'an operator disabled it');
    assert.deepEqual(disabled.webhook, { ...withOrigin(webhook), status: DISABLED, disabledReason });
    assert.deepEqual(await listed(), [disabled.webhook]);
    const actor = `token ${stored.tokenId} (office)`;
    assert.deepEqual(await lastEntry(), ['webhook disable', named.webhookId, `over ${name}`, actor]);
    const [event] = (await events.listEvents({})).events;
    assert.deepEqual([event?.type, event?.webhookId], ['webhook.disabled', named.webhookId]);

    const enabled = await office.setWebhookStatus({ ...named, status: ENABLED });
    assert.deepEqual(enabled.webhook, withOrigin(webhook));
    assert.deepEqual(await lastEntry(), ['webhook enable', named.webhookId, '', actor]);

    await office.removeWebhook({ ...named, reason: 'gone' });
    assert.deepEqual(await lastEntry(), ['webhook delete', named.webhookId, 'gone', actor]);
    assert.deepEqual(await listed(), []);
    await typedError(webhooks.getWebhook(named), 'WEBHOOK_NOT_FOUND');
  });

test('endpoints are listed page by page, by platform, status and failures', async () => {
  const owners = [await newOwner(), await newOwner(), await newOwner(), await newOwner()];
  const ids = owners.map(({ name }) => name.webhookId);
  const [first = assert.fail(), second = assert.fail(), third = assert.fail()] = owners;
  const idsOf = async (request: Parameters<typeof admin.listAllWebhooks>[0]) =>
    (await admin.listAllWebhooks(request)).webhooks.map(({ webhookId }) => webhookId);
  const page = await admin.listAllWebhooks({ pageSize: 3 });
  const rest = await admin.listAllWebhooks({ pageSize: 3, pageToken: page.nextPageToken });
  assert.deepEqual(
    [...page.webhooks, ...rest.webhooks].map(({ webhookId }) => webhookId),
    ids,
  );
  assert.equal(rest.nextPageToken, '');
  assert.deepEqual(await idsOf({ platform: second.gallery.caller }), [second.name.webhookId]);

  await admin.setWebhookStatus({ ...third.name, status: DISABLED });
  assert.deepEqual(await idsOf({ status: DISABLED }), [third.name.webhookId]);
  assert.deepEqual(
    await idsOf({ status: ENABLED }),
    ids.filter((id) => id !== third.name.webhookId),
  );
  assert.deepEqual(await idsOf({ failing: true }), []);
  status = 500;
  await fileArtwork(service, first.gallery);
  const [failing] = await eventually('an attempt has failed', timeoutMs, async () => {
    const { webhooks } = await admin.listAllWebhooks({ failing: true });
    return webhooks.length > 0 && webhooks;
  });
  assert.equal(failing?.webhookId, first.name.webhookId);
  assert.match(failing?.failingSince ?? '', /^\d{4}-\d\d-\d\dT.*\+00:00$/);
  assert.deepEqual(await idsOf({ failing: true, status: DISABLED }), []);
  for (const { name } of owners) await admin.removeWebhook(name);
});

test('events are sent again to an enabled endpoint, one or all since a time', async () => {
  const { gallery, webhooks, name } = await newOwner();
  const delivered = (count: number) =>
    eventually(`${count} deliveries`, timeoutMs, async () => {
      const request = { ...name, status: Delivery_Status.DELIVERED };
      return (await webhooks.listDeliveries(request)).deliveries.length === count;
    });
  status = 204;
  await fileArtwork(service, gallery);
  await delivered(1);
  const before = arrived.length;
  const { count } = await admin.redeliverEvents({ ...name, sequence: 1n, reason: 'lost' });
  assert.equal(count, 1);
  assert.deepEqual((await lastEntry()).slice(0, 3), ['webhook redeliver', name.webhookId, 'lost']);
  await delivered(1);
  assert.equal(arrived.length, before + 1);
  assert.equal(arrived.at(-1), arrived.at(-2));

  await admin.setWebhookStatus({ ...name, status: DISABLED });
  await typedError(admin.redeliverEvents({ ...name, sequence: 1n }), 'WEBHOOK_DISABLED');
  await fileArtwork(service, gallery);
  await admin.setWebhookStatus({ ...name, status: ENABLED });
  const since = new Date(Date.now() - 3_600_000).toISOString();
  // The artwork, and the event that the operator disabled the endpoint.
  assert.equal((await admin.redeliverEvents({ ...name, since })).count, 2);
  await delivered(3);
  const entry = await lastEntry();
  assert.equal((await admin.redeliverEvents({ ...name, since })).count, 0);
  assert.deepEqual(await lastEntry(), entry, 'nothing changed');
  const old = new Date(Date.now() - 31 * 86_400_000).toISOString();
  await typedError(admin.redeliverEvents({ ...name, since: old }), 'EVENTS_EXPIRED');
});

test('errors name the field that breaks a rule, and nothing changes', async () => {
  const { gallery, name } = await newOwner();
  const before = await lastEntry();
  for (const [call, message] of [
    [() => admin.listAllWebhooks({ pageSize: 101 }), /^pageSize must be 1 to 100/],
    [() => admin.listAllWebhooks({ pageToken: 'x' }), /^pageToken must be/],
    [() => admin.listAllWebhooks({ status: unknown }), /^status must be ENABLED or DISABLED/],
    [
      () => admin.setWebhookStatus({ ...name, status: STATUS_UNSPECIFIED }),
      /^status must be ENABLED or DISABLED/,
    ],
    [() => admin.setWebhookStatus({ ...name, status: unknown }), /^status must be ENABLED or DISABLED/],
    [
      () => admin.setWebhookStatus({ ...name, status: DISABLED, reason: 'a\nb' }),
      /^reason must have no control/,
    ],
    [() => admin.removeWebhook({ ...name, reason: 'a\nb' }), /^reason must have no control/],
    [() => admin.redeliverEvents({ ...name, sequence: 1n, reason: 'a\nb' }), /^reason must have no control/],
    [() => admin.redeliverEvents(name), /^sequence is required unless since is given/],
    [
      () => admin.redeliverEvents({ ...name, sequence: 1n, since: '2026-11-21T12:00:00Z' }),
      /^since must be left out/,
    ],
    [() => admin.redeliverEvents({ ...name, since: '' }), /^since must be RFC 3339/],
    [() => admin.redeliverEvents({ ...name, sequence: 0n }), /^sequence must be from 1/],
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
