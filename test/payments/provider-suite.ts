import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { Declined, PaymentSnapshot, PaymentStatus } from '../../src/domain/payment.ts';
import type {
  PaymentInstruction,
  PaymentOrder,
  PaymentProvider,
  SentNotification,
} from '../../src/payments/provider.ts';
import { apiError } from '../support/rejected.ts';

/** A provider under test. */
export interface ProviderEngine {
  open(test: TestContext): Promise<OpenProvider>;
  /** False if a hold never lapses. */
  readonly lapses?: false;
  /** False if an order cannot be cancelled while the buyer has to act. */
  readonly cancelsActions?: false;
  /** Whether the provider sends notifications over HTTP. */
  readonly notifies?: true;
}

/** An open provider, and what else the suite needs. */
export interface OpenProvider {
  readonly provider: PaymentProvider;
  /** Returns an order that is new to the provider. Its buyer is declined or has to act, if chosen. */
  order(buyer?: 'declined' | 'acting'): PaymentOrder;
  /** Lets the hold of an order run out. */
  lapse(order: PaymentOrder): Promise<void>;
  /** The buyer of an order completes the required action, or fails. */
  act(order: PaymentOrder, how: 'DONE' | 'FAILED'): Promise<void>;
  /** Makes an event happen to the paid out money of an order. */
  happen(order: PaymentOrder, event: PayoutEvent): Promise<void>;
  /** Returns a new genuine notification about an order, sent and received at this time. */
  notification?(order: PaymentOrder, sentAtS: number): SentNotification;
  /** Returns forgeries of a notification; by default those of one whose headers sign body and time. */
  forgeries?(sent: SentNotification): readonly SentNotification[];
}

/** All or half of what the seller has goes back to the buyer; the buyer contests it, and loses or wins that. */
export type PayoutEvent = 'RETURN_ALL' | 'RETURN_PART' | 'DISPUTE' | 'DISPUTE_WON' | 'DISPUTE_LOST';

/** Makes an order that is new to every provider. */
export const paymentOrder = (more: Partial<PaymentOrder> = {}): PaymentOrder => ({
  ...{ holdId: randomUUID(), escrowId: 'ES-2026-0001', buyerId: 'buyer', sellerId: 'seller' },
  ...{ amount: 1_250_000n, currency: 'CNY', openedAtMs: Date.now(), reference: undefined },
  ...more,
});

/** Older than a provider may accept a notification, in seconds. */
const longAgoS = 3_600;

/** Sends an instruction, by default under an id of its own; that of a FREEZE is the holdId. */
export function instruct(
  provider: PaymentProvider,
  order: PaymentOrder,
  kind: InstructionKind,
  instructionId = kind === 'FREEZE' ? order.holdId : `${order.holdId}-${kind}`,
): Promise<PaymentSnapshot> {
  const instruction: PaymentInstruction = { ...order, kind, instructionId };
  return provider.instruct(instruction, new AbortController().signal);
}

/** Looks up where the money of an order is. */
export function lookUp(provider: PaymentProvider, order: PaymentOrder): Promise<PaymentSnapshot> {
  return provider.lookUp(order, new AbortController().signal);
}

/** Instructions for an order, in this sequence, and the status after the last of them. */
const courses: readonly (readonly [string, PaymentStatus])[] = [
  ['FREEZE', 'HELD'],
  ['FREEZE RELEASE', 'PAID_OUT'],
  ['FREEZE REFUND', 'RETURNED'],
  ['FREEZE CANCEL', 'RETURNED'],
  ['CANCEL', 'VOID'],
  ['CANCEL FREEZE', 'VOID'],
  ['CANCEL FREEZE CANCEL', 'VOID'],
  ['CANCEL FREEZE RELEASE', 'VOID'],
  ['CANCEL REFUND', 'VOID'],
  ['RELEASE', 'ABSENT'],
  ['REFUND', 'ABSENT'],
  ['RELEASE FREEZE', 'HELD'],
  ['FREEZE RELEASE REFUND', 'PAID_OUT'],
  ['FREEZE RELEASE CANCEL', 'PAID_OUT'],
  ['FREEZE RELEASE FREEZE', 'PAID_OUT'],
  ['FREEZE REFUND RELEASE', 'RETURNED'],
  ['FREEZE REFUND CANCEL', 'RETURNED'],
  ['FREEZE REFUND FREEZE', 'RETURNED'],
  ['FREEZE CANCEL RELEASE', 'RETURNED'],
  ['FREEZE CANCEL FREEZE', 'RETURNED'],
  ['FREEZE lapse RELEASE', 'LAPSED'],
  ['FREEZE lapse REFUND', 'LAPSED'],
  ['FREEZE lapse CANCEL', 'LAPSED'],
  ['FREEZE lapse FREEZE', 'LAPSED'],
];

