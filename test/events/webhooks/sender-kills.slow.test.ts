import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { EventType } from '../../../src/domain/event.ts';
import { resourceOf } from '../../../src/domain/event.ts';
import { isSent, retryDelaysS } from '../../../src/domain/webhook.ts';
import type { Attempt, AttemptResult } from '../../../src/events/webhooks/attempt.ts';
import { sendingLimits } from '../../../src/events/webhooks/limits.ts';
import type { StoredKey } from '../../../src/store/caller-commands.ts';
import type { EventWithCaller } from '../../../src/store/event-commands.ts';
import { perform } from '../../../src/store/store.ts';
import type { StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { deliveriesOf } from '../../store/promises/endpoints.ts';
import { addPlatform, fileOne, frozen, resolved } from '../../store/promises/fixtures.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { addEndpoint, messageOf, type Sending, startSending } from './sending.ts';

/** How often the process is killed. */
const kills = 50;

/** Each event arrives by this attempt, so none fails permanently. */
const sendsMax = retryDelaysS.length;

const hourMs = 3_600_000;

/** What an endpoint received, and how many requests it had at a time. */
interface Received {
  readonly webhook: StoredWebhook;
  /** Ids, with their bodies, in the order in which they first arrived. */
  readonly bodies: Map<string, string>;
  /** How often each was sent. */
  readonly sent: Map<string, number>;
  underWay: number;
  most: number;
}

const arrived: AttemptResult = {
  ...{ isDelivered: true, httpStatus: 200, answer: Buffer.from('ok'), error: null },
};
const failed: AttemptResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null, error: 'it sent no response' },
};

/** Endpoints that fail in every way, before and after they read the event, until `recover`. */
function createReceivers(random: Random) {
  const received = new Map<string, Received>();
  let isWell = false;
  const attempt: Attempt = async ({ webhookId }, { id, body }) => {
    const own = received.get(webhookId) ?? assert.fail(webhookId);
    own.underWay += 1;
    own.most = Math.max(own.most, own.underWay);
    const sends = (own.sent.get(id) ?? 0) + 1;
    own.sent.set(id, sends);
    const fate = isWell || sends >= sendsMax ? 0 : random.below(8);
    const turns = random.below(4);
    for (let passed = 0; passed < turns; passed += 1) await new Promise(setImmediate);
    own.underWay -= 1;
    if (fate === 1) return failed;
    if (fate === 2) return { ...failed, httpStatus: 429, answer: Buffer.from('slow'), retryAfterS: 900 };
    const known = own.bodies.get(id);
    if (known === undefined) own.bodies.set(id, body);
    else assert.equal(body, known, 'an event is the same whenever it is sent');
    return fate === 3 ? failed : arrived;
  };
  return {
    attempt,
    received,
    add: (webhook: StoredWebhook) =>
      received.set(webhook.webhookId, { webhook, bodies: new Map(), sent: new Map(), underWay: 0, most: 0 }),
    /** Drops the requests of the killed process. */
    kill: () => {
      for (const own of received.values()) own.underWay = 0;
    },
    recover: () => {
      isWell = true;
    },
  };
}

/** Makes an event of a platform: a filing, or the next change of an order. */
async function happen(store: Sending['store'], by: StoredKey, open: string[], random: Random): Promise<void> {
  const kind = random.below(3);
  const escrowId = kind === 0 ? open.pop() : undefined;
  if (escrowId !== undefined) await resolved(store, by, escrowId, random.pick(['RELEASE', 'REFUND']));
  else if (kind === 1) await fileOne(store, by);
  else open.push((await frozen(store, by)).escrowId);
}

/** All events of a platform. */
async function eventsOf(
  store: Sending['store'],
  { callerId }: StoredKey,
): Promise<readonly EventWithCaller[]> {
  const events: EventWithCaller[] = [];
  for (;;) {
    const page = await perform(store, { kind: 'ReadEvents', callerId, after: events.at(-1)?.sequence });
    if (page.events.length === 0) return events;
    events.push(...page.events);
  }
}

