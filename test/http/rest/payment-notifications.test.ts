import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { ApiError } from '../../../src/domain/reason.ts';
import { bodyBytesMax } from '../../../src/http/rest/body.ts';
import type { PaymentProvider } from '../../../src/payments/provider.ts';
import { startDoors } from '../../support/escrow-apis.ts';
import { eventually } from '../../support/eventually.ts';
import { assertRefused } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import type { RestAnswer } from '../../support/signed-request.ts';
import { openTestProvider, type SignedNotification, signatureHeader } from '../../support/simulator.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
const path = '/payment/notifications';

/** A service whose provider confirms all, with a FROZEN order. */
async function startWithOrder(t: TestContext, changed: Partial<PaymentProvider> = {}) {
  const provider = { ...openTestProvider(t), ...changed };
  const all = await startDoors(t, { provider, limits: { pollMs: 10 } });
  const { service, doors, file } = all;
  const database = new Sqlite(join(service.dataDir, 'artseal.db'), { readonly: true });
  t.after(() => database.close());
  const filingNo = await file();
  const { escrowId } = await doors.REST.open(filingNo);

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
  const stored = () => database.prepare('SELECT count(*) FROM provider_notification').pluck().get();
  const lookUpsOf = (of: string) => provider.lookUps.filter((order) => order.escrowId === of).length;
  const lookedUp = (of: string, times: number) =>
    eventually(`${of} is asked about`, timeoutMs, () => lookUpsOf(of) >= times);

  /** Waits until all that is due is looked after: an order that is notified of now comes last. */
  async function nothingMoreIsDue(): Promise<void> {
    const { escrowId: later } = await doors.REST.open(await file());
    assert.equal((await post(provider.notification(later))).status, 200);
    await lookedUp(later, 1);
  }
  return { ...all, provider, escrowId, filingNo, post, stored, lookUpsOf, lookedUp, nothingMoreIsDue };
}

test('a notification is answered once it is stored, and the provider is asked', async (t) => {
  const { provider, escrowId, post, stored, lookedUp } = await startWithOrder(t);
  const answer = await post(provider.notification(escrowId));
  assert.deepEqual([answer.status, answer.json], [200, { received: true }]);
  assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  assert.equal(stored(), 1);
  await lookedUp(escrowId, 1);
});

test('a notification that comes again and again is taken, stored once and asked about once', async (t) => {
  const { provider, escrowId, post, stored, lookUpsOf, lookedUp, nothingMoreIsDue } = await startWithOrder(t);
  const notification = provider.notification(escrowId);
  await post(notification);
  await lookedUp(escrowId, 1);
  const again = await Promise.all(Array.from({ length: 10 }, () => post(notification)));
  for (const answer of again) assert.deepEqual([answer.status, answer.json], [200, { received: true }]);
  await nothingMoreIsDue();
  assert.deepEqual([stored(), lookUpsOf(escrowId)], [2, 1]);
});

test('a notification is remembered over a restart', async (t) => {
  const { provider, escrowId, post, stored, service } = await startWithOrder(t);
  const notification = provider.notification(escrowId);
  await post(notification);
  await service.close();
  const next = await startService(t, { provider, dataDir: service.dataDir });
  const { headers, body } = notification;
  const answer = await fetch(`${next.publicUrl}${path}`, {
    method: 'POST',
    headers,
    body: Buffer.from(body),
  });
  assert.deepEqual([answer.status, stored()], [200, 1]);
});

test('what a notification claims changes nothing: the provider is asked and says otherwise', async (t) => {
  const { provider, doors, transfersOf, escrowId, filingNo, post, lookedUp, nothingMoreIsDue } =
    await startWithOrder(t);
  const before = await doors.REST.get(escrowId);
  const untruths = [
    { type: 'hold.paid_out', status: 'PAID_OUT', state: 'RELEASED' },
    { type: 'hold.returned', status: 'RETURNED', state: 'REFUNDED' },
    { type: 'hold.lapsed', status: 'LAPSED', escrowId, amount: 1, currency: 'EUR' },
    { data: { object: { status: 'succeeded', amount_received: 128_000_000 } } },
  ];
  for (const [place, claims] of untruths.entries()) {
    assert.equal((await post(provider.notification(escrowId, { claims }))).status, 200);
    await lookedUp(escrowId, place + 1);
  }
  await nothingMoreIsDue();
  assert.deepEqual(await doors.REST.get(escrowId), before);
  assert.equal(await transfersOf(filingNo), 0);
});