/** Tests what every provider promises. */
export function providerSuite(name: string, engine: ProviderEngine): void {
  describe(`provider ${name}`, () => {
    describe('instructions', () => instructionPromises(engine));
    describe('look-ups', () => lookUpPromises(engine));
    if (engine.notifies) describe('notifications', () => notificationPromises(engine));
    describe('reasons', () => reasonPromises(engine));
    describe('buyers who have to act', () => buyerPromises(engine));
    describe('money after its pay-out', () => payoutPromises(engine));
    test('a closed provider rejects all calls', async (t) => {
      const open = await engine.open(t);
      const order = open.order();
      await instruct(open.provider, order, 'FREEZE');
      await open.provider.close();
      await assert.rejects(lookUp(open.provider, order), /closed/);
      await assert.rejects(instruct(open.provider, order, 'RELEASE'), /closed/);
    });
  });
}

/** Takes the steps of a course, with the reference of the responses or without. Returns the last response. */
async function take(open: OpenProvider, order: PaymentOrder, course: string, remembers: boolean) {
  let payment: PaymentSnapshot = { status: 'ABSENT' };
  let reference: string | undefined;
  for (const step of course.split(' ')) {
    if (remembers) reference = payment.reference ?? reference;
    if (step === 'lapse') await open.lapse(order);
    else payment = await instruct(open.provider, { ...order, reference }, step as InstructionKind);
  }
  return payment;
}

function instructionPromises(engine: ProviderEngine): void {
  const possible = courses.filter(([course]) => engine.lapses !== false || !course.includes('lapse'));
  for (const remembers of [true, false]) {
    test(`instructions end as documented, ${remembers ? 'with' : 'without'} the reference`, async (t) => {
      const open = await engine.open(t);
      for (const [course, status] of possible) {
        const order = open.order();
        const response = await take(open, order, course, remembers);
        assert.equal(response.status, status, course);
        assert.deepEqual(await lookUp(open.provider, order), response, course);
      }
    });
  }

  test('an instruction repeated under its id has the same response and no further effect', async (t) => {
    const open = await engine.open(t);
    for (const kind of ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL'] as const) {
      const order = open.order();
      if (kind !== 'FREEZE') await instruct(open.provider, order, 'FREEZE');
      const first = await instruct(open.provider, order, kind);
      assert.deepEqual(await instruct(open.provider, order, kind), first);
      assert.deepEqual(await instruct(open.provider, { ...order, reference: first.reference }, kind), first);
      assert.deepEqual(await lookUp(open.provider, order), first);
    }
  });

  test('an instruction under another id has the same response if it was carried out already', async (t) => {
    const open = await engine.open(t);
    const order = open.order();
    await instruct(open.provider, order, 'FREEZE');
    const first = await instruct(open.provider, order, 'RELEASE');
    assert.deepEqual(await instruct(open.provider, order, 'RELEASE', 'another-id'), first);
  });

  test('a declined buyer stays VOID', async (t) => {
    const open = await engine.open(t);
    const order = open.order('declined');
    assert.deepEqual(open.provider.check(order), []);
    for (const kind of ['FREEZE', 'FREEZE', 'RELEASE', 'CANCEL', 'FREEZE'] as const) {
      assert.equal((await instruct(open.provider, order, kind)).status, 'VOID', kind);
    }
    assert.equal((await lookUp(open.provider, order)).status, 'VOID');
  });

  test('orders do not touch each other', async (t) => {
    const open = await engine.open(t);
    const orders = [open.order(), open.order(), open.order()] as const;
    await Promise.all(orders.map((order) => instruct(open.provider, order, 'FREEZE')));
    await Promise.all([
      instruct(open.provider, orders[0], 'RELEASE'),
      instruct(open.provider, orders[1], 'REFUND'),
    ]);
    const held = await Promise.all(orders.map((order) => lookUp(open.provider, order)));
    assert.deepEqual(
      held.map(({ status }) => status),
      ['PAID_OUT', 'RETURNED', 'HELD'],
    );
    assert.equal(new Set(held.map(({ reference }) => reference)).size, orders.length);
  });

  test('a call with an aborted signal rejects', async (t) => {
    const open = await engine.open(t);
    const order = open.order();
    const instruction: PaymentInstruction = { ...order, kind: 'FREEZE', instructionId: order.holdId };
    await assert.rejects(open.provider.instruct(instruction, AbortSignal.abort()));
    await assert.rejects(open.provider.lookUp(order, AbortSignal.abort()));
  });
}

