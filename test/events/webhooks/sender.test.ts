import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { verifyWebhook } from '../../../clients/typescript/src/webhook.ts';
import { unavailable } from '../../../src/domain/reason.ts';
import { retryDelaysS } from '../../../src/domain/webhook.ts';
import { type Attempt, type AttemptResult, createAttempts } from '../../../src/events/webhooks/attempt.ts';
import { sendingLimits } from '../../../src/events/webhooks/limits.ts';
import { sealUrl } from '../../../src/keys/sealed-secrets.ts';
import { systemClock } from '../../../src/operations/registry.ts';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import { type Command, type Execute, perform, type Store } from '../../../src/store/store.ts';
import type { StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { deliveriesOf, findWebhook, nameOf } from '../../store/promises/endpoints.ts';
import { addPlatform, fileOne, frozen, noon, resolved } from '../../store/promises/fixtures.ts';
import { createManualClock, type ManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openOutgoing, startReceiver } from './receiver.ts';
import { addEndpoint, keyRing, messageOf, secret, startSending } from './sending.ts';

const dayMs = 86_400_000;

/** A request that arrived. The time is that of the test clock. */
interface Arrival {
  readonly atMs: number;
  readonly path: string;
  readonly id: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

type Answering = (arrival: Arrival, response: ServerResponse) => void;

const fine: Answering = (_arrival, response) => response.writeHead(204).end();
const answering =
  (status: number, headers: Readonly<Record<string, string>> = {}): Answering =>
  (_arrival, response) =>
    response.writeHead(status, headers).end('oh');

/** The sequences of the events that arrived. */
const sequencesOf = (arrivals: readonly Arrival[]) =>
  arrivals.map(({ body }) => JSON.parse(body).data.sequence);

/** The times between arrivals, in milliseconds. */
const waitsOf = (arrivals: readonly Arrival[]) =>
  arrivals.slice(1).map(({ atMs }, index) => atMs - (arrivals[index]?.atMs ?? 0));

const outgoing = openOutgoing(fileScope, { clock: systemClock });

/** A receiver over https, and attempts over real connections. */
async function openReceiver(t: TestContext) {
  const clock = createManualClock(noon.atMs);
  const arrivals: Arrival[] = [];
  const state = { answer: fine };
  const listener: RequestListener = async (request, response) => {
    const body = (await request.toArray()).join('');
    const { url: path = '', headers } = request;
    const arrival = { atMs: clock.nowMs(), path, id: String(headers['webhook-id']), headers, body };
    arrivals.push(arrival);
    state.answer(arrival, response);
  };
  const { port } = await startReceiver(t, listener);
  const attempt = createAttempts({ outgoing, keyRing, clock, version: '1.2.3' });
  return {
    ...{ clock, arrivals, attempt },
    url: `https://localhost:${port}/hooks`,
    answer: (how: Answering) => {
      state.answer = how;
    },
  };
}

/** A receiver, a sender, and a gallery with an endpoint there. */
async function openAll(t: TestContext, options: Partial<Parameters<typeof startSending>[1]> = {}) {
  const receiver = await openReceiver(t);
  const { attempt, clock, url } = receiver;
  const sending = await startSending(t, { attempt, clock, ...options });
  const gallery = await addPlatform(sending.store, 'gallery');
  const webhook = await addEndpoint(sending.store, gallery, { url });
  sending.sender.look();
  return { ...receiver, ...sending, sending, gallery, webhook };
}

/** Whether an endpoint has this many deliveries, all with this status. */
const areAll = async (store: Store, webhook: StoredWebhook, status: string, count: number) => {
  const deliveries = await deliveriesOf(store, webhook);
  return deliveries.length === count && deliveries.every((delivery) => delivery.status === status);
};

test('an event is sent at once, signed, and the response is stored', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until, pass, clock } = await openAll(t);
  answer((_arrival, response) => response.writeHead(200).end('x'.repeat(600)));
  await pass(1_000);
  const filedMs = clock.nowMs();
  const filingNo = await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  const [arrival] = arrivals;
  assert.ok(arrival !== undefined && arrivals.length === 1);
  assert.equal(arrival.atMs, filedMs, 'sent without delay');
  const { id, headers, body } = arrival;
  const signed = await verifyWebhook({
    headers: headers as Record<string, string>,
    body,
    secret,
    nowMs: noon.atMs,
  });
  assert.deepEqual(signed.data, {
    ...{ id, sequence: 1, type: 'filing.created', at: '2026-11-21T12:00:00+00:00', filingNo },
  });
  assert.equal(headers['user-agent'], 'Artseal-Webhooks/1.2.3');
  assert.equal(headers['content-type'], 'application/json');
  const [delivery] = await deliveriesOf(store, webhook);
  assert.deepEqual(
    [delivery?.attempts, delivery?.httpStatus, delivery?.answer?.length, delivery?.error],
    [1, 200, 512, null],
  );
});

