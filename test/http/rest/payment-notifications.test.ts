import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { ApiError } from '../../../src/domain/reason.ts';
import { bodyBytesMax } from '../../../src/http/listen/open-calls.ts';
import type { PaymentProvider } from '../../../src/payments/provider.ts';
import { fileArtwork, getEscrow, openEscrow } from '../../support/calls.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider, type SignedNotification } from '../../support/simulator.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
const path = '/payment/notifications';

/** test/store/promises/notifications.ts has what a notification changes; the tests of each provider its signatures. */
async function startNotified(changed: Partial<PaymentProvider> = {}) {
  const provider = { ...openTestProvider(fileScope), ...changed };
  const service = await startService(fileScope, { provider, limits: { pollMs: 10 } });
  const platform = await service.platform();
  const database = new Sqlite(join(service.dataDir, 'artseal.db'), { readonly: true });
  fileScope.after(() => database.close());

  async function open(): Promise<string> {
    const { filingNo } = (await fileArtwork(service, platform)).json;
    return (await openEscrow(service, platform, filingNo)).json.escrowId;
  }
  async function post(
    { headers, body }: Partial<SignedNotification>,
    method = 'POST',
    target = path,
  ): Promise<RestAnswer> {
    const sent = method === 'GET' || method === 'HEAD' ? {} : { body: Buffer.from(body ?? '') };
    const answer = await fetch(`${service.publicUrl}${target}`, { method, headers: headers ?? {}, ...sent });
    const text = await answer.text();
    const json = text === '' ? undefined : JSON.parse(text);
    return { status: answer.status, headers: Object.fromEntries(answer.headers), text, json };
  }
  const stored = () => Number(database.prepare('SELECT count(*) FROM provider_notification').pluck().get());
  const lookUpsOf = (escrowId: string) =>
    provider.lookUps.filter((order) => order.escrowId === escrowId).length;
  const lookedUp = (escrowId: string, times = 1) =>
    eventually(`the provider is asked about ${escrowId}`, timeoutMs, () => lookUpsOf(escrowId) >= times);
  const orderOf = async (escrowId: string) => (await getEscrow(service, platform, escrowId)).json;

  /** Waits until no order is due: the order of the newest notification comes last. */
  async function nothingMoreIsDue(): Promise<void> {
    const later = await open();
    assert.equal((await post(provider.notification(later))).status, 200);
    await lookedUp(later);
  }
  return { service, provider, open, post, stored, lookUpsOf, lookedUp, orderOf, nothingMoreIsDue };
}

const { service, provider, open, post, stored, lookUpsOf, lookedUp, orderOf, nothingMoreIsDue } =
  await startNotified();

test('a notification is stored once and makes the server ask the provider once, however often it is sent', async () => {
  const escrowId = await open();
  const before = stored();
  const notification = provider.notification(escrowId);
  const answer = await post(notification);
  assert.deepEqual([answer.status, answer.json], [200, { received: true }]);
  assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  assert.equal(stored(), before + 1);
  await lookedUp(escrowId);
  const again = await Promise.all(Array.from({ length: 10 }, () => post(notification)));
  for (const { status, json } of again) assert.deepEqual([status, json], [200, { received: true }]);
  await nothingMoreIsDue();
  assert.deepEqual([stored(), lookUpsOf(escrowId)], [before + 2, 1]);
});

test('the provider status counts, and not what a notification claims', async () => {
  const escrowId = await open();
  const before = await orderOf(escrowId);
  const claims = { type: 'hold.paid_out', status: 'PAID_OUT', state: 'RELEASED' };
  assert.equal((await post(provider.notification(escrowId, { claims }))).status, 200);
  await lookedUp(escrowId);
  await nothingMoreIsDue();
  assert.deepEqual(await orderOf(escrowId), before);
});

test('a forged or unreadable notification is rejected and not stored', async () => {
  const escrowId = await open();
  const before = stored();
  const forged = provider.notification(escrowId, { secret: 'guessed' });
  assertRejected(await post(forged), 401, 'SIGNATURE_INVALID');
  assertRejected(await post({ body: Buffer.from('\u0000🖌<xml/>') }), 401, 'SIGNATURE_INVALID');
  assertRejected(await post(provider.notification(escrowId, { claims: '{' })), 400, 'INVALID_JSON');
  assert.equal(stored(), before);
  await nothingMoreIsDue();
  assert.equal(lookUpsOf(escrowId), 0);
});