/** Asserts that all events of an endpoint arrived, those of one resource in order. */
function assertArrived({ webhook, bodies }: Received, events: readonly EventWithCaller[]): void {
  const sent = events.filter(({ type }) => isSent(webhook.eventTypes, type));
  const expected = new Map(sent.map((event) => [messageOf(event).id, event]));
  assert.deepEqual(new Set(bodies.keys()), new Set(expected.keys()));
  for (const [id, event] of expected) assert.equal(bodies.get(id), messageOf(event).body);
  const inOrder = (list: readonly EventWithCaller[]) =>
    Object.groupBy(list, resourceOf) as Record<string, EventWithCaller[]>;
  const arrivals = [...bodies.keys()].map((id) => expected.get(id) ?? assert.fail(id));
  assert.deepEqual(inOrder(arrivals), inOrder(sent));
}

/** What happens to the sender: it is killed, or another instance on the same store leads, or sometimes both or none lead. */
type Change = 'KILL' | 'LEAD';

async function simulate(t: TestContext, seed: number, change: Change): Promise<void> {
  const random = createRandom(seed);
  const receivers = createReceivers(random);
  const limits = { window: 1 + random.below(8), ...(change === 'LEAD' && { listEveryMs: 500 }) };
  const common = { attempt: receivers.attempt, random: () => random.below(1_000) / 1_000, limits };
  let leading = ['one'];
  let sending = await startSending(t, { ...common, leads: () => leading.includes('one') });
  const { store: shared, clock } = sending;
  const two = [sending];
  if (change === 'LEAD')
    two.push(
      await startSending(t, { ...common, store: shared, clock, leads: () => leading.includes('other') }),
    );
  const filters: readonly (readonly EventType[] | undefined)[] = [
    undefined,
    ['escrow.frozen', 'escrow.released', 'escrow.refunded'],
    ['filing.created', 'provenance.transferred'],
  ];
  const platforms: { readonly by: StoredKey; readonly open: string[] }[] = [];
  for (const name of ['gallery', 'auction house'])
    platforms.push({ by: await addPlatform(sending.store, name), open: [] });
  for (const { by } of platforms)
    for (const eventTypes of filters)
      receivers.add(await addEndpoint(sending.store, by, { eventTypes: eventTypes && [...eventTypes] }));
  sending.sender.look();

  for (let killed = 0; killed < kills; killed += 1) {
    for (const { by, open } of platforms) await happen(sending.store, by, open, random);
    // The clock is set, by hours, both ways.
    if (random.below(10) === 0)
      sending.clock.setWall(sending.clock.nowMs() + (random.below(25) - 12) * hourMs);
    const steps = random.below(30);
    let taken = 0;
    await sending.until(() => {
      taken += 1;
      return taken > steps;
    });
    if (change === 'KILL') {
      sending = await sending.killed();
      receivers.kill();
    } else {
      leading = random.pick([['one'], ['other'], ['one', 'other'], []]);
      sending = random.pick(two);
    }
  }

  receivers.recover();
  leading = ['one'];
  [sending = sending] = change === 'KILL' ? [sending] : two;
  const { store } = sending;
  const all = [...receivers.received.values()];
  await sending.until(async () => {
    // Retries take days, and instances look each second for who leads.
    if (change === 'LEAD') sending.clock.setWall(sending.clock.nowMs() + hourMs / 6);
    for (const { webhook } of all) {
      const deliveries = await deliveriesOf(store, webhook);
      if (deliveries.some(({ status }) => status !== 'DELIVERED')) return false;
    }
    return sending.sender.metrics().requestsInFlight === 0;
  });
  for (const own of all) {
    const { by } =
      platforms.find(({ by }) => by.callerId === own.webhook.callerId) ?? assert.fail('whose it is');
    assertArrived(own, await eventsOf(store, by));
    const mostAtOnce = (change === 'KILL' ? 1 : two.length) * sendingLimits.atOncePerEndpoint;
    assert.ok(own.most <= mostAtOnce, `${own.most} at a time`);
  }
}

for (const seed of [1, 2, 3]) {
  test(`each event arrives in the order of its resource through ${kills} kills, failures and a clock that is set (seed ${seed})`, (t) =>
    simulate(t, seed, 'KILL'));

  test(`likewise through ${kills} changes of the instance that leads (seed ${seed})`, (t) =>
    simulate(t, seed, 'LEAD'));
}