test('what the provider says when it is asked is what counts', async (t) => {
  const { provider, doors, escrowId, post } = await startWithOrder(t);
  provider.lapse(escrowId);
  assert.equal((await doors.REST.get(escrowId)).state, 'FROZEN');
  await post(provider.notification(escrowId, { claims: { status: 'HELD' } }));
  const closed = await eventually('the order is closed', timeoutMs, async () => {
    const now = await doors.REST.get(escrowId);
    return now.state === 'CLOSED' && now;
  });
  assert.deepEqual(closed.history, ['UNPAID', 'FROZEN', 'CLOSED']);
});

test('a forged notification is refused, stores nothing and makes nobody ask', async (t) => {
  const { provider, escrowId, post, stored, lookUpsOf, nothingMoreIsDue } = await startWithOrder(t);
  const genuine = provider.notification(escrowId);
  const signature = genuine.headers[signatureHeader] ?? '';
  const tampered = Buffer.from(genuine.body.toString().replace('hold.changed', 'hold.CHANGED'));
  const signedBy = (sign: string) => ({
    ...genuine,
    headers: { ...genuine.headers, [signatureHeader]: sign },
  });
  const nowS = Math.floor(Date.now() / 1000);
  const forgeries: Record<string, Partial<SignedNotification>> = {
    'by another key': provider.notification(escrowId, { secret: Buffer.from('guessed') }),
    'of another body': { ...genuine, body: Buffer.concat([genuine.body, Buffer.from(' ')]) },
    'of a body that was changed': { ...genuine, body: tampered },
    'an hour old': provider.notification(escrowId, { nowS: nowS - 3_600 }),
    'of an hour from now': provider.notification(escrowId, { nowS: nowS + 3_600 }),
    'without signature': { body: genuine.body, headers: { 'content-type': 'application/json' } },
    'with an empty one': signedBy(''),
    'with zeros': signedBy(`t=${nowS},v1=${'0'.repeat(64)}`),
    'of another time': signedBy(signature.replace(/t=\d+/, `t=${nowS - 1}`)),
    'with two': signedBy(`${signature},${signature}`),
    'of nothing': { body: Buffer.alloc(0), headers: genuine.headers },
  };
  for (const [what, forgery] of Object.entries(forgeries)) {
    const answer = await post(forgery);
    assertRefused(answer, 401, 'SIGNATURE_INVALID');
    assert.equal(stored(), 0, what);
  }
  await nothingMoreIsDue();
  assert.deepEqual([stored(), lookUpsOf(escrowId)], [1, 0]);
});

test('a genuine notification is refused if it cannot be read, not if it is about others', async (t) => {
  const { provider, escrowId, post, stored, nothingMoreIsDue } = await startWithOrder(t);
  for (const claims of [
    '',
    '{',
    'null',
    '[]',
    '7',
    '{}',
    '{"id":7}',
    '{"id":""}',
    '\ufeff{"id":"a"',
    '\u0000',
  ]) {
    assertRefused(await post(provider.notification(escrowId, { claims })), 400, 'INVALID_JSON');
  }
  assert.equal(stored(), 0);
  for (const claims of [{ holdId: 'nobody knows it' }, { holdId: 7 }, { holdId: undefined }]) {
    assert.equal((await post(provider.notification(escrowId, { claims }))).status, 200);
  }
  await nothingMoreIsDue();
  assert.equal(provider.lookUps.length, 1);
});

test('bytes that are no notification are refused, whatever they are', async (t) => {
  const { post, stored } = await startWithOrder(t);
  for (const body of ['', '{', '\u0000'.repeat(100), '🖌'.repeat(1_000), '<xml/>']) {
    assertRefused(await post({ body: Buffer.from(body) }), 401, 'SIGNATURE_INVALID');
  }
  assert.equal(stored(), 0);
});