function lookUpPromises(engine: ProviderEngine): void {
  test('an unknown order is ABSENT', async (t) => {
    const open = await engine.open(t);
    assert.deepEqual(await lookUp(open.provider, open.order()), { status: 'ABSENT' });
  });

  const kept = ['FREEZE', 'FREEZE RELEASE', 'FREEZE REFUND', 'FREEZE CANCEL'];
  test('a payment has amount, currency and reference, and is found with and without it', async (t) => {
    const open = await engine.open(t);
    for (const course of engine.lapses === false ? kept : [...kept, 'FREEZE lapse']) {
      const order = open.order();
      await take(open, order, course, true);
      const payment = await lookUp(open.provider, order);
      assert.equal(payment.amount, order.amount);
      assert.equal(payment.currency, order.currency);
      assert.ok(payment.reference);
      assert.deepEqual(await lookUp(open.provider, { ...order, reference: payment.reference }), payment);
    }
  });
}

function reasonPromises(engine: ProviderEngine): void {
  test('a decline has a code, words for the buyer, and details for the operator', async (t) => {
    const open = await engine.open(t);
    const order = open.order('declined');
    const { declined } = await instruct(open.provider, order, 'FREEZE');
    assertReason(declined);
    assert.deepEqual((await instruct(open.provider, order, 'FREEZE')).declined, declined);
    const taken = await instruct(open.provider, open.order(), 'FREEZE');
    assert.equal(taken.declined, undefined);
  });
}

function assertReason(declined: Declined | undefined): void {
  assert.ok(declined !== undefined, 'the provider says why');
  assert.match(declined.code, /^\w+$/);
  assert.match(declined.words, /^[A-Z].*\.$/);
  assert.notEqual(declined.detail, '');
}

function buyerPromises(engine: ProviderEngine): void {
  const opened = async (t: TestContext) => {
    const open = await engine.open(t);
    const order = open.order('acting');
    assert.deepEqual(open.provider.check(order), []);
    const asked = await instruct(open.provider, order, 'FREEZE');
    assert.equal(asked.status, 'AWAITING_BUYER');
    return { ...open, order, asked, remembered: { ...order, reference: asked.reference } };
  };

  test('AWAITING_BUYER always has the page for the buyer', async (t) => {
    const { provider, order, asked, remembered } = await opened(t);
    assert.match(asked.nextActionUrl ?? '', /^https?:\/\/\S+$/);
    assert.equal(asked.declined, undefined);
    for (const each of [order, remembered]) {
      assert.deepEqual(await lookUp(provider, each), asked);
      assert.deepEqual(await instruct(provider, each, 'FREEZE'), asked);
    }
  });

  test('the payment is HELD once the buyer has acted', async (t) => {
    const { provider, act, order, remembered } = await opened(t);
    await act(order, 'DONE');
    const held = await lookUp(provider, order);
    assert.deepEqual([held.status, held.amount, held.currency], ['HELD', order.amount, order.currency]);
    assert.equal(held.nextActionUrl, undefined);
    assert.deepEqual(await lookUp(provider, remembered), held);
    assert.deepEqual(await instruct(provider, remembered, 'FREEZE'), held);
    assert.equal((await instruct(provider, remembered, 'RELEASE')).status, 'PAID_OUT');
  });

  test('a buyer who has tried and failed may try again, or is declined with the reason', async (t) => {
    const { provider, act, order, asked } = await opened(t);
    await act(order, 'FAILED');
    const found = await lookUp(provider, order);
    // If nothing is known any more, the FREEZE is sent again.
    const payment = found.status === 'ABSENT' ? await instruct(provider, order, 'FREEZE') : found;
    if (payment.status !== asked.status) {
      assert.equal(payment.status, 'VOID');
      assertReason(payment.declined);
    }
    assert.equal((await instruct(provider, order, 'CANCEL')).status, 'VOID');
  });

  if (engine.cancelsActions === false) {
    test('CANCEL and REFUND while the buyer is awaited reject until the buyer has acted; then all is returned', async (t) => {
      const { provider, act, order, remembered } = await opened(t);
      for (const kind of ['CANCEL', 'REFUND'] as const) {
        await assert.rejects(instruct(provider, remembered, kind));
      }
      await act(order, 'DONE');
      assert.equal((await instruct(provider, remembered, 'CANCEL')).status, 'RETURNED');
      assert.equal((await lookUp(provider, order)).status, 'RETURNED');
    });
    return;
  }
  for (const kind of ['CANCEL', 'REFUND'] as const) {
    test(`${kind} while the buyer is awaited: VOID, whatever the buyer does then`, async (t) => {
      const { provider, act, order, remembered } = await opened(t);
      assert.equal((await instruct(provider, remembered, kind)).status, 'VOID');
      await act(order, 'DONE').catch(() => {});
      assert.equal((await lookUp(provider, order)).status, 'VOID');
      assert.equal((await instruct(provider, order, 'FREEZE')).status, 'VOID');
    });
  }
}