test('a failed delivery is sent again at each time of the schedule under the same id, and then fails', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until } = await openAll(t, { random: () => 1 });
  answer(answering(500));
  await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'FAILED', 1));
  assert.deepEqual(
    waitsOf(arrivals),
    retryDelaysS.map((delayS) => delayS * 1_100),
  );
  assert.equal(new Set(arrivals.map(({ id }) => id)).size, 1);
  assert.equal(new Set(arrivals.map(({ body }) => body)).size, 1);
  assert.deepEqual(
    arrivals.map(({ headers }) => Number(headers['webhook-timestamp'])),
    arrivals.map(({ atMs }) => Math.floor(atMs / 1_000)),
  );
  const [delivery] = await deliveriesOf(store, webhook);
  assert.deepEqual([delivery?.attempts, delivery?.error], [10, 'it answered 500']);
});

test('Retry-After makes the next attempt later', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until, clock } = await openAll(t);
  const headers = [() => '3600', () => new Date(clock.nowMs() + 7_200_000).toUTCString(), () => 'in a while'];
  answer((arrival, response) => {
    const retryAfter = headers[arrivals.length - 1];
    if (retryAfter === undefined) fine(arrival, response);
    else answering(503, { 'retry-after': retryAfter() })(arrival, response);
  });
  await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  assert.deepEqual(waitsOf(arrivals), [3_600_000, 7_200_000, 1_800_000]);
});

test('an endpoint that answers 410 is disabled, with an event for its platform', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until, sender, log, url } = await openAll(t);
  answer((arrival, response) => (arrival.path === '/hooks' ? answering(410) : fine)(arrival, response));
  const other = await addEndpoint(store, gallery, {
    url: url.replace('/hooks', '/other'),
    eventTypes: ['webhook.disabled'],
  });
  sender.look();
  await fileOne(store, gallery);
  await until(() => areAll(store, other, 'DELIVERED', 1));
  await fileOne(store, gallery);
  await until(() => sender.metrics().requestsInFlight === 0);
  assert.deepEqual(
    arrivals.map(({ path, body }) => [path, JSON.parse(body).type]),
    [
      ['/hooks', 'filing.created'],
      ['/other', 'webhook.disabled'],
    ],
  );
  assert.equal((await findWebhook(store, webhook)).disabledReason, 'the endpoint answered 410 Gone');
  assert.equal(sender.metrics().disabled, 1);
  const names = { webhookId: webhook.webhookId, platform: 'gallery', host: new URL(url).host };
  assert.deepEqual(log, [
    {
      ...{ level: 40, ...names, why: 'it answered 410 Gone' },
      msg: 'an endpoint of webhooks fails: it is tried again',
    },
    { level: 40, ...names, msg: 'an endpoint of webhooks is disabled, since it fails' },
  ]);
});

