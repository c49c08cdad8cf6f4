import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { verifyWebhook } from '../../../clients/typescript/src/webhook.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { sendingLimits } from '../../../src/events/webhooks/limits.ts';
import { redeliveredPerRequest } from '../../../src/store/webhook-commands.ts';
import { localEndpoints, startReceiver } from '../../events/webhooks/receiver.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock, type ManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { type ServiceOptions, startService, type TestService } from '../../support/service.ts';
import { type SignedRequest, send } from '../../support/signed-request.ts';

const url = 'https://gallery.example/hooks?token=unspoken';
const dayMs = 86_400_000;
const startMs = Date.UTC(2026, 10, 21, 12);

/** A service whose time stands still, a platform, and its calls. */
async function startManaging(t: Pick<TestContext, 'after'>, options: ServiceOptions = {}) {
  const clock = createManualClock(startMs);
  return manage(await startService(t, { clock, ...options }), clock);
}

/** A new platform of a service, and its calls. */
async function manage(service: TestService, clock: ManualClock) {
  const gallery = await service.platform();
  const call = (target: string, sent: Omit<SignedRequest, 'target'> = {}, by: ApiCredentials = gallery) => {
    const timestamp = String(Math.floor(clock.nowMs() / 1_000));
    return send(service.publicUrl, by, { timestamp, target: `/api/v1/webhooks${target}`, ...sent });
  };
  const withBody =
    (method: string) =>
    (target: string, body: unknown, by: ApiCredentials = gallery, headers: Record<string, string> = {}) =>
      call(target, { method, body: JSON.stringify(body), headers }, by);
  const [post, patch] = [withBody('POST'), withBody('PATCH')];
  const create = async (given: object = { url }, by: ApiCredentials = gallery) => {
    const { status, json, text } = await post('', given, by);
    assert.equal(status, 200, text);
    return json;
  };
  const file = (by: ApiCredentials = gallery) =>
    fileArtwork(service, by, { timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
  return { clock, service, gallery, call, post, patch, create, file };
}

const shared = await startManaging(fileScope);
/** A new platform of the service that most tests share. */
const newPlatform = () => manage(shared.service, shared.clock);

test('a platform adds, reads, lists, changes and deletes an endpoint, and its secret is shown once', async () => {
  const { gallery, call, patch, create } = await newPlatform();
  const { webhook, secret } = await create({ url, eventTypes: ['key.rotated', 'filing.created'] });
  const { webhookId } = webhook;
  assert.match(webhookId, /^wh_[0-9a-f]{16}$/);
  assert.equal(Buffer.from(secret.slice('whsec_'.length), 'base64').length, 32);
  assert.deepEqual(webhook, {
    ...{ webhookId, url, eventTypes: ['filing.created', 'key.rotated'], description: '', status: 'ENABLED' },
    ...{ createdAt: '2026-11-21T12:00:00+00:00', caller: gallery.caller },
  });
  assert.deepEqual((await call(`/${webhookId}`)).json, webhook);
  assert.deepEqual((await call('')).json, { webhooks: [webhook], nextPageToken: '' });

  const change = { url: 'https://other.example/', eventTypes: ['*'], description: 'Bücher 买方' };
  const changed = await patch(`/${webhookId}`, change);
  assert.deepEqual(changed.json, { ...webhook, ...change });
  assert.deepEqual((await patch(`/${webhookId}`, {})).json, changed.json);
  const disabled = await patch(`/${webhookId}`, { status: 'DISABLED' });
  assert.deepEqual(disabled.json, {
    ...changed.json,
    ...{ status: 'DISABLED', disabledReason: 'a call disabled it' },
  });
  assert.deepEqual((await patch(`/${webhookId}`, { status: 'ENABLED' })).json, changed.json);

  const deleted = await call(`/${webhookId}`, { method: 'DELETE' });
  assert.deepEqual([deleted.status, deleted.text], [200, '{}']);
  assertRejected(await call(`/${webhookId}`), 404, 'WEBHOOK_NOT_FOUND');
  assertRejected(await call(`/${webhookId}`, { method: 'DELETE' }), 404, 'WEBHOOK_NOT_FOUND');
  assert.deepEqual((await call('')).json, { webhooks: [], nextPageToken: '' });
});

/** test/store/promises/webhooks.ts has how many a platform may have. */
test("the response is the same for another platform's endpoint as for none", async () => {
  const { service, call, create } = await newPlatform();
  const other = await service.platform();
  const { webhook } = await create();
  const json = (body: object) => ({ body: JSON.stringify(body) });
  for (const [path, sent] of [
    ['', {}],
    ['', { method: 'PATCH', ...json({ description: 'mine' }) }],
    ['', { method: 'DELETE' }],
    ['/secret', json({})],
    ['/test', { method: 'POST' }],
    ['/deliveries', {}],
    ['/redeliver', json({ sequence: 1 })],
  ] as const) {
    const theirs = await call(`/${webhook.webhookId}${path}`, sent, other);
    assertRejected(theirs, 404, 'WEBHOOK_NOT_FOUND');
    const unknown = await call(`/wh_0000000000000000${path}`, sent, other);
    assert.equal(theirs.json.message, unknown.json.message);
  }
  assert.deepEqual((await call('', {}, other)).json.webhooks, []);
  assert.deepEqual((await call(`/${webhook.webhookId}`)).json, webhook);
});

/** Invalid bodies and their errors. test/events/webhooks/target.test.ts has all URLs, test/domain/text.test.ts all texts. */
const wrong: readonly (readonly [target: string, body: unknown, message: RegExp])[] = [
  ['', {}, /^url must be an absolute https:/],
  ['', { url: 'https://10.0.0.1/' }, /^url must have a host at a public address/],
  ['', { url, eventTypes: ['webhook.test'] }, /^eventTypes must be of/],
  ['', { url, eventTypes: ['*', 'filing.created'] }, /^eventTypes .*\* alone/],
  ['', { url, eventTypes: Array(21).fill('filing.created') }, /^eventTypes must have at most 20/],
  ['', { url, eventTypes: ['*', 7] }, /^eventTypes has an item .*must be a string$/],
  ['', { url, description: 'x'.repeat(201) }, /^description must have/],
  ['/ID/secret', { overlapSeconds: 604_801 }, /^overlapSeconds must be an integer from 0 to 604800$/],
  ['/ID/redeliver', {}, /^sequence is required unless since/],
  ['/ID/redeliver', { sequence: 1, since: '2026-11-21T12:00:00Z' }, /^since must be left out/],
  ['/ID/redeliver', { sequence: 0 }, /^sequence must be from 1/],
  ['/ID/redeliver', { sequence: 1 }, /^sequence must be at most 0/],
  ['/ID/redeliver', { since: '2026-11-21' }, /^since must be RFC 3339/],
];

test('a wrong member is named, and nothing changes', async () => {
  const { call, post, patch, create } = await newPlatform();
  const { webhook } = await create();
  for (const [target, body, message] of wrong) {
    const answer = await post(target.replace('ID', webhook.webhookId), body);
    assertRejected(answer, 400, 'VALIDATION_FAILED', message);
  }
  for (const [change, message] of [
    [{ status: 'PAUSED' }, /^status must be ENABLED or DISABLED/],
    [{ url: 'https://10.0.0.1/', eventTypes: ['webhook.test'] }, /^url must have .*; eventTypes must be of/],
  ] as const)
    assertRejected(await patch(`/${webhook.webhookId}`, change), 400, 'VALIDATION_FAILED', message);
  assertRejected(await call(`/${webhook.webhookId}/deliveries?status=LOST`), 400, 'VALIDATION_FAILED');
  assertRejected(await call(`/${webhook.webhookId}/deliveries?pageToken=abc`), 400, 'VALIDATION_FAILED');
  assertRejected(await call('?pageSize=101'), 400, 'VALIDATION_FAILED', /^pageSize/);
  assert.deepEqual((await call('')).json.webhooks, [webhook]);
});

test('a webhook shows until when its previous secret is valid', async (t) => {
  const { clock, call, post, create } = await startManaging(t);
  const { webhook } = await create();
  const path = `/${webhook.webhookId}`;
  const { json } = await post(`${path}/secret`, { overlapSeconds: 3_600 });
  const previousSecretExpiresAt = '2026-11-21T13:00:00+00:00';
  assert.deepEqual(json.webhook, { ...webhook, previousSecretExpiresAt });
  clock.leap(3_600_000 - 1);
  assert.deepEqual((await call(path)).json, json.webhook);
  clock.advance(1);
  assert.deepEqual((await call(path)).json, webhook);
  const atOnce = await post(`${path}/secret`, { overlapSeconds: 0 });
  assert.deepEqual(atOnce.json.webhook, webhook);
});

/** A test event that arrived. */
interface Arrived {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

test('a test is sent at once, signed with the valid secrets, and its result is returned', async (t) => {
  const arrived: Arrived[] = [];
  let [status, answer] = [200, 'welcome'];
  const { port } = await startReceiver(t, async (request, response) => {
    arrived.push({ headers: request.headers, body: await text(request) });
    response.writeHead(status).end(answer);
  });
  const { clock, call, post, patch, create } = await startManaging(t, { env: localEndpoints });
  const { webhook, secret } = await create({
    url: `https://127.0.0.1:${port}/`,
    eventTypes: ['key.rotated'],
  });
  const { webhookId } = webhook;
  const path = `/${webhookId}`;
  const tried = async () => {
    const { status: of, json, text: shown } = await call(`${path}/test`, { method: 'POST' });
    assert.equal(of, 200, shown);
    return json;
  };
  const verified = (by: string, { headers, body } = arrived.at(-1) ?? assert.fail()) =>
    verifyWebhook({ headers, body, secret: by, nowMs: clock.nowMs() });

  assert.deepEqual(await tried(), { delivered: true, httpStatus: 200, answer: 'welcome' });
  const event = await verified(secret);
  const at = '2026-11-21T12:00:00+00:00';
  assert.deepEqual(event, {
    ...{ type: 'webhook.test', timestamp: at },
    data: { id: arrived[0]?.headers['webhook-id'], sequence: 0, type: 'webhook.test', at, webhookId },
  });

  const { secret: next } = (await post(`${path}/secret`, {})).json;
  await tried();
  for (const valid of [secret, next]) assert.equal((await verified(valid)).type, 'webhook.test');
  clock.leap(dayMs);
  await tried();
  await verified(next);
  await assert.rejects(verified(secret), /BAD_SIGNATURE|signature/);

  [status, answer] = [500, `\xff${'é'.repeat(400)}`];
  await patch(path, { status: 'DISABLED' });
  const failed = await tried();
  assert.deepEqual([failed.delivered, failed.httpStatus, failed.error], [false, 500, 'it answered 500']);
  assert.equal(Buffer.byteLength(failed.answer.replaceAll('\ufffd', '?')), 512);
  assert.deepEqual((await call(`${path}/deliveries`)).json, { deliveries: [], nextPageToken: '' });
  const ids = arrived.map(({ headers }) => headers['webhook-id']);
  assert.equal(new Set(ids).size, ids.length);
});

test('a test that cannot be delivered says why, without an address', async () => {
  const { call, create } = await newPlatform();
  const { webhook } = await create({ url: 'https://hooks.invalid/' });
  const { json } = await call(`/${webhook.webhookId}/test`, { method: 'POST' });
  assert.equal(json.delivered, false);
  assert.deepEqual(Object.keys(json), ['delivered', 'error']);
  assert.doesNotMatch(json.error, /\d+\.\d+\.\d+\.\d+/);
});

test('a platform runs two tests at a time, and another once one of them has ended', async (t) => {
  const held: (() => void)[] = [];
  const came = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const { port } = await startReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end());
    came[held.length - 1]?.resolve();
  });
  const { service, call, create } = await startManaging(t, { env: localEndpoints });
  const local = { url: `https://127.0.0.1:${port}/` };
  const { webhook } = await create(local);
  const tried = () => call(`/${webhook.webhookId}/test`, { method: 'POST' });
  const first = [tried(), tried()];
  await Promise.all(came.slice(0, 2).map(({ promise }) => promise));
  const rejected = await tried();
  assertRejected(rejected, 429, 'RATE_LIMITED', /2 tests of webhooks/);
  assert.equal(rejected.headers['retry-after'], '1');

  const other = await service.platform();
  const theirs = await create(local, other);
  const third = call(`/${theirs.webhook.webhookId}/test`, { method: 'POST' }, other);
  await came[2]?.promise;
  for (const answer of held) answer();
  for (const { json } of await Promise.all([...first, third])) assert.equal(json.delivered, true);
  const fourth = tried();
  await came[3]?.promise;
  held[3]?.();
  assert.equal((await fourth).json.delivered, true);
});