/** Where events after a pay-out lead. */
const payoutCourses: readonly (readonly [readonly PayoutEvent[], PaymentStatus])[] = [
  [['RETURN_ALL'], 'RETURNED'],
  [['RETURN_PART'], 'PARTLY_RETURNED'],
  [['RETURN_PART', 'RETURN_ALL'], 'RETURNED'],
  [['DISPUTE'], 'DISPUTED'],
  [['DISPUTE', 'DISPUTE_WON'], 'PAID_OUT'],
  [['DISPUTE', 'DISPUTE_LOST'], 'RETURNED'],
];

function payoutPromises(engine: ProviderEngine): void {
  for (const [events, status] of payoutCourses) {
    test(`${events.join(', ')}: ${status}, and no instruction changes it`, async (t) => {
      const open = await engine.open(t);
      const order = open.order();
      const { reference } = await instruct(open.provider, order, 'FREEZE');
      assert.equal((await instruct(open.provider, { ...order, reference }, 'RELEASE')).status, 'PAID_OUT');
      for (const event of events) await open.happen(order, event);
      const payment = await lookUp(open.provider, order);
      assert.equal(payment.status, status);
      if (status === 'PARTLY_RETURNED') assert.equal(payment.amount, order.amount - order.amount / 2n);
      assert.equal(payment.currency, order.currency);
      assert.deepEqual(await lookUp(open.provider, { ...order, reference }), payment);
      for (const kind of ['RELEASE', 'REFUND', 'CANCEL', 'FREEZE'] as const) {
        assert.equal((await instruct(open.provider, { ...order, reference }, kind)).status, status, kind);
      }
      assert.deepEqual(await lookUp(open.provider, order), payment);
    });
  }
}

function notificationPromises(engine: ProviderEngine): void {
  const opened = async (t: TestContext) => {
    const open = await engine.open(t);
    const order = open.order();
    const held = await instruct(open.provider, order, 'FREEZE');
    const notification = open.notification ?? assert.fail();
    return { ...open, order, held, notification, sent: notification(order, nowS()) };
  };

  test('a genuine one has its order and an id', async (t) => {
    const { provider, order, held, sent, notification } = await opened(t);
    const read = provider.readNotification(sent);
    const { about } = read;
    assert.ok(about !== undefined);
    // A resource of the provider leads to the order by a look-up.
    const named = 'resource' in about ? await provider.subjectOf?.(about.resource, noEnd()) : about;
    const { reference } = held;
    assert.deepEqual(named, named && 'reference' in named ? { reference } : { holdId: order.holdId });
    assert.notEqual(read.eventId, '');
    const other = provider.readNotification(notification(order, nowS()));
    assert.notEqual(other.eventId, read.eventId);
  });

  test('the same bytes again are the same notification', async (t) => {
    const { provider, sent } = await opened(t);
    assert.deepEqual(provider.readNotification(sent), provider.readNotification(sent));
  });

  test('one that is forged or too old is rejected', async (t) => {
    const { provider, sent, forgeries = signedForgeries } = await opened(t);
    const all = forgeries(sent);
    assert.ok(all.length > 0);
    for (const forged of all) {
      assert.throws(() => provider.readNotification(forged), apiError('SIGNATURE_INVALID'), inspect(forged));
    }
  });
}

/**
 * A notification that is signed by headers, changed: by a byte of its body or more, without headers, with each of them twice
 * or empty, and received long after.
 */
function signedForgeries(sent: SentNotification): readonly SentNotification[] {
  const places = [0, Math.floor(sent.body.length / 2), sent.body.length - 1];
  const flipped = places.map((place) => sent.body.with(place, (sent.body[place] ?? 0) ^ 1));
  const bodies = [
    ...flipped,
    ...[sent.body.subarray(0, -1), Buffer.concat([sent.body, Buffer.from(' ')]), new Uint8Array()],
  ];
  const changed = (change: (values: readonly string[]) => readonly string[]) =>
    Object.fromEntries(Object.entries(sent.headers).map(([name, values]) => [name, change(values ?? [])]));
  const headers = [
    ...[{}, changed(() => []), changed(() => [''])],
    changed((values) => [...values, ...values]),
  ];
  return [
    ...bodies.map((body) => ({ ...sent, body })),
    ...headers.map((changedHeaders) => ({ ...sent, headers: changedHeaders })),
    { ...sent, nowS: sent.nowS + longAgoS },
  ];
}

const noEnd = () => new AbortController().signal;

function nowS(): number {
  return Math.floor(Date.now() / 1000);
}