test('an endpoint that was down for a day gets all events, in the order of each resource, under the same ids', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until, pass, log } = await openAll(t);
  answer((_arrival, response) => response.destroy());
  const orders: string[] = [];
  for (let part = 0; part < 6; part += 1) {
    orders.push((await frozen(store, gallery)).escrowId);
    const due = orders[part - 2];
    if (due !== undefined) await resolved(store, gallery, due, part % 2 === 0 ? 'RELEASE' : 'REFUND');
    await pass(dayMs / 6);
  }
  const tried = arrivals.splice(0);
  assert.ok(tried.length > 12);
  answer(fine);
  const { events } = await perform(store, {
    ...{ kind: 'ReadEvents', callerId: gallery.callerId, after: undefined },
  });
  await until(() => areAll(store, webhook, 'DELIVERED', events.length));
  const bodies = new Map(arrivals.map(({ id, body }) => [id, body]));
  assert.deepEqual(bodies.size, arrivals.length, 'each arrives once');
  assert.deepEqual(
    new Map([...bodies].sort()),
    new Map(events.map((event) => Object.values(messageOf(event)) as [string, string]).sort()),
  );
  for (const { id, body } of tried) assert.equal(bodies.get(id), body, 'what was tried is what arrives');
  const ofOrders = (list: readonly string[]) =>
    Object.groupBy(
      list.map((body) => JSON.parse(body).data).filter(({ escrowId }) => escrowId !== undefined),
      ({ escrowId }) => escrowId,
    );
  assert.deepEqual(
    ofOrders(arrivals.map(({ body }) => body)),
    ofOrders(events.map((event) => messageOf(event).body)),
  );
  assert.deepEqual(
    log.map(({ msg, why }) => [msg, why]),
    [
      [
        'an endpoint of webhooks fails: it is tried again',
        'it ended the connection before its response was complete',
      ],
      ['an endpoint of webhooks works again', undefined],
    ],
  );
});

test('only the operator sees why a secret cannot be opened', async (t) => {
  const { store, gallery, sender, until, url, arrivals, log } = await openAll(t);
  const webhookId = 'wh_moved';
  const moved = await addEndpoint(store, gallery, {
    ...{ webhookId, url, sealedSecret: keyRing.seal(secret, 'wh_another') },
  });
  sender.look();
  await fileOne(store, gallery);
  await until(async () => (await deliveriesOf(store, moved))[0]?.attempts === 1);
  const [delivery] = await deliveriesOf(store, moved);
  assert.deepEqual([delivery?.status, delivery?.error], ['PENDING', 'the server cannot sign it now']);
  await until(() => arrivals.length === 1);
  assert.equal(log[0]?.why, 'the server cannot sign it now');
  assert.match(String(log[0]?.detail), /The secret of wh_moved was altered/);
});

test('an attempt that an internal error ends is logged and sent again', async (t) => {
  let faults = 1;
  const message: typeof messageOf = (event) => {
    faults -= 1;
    if (faults >= 0) throw new Error('it has no message');
    return messageOf(event);
  };
  const { store, gallery, webhook, arrivals, log, until } = await openAll(t, { message });
  await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  const [delivery] = await deliveriesOf(store, webhook);
  assert.deepEqual([delivery?.attempts, arrivals.length], [2, 1]);
  const errors = log.filter(({ level }) => level === 50) as { err: { message: string } }[];
  assert.deepEqual(
    errors.map(({ err }) => err.message),
    ['it has no message'],
  );
});

test('changes of endpoints take effect at once', async (t) => {
  const { store, gallery, webhook, arrivals, until, sender, url } = await openAll(t);
  const change = async (over: object) => {
    await perform(store, { kind: 'ChangeWebhook', ...nameOf(webhook), change: over });
    sender.look();
  };
  await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  const moved = sealUrl(keyRing, webhook.webhookId, `${url}/moved`);
  await change({ url: moved, eventTypes: ['escrow.frozen'] });
  await frozen(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 2));
  await change({ status: 'DISABLED' });
  await frozen(store, gallery);
  await until(() => arrivals.length === 2);
  await change({ status: 'ENABLED' });
  await frozen(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 3));
  await perform(store, { kind: 'DeleteWebhook', ...nameOf(webhook) });
  const other = await addEndpoint(store, gallery, { url: `${url}/other` });
  sender.look();
  await fileOne(store, gallery);
  await until(() => areAll(store, other, 'DELIVERED', 1));
  assert.deepEqual(
    arrivals.map(({ path, body }) => [path, JSON.parse(body).data.sequence]),
    [
      ['/hooks', 1],
      ['/hooks/moved', 3],
      ['/hooks/moved', 7],
      ['/hooks/other', 8],
    ],
  );
});