/** test/store/promises/webhooks.ts has which events are sent again. */
test('missed events are sent again since a time or one by one, and listed with their state', async (t) => {
  const { port } = await startReceiver(t, (_request, response) => response.writeHead(204).end());
  const { call, post, patch, create, file, ...managing } = await startManaging(t, { env: localEndpoints });
  const { webhook } = await create({ url: `https://127.0.0.1:${port}/` });
  const path = `/${webhook.webhookId}`;
  await patch(path, { status: 'DISABLED' });
  for (let filed = 0; filed < 2; filed += 1) await file();
  const redelivered = (body: object) => post(`${path}/redeliver`, body);
  const delivered = (count: number) =>
    eventually(`${count} events are delivered`, 60_000, async () => {
      // The sender may wait for a moment, and calls have a rate.
      managing.clock.advance(5);
      return (await call(`${path}/deliveries?status=DELIVERED`)).json.deliveries.length === count;
    });
  assertRejected(await redelivered({ sequence: 1 }), 409, 'WEBHOOK_DISABLED');
  await patch(path, { status: 'ENABLED' });
  assert.deepEqual((await redelivered({ sequence: 1 })).json, { count: 1 });
  await delivered(1);
  assert.deepEqual((await redelivered({ since: '2026-11-21T13:00:00+01:00' })).json, { count: 1 });
  await delivered(2);
  assert.ok(managing.clock.nowMs() < startMs + sendingLimits.listEveryMs, 'at once, before the next listing');
  assert.deepEqual((await redelivered({ since: '2027-01-01T00:00:00Z' })).json, { count: 0 });
  assertRejected(await redelivered({ since: '2026-10-01T00:00:00Z' }), 410, 'EVENTS_EXPIRED', /^since must/);

  const newest = (await call(`${path}/deliveries?pageSize=1`)).json;
  const rest = (await call(`${path}/deliveries?pageSize=1&pageToken=${newest.nextPageToken}`)).json;
  assert.equal(rest.nextPageToken, '');
  const timestamp = String(Math.floor(managing.clock.nowMs() / 1_000));
  const { service, gallery } = managing;
  const { events } = (await send(service.publicUrl, gallery, { target: '/api/v1/events', timestamp })).json;
  assert.deepEqual(
    [...newest.deliveries, ...rest.deliveries].map(({ sequence, eventId }) => [sequence, eventId]),
    [
      [2, events[1].id],
      [1, events[0].id],
    ],
  );
  assert.deepEqual((await call(`${path}/deliveries?status=FAILED`)).json.deliveries, []);
});