test('a notification is posted, and to its own path', async (t) => {
  const { provider, escrowId, post, stored } = await startWithOrder(t);
  const notification = provider.notification(escrowId);
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const answer = await post(notification, method);
    assertRefused(answer, 405, 'METHOD_NOT_ALLOWED', /POST/);
    assert.equal(answer.headers.allow, 'POST');
  }
  const head = await post(notification, 'HEAD');
  assert.deepEqual([head.status, head.headers.allow, head.text], [405, 'POST', '']);
  for (const target of [`${path}/`, `${path}?a=1`, '/payment/Notifications', '/payment']) {
    assertRefused(await post(notification, 'POST', target), 401, 'AUTH_HEADER_MISSING');
  }
  assert.equal(stored(), 0);
});

test('where notifications come with GET, the query is theirs, and in no line of the log', async (t) => {
  const { escrowId, provider, post, stored, service, lookedUp } = await startWithOrder(t, {
    notificationMethod: 'GET',
    readNotification: ({ query }) => {
      if (!query.startsWith('secret=marked&')) throw new ApiError('SIGNATURE_INVALID', 'Not its own.');
      return { eventId: query, about: { resource: query } };
    },
    subjectOf: async (resource) => {
      if (resource.endsWith('silent')) throw new Error('no answer, marked');
      const { holdId } = provider.instructions[0] ?? assert.fail();
      return resource.endsWith('other') ? undefined : { holdId };
    },
  });
  const get = (query: string) => post({}, 'GET', `${path}?${query}`);
  assert.equal((await get('secret=marked&order')).status, 200);
  await lookedUp(escrowId, 1);
  assert.equal((await get('secret=marked&other')).status, 200);
  assertRefused(await get('secret=marked&silent'), 503, 'UNAVAILABLE', /Send it again/);
  for (const query of ['secret=forged&order', '']) assertRefused(await get(query), 401, 'SIGNATURE_INVALID');
  assertRefused(await post({}, 'GET'), 401, 'SIGNATURE_INVALID');
  assert.equal(stored(), 1);
  for (const target of [path, `${path}?secret=marked&order`]) {
    assert.equal((await post({}, 'POST', target)).headers.allow, 'GET');
  }
  assertRefused(await post({}, 'GET', `${path}/?secret=marked&order`), 401, 'AUTH_HEADER_MISSING');
  assert.doesNotMatch(service.logLines.filter((line) => !line.includes('no answer')).join('\n'), /marked/);
});

test('a notification that is too large is refused, a large one is not', async (t) => {
  const { provider, escrowId, post, stored } = await startWithOrder(t);
  const padded = (bytes: number) => {
    const bare = provider.notification(escrowId, { eventId: 'e', claims: { padding: '' } });
    const padding = 'x'.repeat(bytes - bare.body.length);
    return provider.notification(escrowId, { eventId: 'e', claims: { padding } });
  };
  assertRefused(await post(padded(bodyBytesMax + 1)), 413, 'BODY_TOO_LARGE', /65536/);
  assert.equal(stored(), 0);
  assert.equal((await post(padded(bodyBytesMax))).status, 200);
  assert.equal(stored(), 1);
});

test('a notification leaves one line, without anything that it says', async (t) => {
  const { provider, escrowId, post, service } = await startWithOrder(t);
  const taken = await post(provider.notification(escrowId, { eventId: 'marked-event' }));
  const forged = await post(provider.notification(escrowId, { secret: Buffer.from('marked') }));
  for (const { headers, status } of [taken, forged]) {
    const lines = service.logLines
      .map((line) => JSON.parse(line))
      .filter(({ requestId }) => requestId === headers['x-request-id']);
    assert.equal(lines.length, 1);
    assert.deepEqual([lines[0].operation, lines[0].status], ['payment notification', status]);
  }
  const log = service.logLines.join('\n');
  assert.doesNotMatch(log, /marked|v1=|hold\.changed/);
});