test('changes that were not reported to the sender take effect with the next listing', async (t) => {
  const { store, gallery, webhook, arrivals, until, url } = await openAll(t, {
    limits: { listEveryMs: 5_000 },
  });
  await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  const other = await addEndpoint(store, gallery, { url: `${url}/other` });
  await fileOne(store, gallery);
  await until(() => areAll(store, other, 'DELIVERED', 1));
  const again = { kind: 'Redeliver', ...nameOf(webhook), which: { sequence: 1 }, nowMs: noon.atMs } as const;
  await perform(store, again);
  await until(() => arrivals.length === 4);
  assert.deepEqual(sequencesOf(arrivals), [1, 2, 2, 1]);
  assert.equal(arrivals[0]?.id, arrivals[3]?.id);
});

/** Attempts that end when the test ends them. */
function createHeldAttempts() {
  const held: {
    readonly webhookId: string;
    readonly id: string;
    end(over?: Partial<AttemptResult>): void;
  }[] = [];
  const delivered: AttemptResult = {
    ...{ isDelivered: true, httpStatus: 204, answer: null, error: null },
  };
  const attempt: Attempt = ({ webhookId }, { id }, signal) => {
    const { promise, resolve } = Promise.withResolvers<AttemptResult>();
    const own = { webhookId, id, end: (over = {}) => resolve({ ...delivered, ...over }) };
    held.push(own);
    signal?.addEventListener('abort', () => own.end({ isDelivered: false, error: 'aborted' }));
    return promise.finally(() => held.splice(held.indexOf(own), 1));
  };
  return { attempt, held };
}

const dead = {
  isDelivered: false,
  httpStatus: null,
  error: 'it sent no complete response within 15 seconds',
};

/** Advances the clock before each check. */
const passing = (clock: ManualClock, isSo: () => boolean) => () => {
  clock.advance(10);
  return isSo();
};