test('a notification has its own method and path', async () => {
  const notification = provider.notification(await open());
  const before = stored();
  for (const method of ['GET', 'PUT', 'OPTIONS']) {
    const answer = await post(notification, method);
    assertRejected(answer, 405, 'METHOD_NOT_ALLOWED', /POST/);
    assert.equal(answer.headers.allow, 'POST');
  }
  const head = await post(notification, 'HEAD');
  assert.deepEqual([head.status, head.headers.allow, head.text], [405, 'POST', '']);
  for (const target of [`${path}/`, `${path}?a=1`, '/payment/Notifications', '/payment']) {
    assertRejected(await post(notification, 'POST', target), 401, 'AUTH_HEADER_MISSING');
  }
  assert.equal(stored(), before);
});

test('a provider that notifies with GET has its data in the query, which no log line shows', async () => {
  const own = await startNotified({
    notificationMethod: 'GET',
    readNotification: ({ query }) => {
      if (!query.startsWith('secret=marked&')) throw new ApiError('SIGNATURE_INVALID', 'Not its own.');
      return { eventId: query, about: { resource: query } };
    },
    subjectOf: async (resource) => {
      if (resource.endsWith('silent')) throw new Error('no answer, marked');
      const { holdId } = own.provider.instructions[0] ?? assert.fail();
      return resource.endsWith('other') ? undefined : { holdId };
    },
  });
  const escrowId = await own.open();
  const get = (query: string) => own.post({}, 'GET', `${path}?${query}`);
  assert.equal((await get('secret=marked&order')).status, 200);
  await own.lookedUp(escrowId);
  assert.equal((await get('secret=marked&other')).status, 200);
  assertRejected(await get('secret=marked&silent'), 503, 'UNAVAILABLE', /Send it again/);
  for (const query of ['secret=forged&order', '']) assertRejected(await get(query), 401, 'SIGNATURE_INVALID');
  assertRejected(await own.post({}, 'GET'), 401, 'SIGNATURE_INVALID');
  assert.equal(own.stored(), 1);
  for (const target of [path, `${path}?secret=marked&order`]) {
    assert.equal((await own.post({}, 'POST', target)).headers.allow, 'GET');
  }
  assertRejected(await own.post({}, 'GET', `${path}/?secret=marked&order`), 401, 'AUTH_HEADER_MISSING');
  const lines = own.service.logLines.filter((line) => !line.includes('no answer'));
  assert.doesNotMatch(lines.join('\n'), /marked/);
});

test('a notification has at most as many bytes as any body', async () => {
  const escrowId = await open();
  const before = stored();
  const padded = (bytes: number) => {
    const bare = provider.notification(escrowId, { eventId: 'e', claims: { padding: '' } });
    const padding = 'x'.repeat(bytes - bare.body.length);
    return provider.notification(escrowId, { eventId: 'e', claims: { padding } });
  };
  assertRejected(await post(padded(bodyBytesMax + 1)), 413, 'BODY_TOO_LARGE', /65536/);
  assert.equal(stored(), before);
  assert.equal((await post(padded(bodyBytesMax))).status, 200);
  assert.equal(stored(), before + 1);
});

test('a notification leaves one log line without its content', async () => {
  const escrowId = await open();
  const accepted = await post(provider.notification(escrowId, { eventId: 'marked-event' }));
  const forged = await post(provider.notification(escrowId, { secret: 'marked' }));
  for (const { headers, status } of [accepted, forged]) {
    const lines = service.logLines
      .map((line) => JSON.parse(line))
      .filter(({ requestId }) => requestId === headers['x-request-id']);
    assert.equal(lines.length, 1);
    assert.deepEqual([lines[0].operation, lines[0].status], ['payment notification', status]);
  }
  assert.doesNotMatch(service.logLines.join('\n'), /marked|secret-of|hold\.changed/);
});
