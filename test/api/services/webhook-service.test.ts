import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { type Delivery_Status, type Webhook, Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import type { Scope } from '../../../src/domain/token.ts';
import { createKeyRing } from '../../../src/keys/key-ring.ts';
import { reencryptSecrets } from '../../../src/keys/sealed-secrets.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

const startMs = Date.UTC(2026, 10, 21, 12);
const url = 'https://ledger.example/hooks';
const hex = () => randomBytes(32).toString('hex');

/** A service with a manual clock, and the webhooks of an internal system and of a token for a platform. */
async function startTyped(t: Pick<TestContext, 'after'>, env: Record<string, string> = {}) {
  const clock = createManualClock(startMs);
  const service = await startService(t, { clock, env });
  const gallery = await service.platform();
  const webhooksOf = async (name: string, granted: readonly Scope[], platform?: string) =>
    (await service.clients({ name, scopes: granted, platform })).webhooks;
  const ledger = await webhooksOf('ledger', ['read', 'webhook']);
  const forGallery = await webhooksOf('shop', ['read', 'webhook'], gallery.caller);
  return { clock, service, gallery, webhooksOf, ledger, forGallery };
}

const shared = await startTyped(fileScope);
const { ledger } = shared;

const shown = ({ webhook }: { readonly webhook?: Webhook | undefined }) => webhook ?? assert.fail();

test('an internal system has its own endpoints and sees all; a token for a platform sees those of the platform', async () => {
  const { gallery, forGallery, service } = shared;
  const own = shown(await ledger.createWebhook({ url }));
  const theirs = shown(await forGallery.createWebhook({ url, eventTypes: ['*'] }));
  assert.deepEqual([own.caller, theirs.caller], ['ledger', gallery.caller]);
  assert.deepEqual((await ledger.listWebhooks({})).webhooks, [own, theirs]);
  assert.deepEqual((await forGallery.listWebhooks({})).webhooks, [theirs]);
  const { webhookId } = own;
  // test/http/rest/webhooks.test.ts has all calls of another owner.
  await typedError(forGallery.getWebhook({ webhookId }), 'WEBHOOK_NOT_FOUND');
  const disabled = await ledger.updateWebhook({
    webhookId: theirs.webhookId,
    status: Webhook_Status.DISABLED,
  });
  assert.equal(shown(disabled).disabledReason, 'an operator disabled it');
  await ledger.deleteWebhook({ webhookId: theirs.webhookId });
  assert.deepEqual((await forGallery.listWebhooks({})).webhooks, []);

  await ledger.updateWebhook({ webhookId, description: 'orders' });
  const page = { from: undefined, size: 100 };
  const { items } = await service.execute({ kind: 'ListAuditLog', sinceS: undefined, page });
  const audited = items.filter(({ action }) => action.startsWith('webhook '));
  assert.deepEqual(
    audited.map(({ action, subject }) => [action, subject]),
    ['delete', 'disable'].map((action) => [`webhook ${action}`, theirs.webhookId]),
    'no change of its own endpoint',
  );
  for (const { actor } of audited) assert.match(actor, /^token tok_\w+ \(ledger\)$/);
});

test('an empty list of types means all for a new endpoint, and no change for an existing one', async () => {
  const { webhookId, eventTypes } = shown(await ledger.createWebhook({ url, eventTypes: [] }));
  assert.deepEqual(eventTypes, ['*']);
  await ledger.updateWebhook({ webhookId, eventTypes: ['key.rotated'] });
  const changed = shown(await ledger.updateWebhook({ webhookId, eventTypes: [] }));
  assert.deepEqual(changed.eventTypes, ['key.rotated']);
});

/** test/http/connect/scopes.test.ts has the scope of each call. */
test('the path of a URL is shown only to a token with the scope webhook', async () => {
  const { webhooksOf } = shared;
  const [reader, writer] = [await webhooksOf('reader', ['read']), await webhooksOf('writer', ['webhook'])];
  const { webhookId } = shown(await writer.createWebhook({ url }));
  const { origin } = new URL(url);
  const listed = (await reader.listWebhooks({})).webhooks.find((webhook) => webhook.webhookId === webhookId);
  assert.equal(listed?.url, origin);
  assert.equal(shown(await reader.getWebhook({ webhookId })).url, origin);
  const { admin } = await shared.service.operator();
  assert.ok((await admin.listAllWebhooks({})).webhooks.every((webhook) => webhook.url === origin));
});

test('unknown status numbers are rejected, and omitted members stay', async () => {
  const created = shown(await ledger.createWebhook({ url, description: 'orders' }));
  const { webhookId } = created;
  assert.deepEqual(shown(await ledger.updateWebhook({ webhookId })), created);
  assert.deepEqual(shown(await ledger.updateWebhook({ webhookId, description: '' })).description, '');
  for (const status of [3, -1] as Webhook_Status[]) {
    const { message } = await typedError(ledger.updateWebhook({ webhookId, status }), 'VALIDATION_FAILED');
    assert.match(message, /^status must be ENABLED or DISABLED/);
  }
  const status = 9 as Delivery_Status;
  const { message } = await typedError(ledger.listDeliveries({ webhookId, status }), 'VALIDATION_FAILED');
  assert.match(message, /^status must be PENDING or WAITING/);
  const sequence = 2n ** 62n;
  await typedError(ledger.redeliver({ webhookId, sequence }), 'VALIDATION_FAILED');
  await typedError(ledger.rotateWebhookSecret({ webhookId, overlapSeconds: -1 }), 'VALIDATION_FAILED');
});

test('a replay of adding an endpoint shows its secret after re-encryption', async (t) => {
  const [k1, k2] = [hex(), hex()];
  const { service, ledger: own } = await startTyped(t, { ARTSEAL_MASTER_KEY: `k1:${k1}` });
  const headers = { 'Idempotency-Key': 'again' };
  const first = await own.createWebhook({ url }, { headers });
  const key = (name: string, text: string) => ({ name, key: Buffer.from(text, 'hex') });
  const { execute, keyRing } = service;
  const both = createKeyRing([key('k2', k2), key('k1', k1)]);
  await reencryptSecrets(execute, both, tester);
  keyRing.replace(createKeyRing([key('k2', k2)]));
  const again = await own.createWebhook({ url }, { headers });
  assert.deepEqual(again, first);
});