/** Waits for the store while no time passes. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 50; turns += 1) await turn();
}

test('a dead endpoint has one request in flight, and delays no other endpoint', async (t) => {
  const { attempt, held } = createHeldAttempts();
  const claims: unknown[] = [];
  let deadId: number | undefined;
  const around = (command: Command, execute: Execute) => {
    if (command.kind === 'ClaimDeliveries' && command.id === deadId)
      claims.push([command.limit, command.underWay.length]);
    return execute(command);
  };
  const sending = await startSending(t, { attempt, around });
  const { store, sender, clock } = sending;
  const [gallery, other] = [await addPlatform(store, 'gallery'), await addPlatform(store, 'auction house')];
  const deadOne = await addEndpoint(store, gallery);
  const well = [await addEndpoint(store, gallery), await addEndpoint(store, other)];
  sender.look();
  const inFlight = (webhook: StoredWebhook) =>
    held.filter(({ webhookId }) => webhookId === webhook.webhookId);
  for (let filed = 0; filed < 20; filed += 1) for (const by of [gallery, other]) await fileOne(store, by);
  const areBusy = () => [deadOne, ...well].every((webhook) => inFlight(webhook).length === 4);
  await sending.until(passing(clock, areBusy), 'atOnce');
  deadId = deadOne.id;
  for (const own of inFlight(deadOne)) own.end(dead);
  for (let round = 0; round < 30; round += 1) {
    for (const webhook of well) for (const own of inFlight(webhook)) own.end();
    await settled();
    assert.ok(inFlight(deadOne).length <= 1, 'one at a time');
    clock.advance(100);
    await settled();
  }
  assert.equal(inFlight(deadOne).length, 1);
  assert.deepEqual(claims, [[1, 0]], 'none of its other deliveries is in memory');
  for (const webhook of well) assert.ok(await areAll(store, webhook, 'DELIVERED', 20));
  assert.equal(sender.metrics().requestsInFlight, 1);
});

test('while calls wait, the throttle and the pool limit requests', async (t) => {
  const { attempt, held } = createHeldAttempts();
  const limits = { startsPerPeriod: 3, periodMs: 50, atOnce: 7 };
  const requestsInFlight = () => 1_000;
  const { store, sender, clock, until } = await startSending(t, { attempt, limits, requestsInFlight });
  const platforms: StoredKey[] = [];
  for (let added = 0; added < 10; added += 1) platforms.push(await addPlatform(store, `gallery ${added}`));
  for (const by of platforms) await addEndpoint(store, by);
  sender.look();
  await until(() => clock.nextDueMs() !== undefined, 'atOnce');
  clock.advance(1_000);
  for (const by of platforms) await fileOne(store, by);
  // Claims are throttled too.
  for (let periods = 0; held.length < limits.atOnce; periods += 1) {
    const before = held.length;
    clock.advance(limits.periodMs);
    await settled();
    assert.ok(held.length - before <= limits.startsPerPeriod, `${held.length - before} at once`);
    assert.ok(periods < 100, 'all are sent');
  }
  clock.advance(10 * limits.periodMs);
  await settled();
  assert.equal(held.length, limits.atOnce);
});

test('slow endpoints that fill the memory do not delay other platforms', async (t) => {
  const { attempt, held } = createHeldAttempts();
  const limits = { queuedMax: 2 * sendingLimits.window };
  const { store, sender, clock } = await startSending(t, { attempt, limits });
  const [slow, other] = [await addPlatform(store, 'slow'), await addPlatform(store, 'other')];
  for (let added = 0; added < 4; added += 1) await addEndpoint(store, slow);
  const well = await addEndpoint(store, other);
  for (let filed = 0; filed < 50; filed += 1) await fileOne(store, slow);
  sender.look();
  const pass = async () => {
    for (let round = 0; round < 20; round += 1) {
      clock.advance(100);
      await settled();
    }
  };
  await pass();
  const before = held.length;
  await fileOne(store, other);
  await pass();
  assert.ok(before > 0 && held.length === before + 1, `${before}, then ${held.length}`);
  assert.equal(held.at(-1)?.webhookId, well.webhookId);
});

test('a limited part of the backlog of a slow endpoint is in memory', async (t) => {
  const { attempt, held } = createHeldAttempts();
  const events = 600;
  let most = 0;
  const around = async (command: Command, execute: Execute) => {
    if (command.kind !== 'ClaimDeliveries') return execute(command);
    const work = await execute(command);
    most = Math.max(most, command.underWay.length + work.due.length);
    return work;
  };
  const { store, sender, clock } = await startSending(t, { attempt, around });
  const gallery = await addPlatform(store, 'gallery');
  const webhook = await addEndpoint(store, gallery);
  const filings = Array.from({ length: events }, () => fileOne(store, gallery));
  await Promise.all(filings);
  sender.look();
  const order: string[] = [];
  await eventually('all are sent', 60_000, async () => {
    for (let round = 0; round < 100; round += 1) {
      for (const own of [...held]) {
        order.push(own.id);
        own.end();
      }
      await turn();
      if (held.length === 0) clock.advance(clock.nextDueMs() ?? 0);
    }
    return sender.metrics().delivered === events;
  });
  clock.advance(1_000);
  await settled();
  assert.equal(new Set(order).size, events);
  assert.ok(await areAll(store, webhook, 'DELIVERED', events));
  const { window, batchMax } = sendingLimits;
  assert.ok(most >= window && most <= window + 2 * batchMax, `${most} in memory`);
});

test('stopping records requests that end in time; the next process sends the others again', async (t) => {
  const { attempt, held } = createHeldAttempts();
  const sending = await startSending(t, { attempt });
  const { store, sender, clock } = sending;
  const gallery = await addPlatform(store, 'gallery');
  const webhook = await addEndpoint(store, gallery);
  sender.look();
  for (let filed = 0; filed < 8; filed += 1) await fileOne(store, gallery);
  await sending.until(
    passing(clock, () => held.length === 4),
    'atOnce',
  );
  const stopped = sender.stop();
  held[0]?.end();
  await sending.until(() => held.length === 3, 'atOnce');
  clock.advance(4_999);
  await settled();
  assert.equal(held.length, 3, 'they have five seconds');
  clock.advance(1);
  await stopped;
  const statuses = (await deliveriesOf(store, webhook)).map(
    ({ status, attempts }) => `${status} ${attempts}`,
  );
  assert.deepEqual([statuses[0], new Set(statuses.slice(1))], ['DELIVERED 1', new Set(['PENDING 0'])]);
  const next = createHeldAttempts();
  const again = await sending.killed(next.attempt);
  await eventually('the rest is sent', 60_000, async () => {
    for (const own of [...next.held]) own.end();
    await settled();
    again.clock.advance(100);
    return areAll(again.store, webhook, 'DELIVERED', 8);
  });
  assert.equal(again.sender.metrics().delivered, 7);
});

test('an idle sender stops at once', async (t) => {
  const { sender, clock } = await startSending(t, { attempt: createHeldAttempts().attempt });
  const before = clock.monotonicMs();
  await sender.stop();
  assert.equal(clock.monotonicMs(), before);
});

test('while the store fails the sender waits, and loses nothing', async (t) => {
  let isFailing = false;
  let errors = 0;
  const around = async (command: Command, execute: Execute) => {
    if (!isFailing) return execute(command);
    errors += 1;
    // A failed request may have taken effect: every other one does.
    if (errors % 2 === 0) await execute(command);
    throw unavailable('The store fails.');
  };
  const { store, gallery, webhook, arrivals, until, pass, log } = await openAll(t, { around });
  await fileOne(store, gallery);
  await until(() => arrivals.length === 1);
  isFailing = true;
  for (let filed = 0; filed < 3; filed += 1) await fileOne(store, gallery);
  await pass(60_000);
  assert.ok(errors >= 4 && errors < 60, `${errors} tries in a minute`);
  isFailing = false;
  await until(() => areAll(store, webhook, 'DELIVERED', 4));
  assert.deepEqual(new Set(sequencesOf(arrivals)), new Set([1, 2, 3, 4]));
  assert.deepEqual(
    log.map(({ level, msg }) => [level, msg]),
    [
      [40, 'webhooks wait: the store cannot be used'],
      [30, 'webhooks are sent again: the store works'],
    ],
  );
});

test('an endpoint that fails and works by turns is logged at most once a minute', async (t) => {
  const { store, gallery, webhook, answer, until, log, clock } = await openAll(t);
  let requests = 0;
  answer((arrival, response) => {
    requests += 1;
    (requests % 2 === 0 ? fine : answering(500))(arrival, response);
  });
  const beganMs = clock.monotonicMs();
  for (let filed = 0; filed < 12; filed += 1) await fileOne(store, gallery);
  await until(() => areAll(store, webhook, 'DELIVERED', 12));
  const minutes = Math.ceil((clock.monotonicMs() - beganMs) / 60_000);
  assert.ok(log.length >= 1 && log.length <= minutes + 1, `${log.length} lines in ${minutes} minutes`);
});

test('a delivery that a wrong clock delayed by a year is sent soon after the clock is set back', async (t) => {
  const { store, gallery, webhook, arrivals, answer, until, clock } = await openAll(t);
  answer(answering(500));
  const ahead = 365 * dayMs;
  await fileOne(store, gallery);
  clock.setWall(noon.atMs + ahead);
  await until(() => arrivals.length > 0);
  clock.setWall(clock.nowMs() - ahead);
  answer(fine);
  await until(() => areAll(store, webhook, 'DELIVERED', 1));
  assert.ok(clock.monotonicMs() <= 2 * dayMs, `after ${clock.monotonicMs()} ms`);
});