test('one call at a time sends many events of an endpoint again; a replay is answered meanwhile, and sends none', async () => {
  const managing = await newPlatform();
  const { service, gallery, call, post, patch, create } = managing;
  const { webhook } = await create({ url: 'https://hooks.invalid/' });
  const other = await create({ url: 'https://other.invalid/' });
  const path = `/${webhook.webhookId}`;
  await patch(path, { status: 'DISABLED' });
  const by = (await service.execute({ kind: 'FindPlatform', name: gallery.caller })) ?? assert.fail();
  const at = { atMs: managing.clock.nowMs(), timestamp: '2026-11-21T12:00:00+00:00' };
  const file = { kind: 'FileArtwork', artwork: { ...artwork, price: 1n }, at, by } as const;
  const stranger = await service.platform();
  const events = 4 * redeliveredPerRequest;
  await Promise.all(Array.from({ length: events }, () => service.execute(file)));
  await patch(path, { status: 'ENABLED' });
  const redeliver = (headers: Record<string, string> = {}, name: string = path, sender = gallery) =>
    post(`${name}/redeliver`, { since: '2026-11-21T12:00:00Z' }, sender, headers);
  const earlier = await redeliver({ 'Idempotency-Key': 'earlier' });
  assert.deepEqual(earlier.json, { count: events });
  // Now all deliveries have FAILED, and a replay must not make them due again.
  await patch(path, { status: 'DISABLED' });
  await patch(path, { status: 'ENABLED' });
  const replay = await redeliver({ 'Idempotency-Key': 'earlier' });
  assert.deepEqual([replay.text, replay.headers['idempotent-replayed']], [earlier.text, 'true']);
  for (const status of ['PENDING', 'WAITING'])
    assert.deepEqual((await call(`${path}/deliveries?status=${status}`)).json.deliveries, []);

  // Either call may be the first, and it may have ended before the other one arrives.
  await eventually('a second call is rejected while the first one is in progress', 60_000, async () => {
    const [byStranger, first, second, ofOther, replay] = await Promise.all([
      redeliver({}, path, stranger),
      redeliver(),
      redeliver(),
      redeliver({}, `/${other.webhook.webhookId}`),
      redeliver({ 'Idempotency-Key': 'earlier' }),
    ]);
    assertRejected(byStranger, 404, 'WEBHOOK_NOT_FOUND');
    assert.equal(ofOther.status, 200, ofOther.text);
    assert.equal(replay.text, earlier.text);
    const rejected = [first, second].find(({ status }) => status !== 200);
    if (rejected === undefined) return undefined;
    assertRejected(rejected, 429, 'RATE_LIMITED', /^Another call is sending events of this webhook again/);
    assert.equal(rejected.headers['retry-after'], '1');
    return true;
  });
  assert.deepEqual((await redeliver()).json, { count: events });
});

test('the log has neither the secrets of endpoints nor the paths of their URLs', async () => {
  const { service, call, post, create } = await newPlatform();
  const { webhook, secret } = await create();
  const rotated = await post(`/${webhook.webhookId}/secret`, {});
  await call(`/${webhook.webhookId}/test`, { method: 'POST' });
  const log = service.logLines.join('');
  for (const hidden of [secret, rotated.json.secret, 'unspoken']) assert.ok(!log.includes(hidden));
});
