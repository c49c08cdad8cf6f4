import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { Refusal } from '../../src/domain/reason.ts';
import type { FailureKind, Institution, PaymentOrder } from '../../src/payment/institution.ts';
import { createStripeInstitution } from '../../src/payment/stripe/institution.ts';
import type { StripeParties } from '../../src/payment/stripe/parties.ts';
import { eventually } from '../support/eventually.ts';
import { cards, type Fault, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { type InstitutionEngine, institutionSuite, instruct, lookUp } from './institution-suite.ts';

const hourMs = 3_600_000;
const limitMs = 60_000;
const freezeRequest = /^POST \/v1\/payment_intents$/;

const buyer = (paymentMethod: string, customer = 'cus_1') => ({ customer, paymentMethod });
const parties: StripeParties = {
  buyers: new Map([
    ['buyer', buyer(cards.good)],
    ['other-buyer', buyer(cards.good, 'cus_2')],
    ['declined', buyer(cards.declined)],
    ['authentication', buyer(cards.authenticationRequired)],
    ['action', buyer(cards.actionRequired)],
    ['processing', buyer(cards.processing)],
    ['unknown-card', buyer('pm_gone')],
    ['unknown-customer', buyer(cards.good, 'cus_gone')],
  ]),
  sellers: new Map([['seller', 'acct_1']]),
};

let orders = 0;

/** A stand-in and an institution that takes it for Stripe. */
async function opened(t: TestContext, now?: () => number) {
  const standIn = await startStripeStandIn(t);
  const institution = createStripeInstitution({ ...standIn, parties }, now);
  t.after(() => institution.close());
  const order = (buyerId = 'buyer', more: Partial<PaymentOrder> = {}): PaymentOrder => {
    orders += 1;
    return {
      holdId: `hold-${orders}`,
      escrowId: `ES-2026-${orders}`,
      buyerId,
      sellerId: 'seller',
      amount: 1_250_000n,
      currency: 'CNY',
      openedAtMs: Date.now(),
      reference: undefined,
      ...more,
    };
  };
  return { standIn, institution, order };
}

const engine: InstitutionEngine = {
  open: async (t) => {
    const { standIn, institution, order } = await opened(t);
    const intentOf = ({ holdId }: PaymentOrder) => {
      const intent = standIn.intents.find(({ metadata }) => metadata.artseal_hold === holdId);
      assert.ok(intent);
      return intent;
    };
    let events = 0;
    return {
      institution,
      order,
      lapse: async (asked) => standIn.expire(intentOf(asked).id),
      notification: (asked, sentAtS) => {
        events += 1;
        const type = 'payment_intent.amount_capturable_updated';
        const { body, signature } = standIn.event(`evt_${events}`, type, intentOf(asked), sentAtS);
        return {
          method: 'POST',
          query: '',
          headers: { 'stripe-signature': [signature] },
          body,
          nowS: sentAtS,
        };
      },
    };
  },
};

institutionSuite('at Stripe', engine);

test('what Stripe is told of a hold, and of its release', async (t) => {
  const { standIn, institution, order } = await opened(t);
  const asked = order();
  const { reference } = await instruct(institution, asked, 'FREEZE');
  await instruct(institution, { ...asked, reference }, 'RELEASE');
  const [made, captured, ...more] = standIn.requests;
  assert.deepEqual(more, []);
  assert.ok(made && captured);
  assert.deepEqual(made.params, {
    amount: '1250000',
    currency: 'cny',
    customer: 'cus_1',
    payment_method: cards.good,
    'automatic_payment_methods[enabled]': 'true',
    'automatic_payment_methods[allow_redirects]': 'never',
    capture_method: 'manual',
    confirm: 'true',
    off_session: 'true',
    'transfer_data[destination]': 'acct_1',
    'metadata[artseal_hold]': asked.holdId,
    'metadata[artseal_escrow]': asked.escrowId,
  });
  assert.equal(made.idempotencyKey, asked.holdId);
  assert.equal(captured.path, `/v1/payment_intents/${reference}/capture`);
  assert.equal(captured.idempotencyKey, `${asked.holdId}-RELEASE`);
  for (const { headers } of [made, captured]) {
    assert.equal(headers['x-stripe-client-telemetry'], undefined);
    assert.doesNotMatch(String(headers['x-stripe-client-user-agent']), /telemetry_id|platform/);
  }
});

test('a redirect is not followed: the key goes nowhere else', async (t) => {
  const { standIn, order } = await opened(t);
  const elsewhere = createServer((_, response) => {
    response.writeHead(307, { location: `${standIn.url}/v1/payment_intents` }).end();
  }).listen(0, '127.0.0.1');
  t.after(() => elsewhere.close());
  await once(elsewhere, 'listening');
  const { port } = elsewhere.address() as AddressInfo;
  const institution = createStripeInstitution({ ...standIn, url: `http://127.0.0.1:${port}`, parties });
  await assert.rejects(instruct(institution, order(), 'FREEZE'), /StripeConnectionError/);
  assert.deepEqual(standIn.requests, []);
});

test('parties that are not in the file are named, as what they are', async (t) => {
  const { institution } = await opened(t);
  const rule = 'is not known to the payment institution';
  const check = (buyerId: string, sellerId: string) =>
    institution.check({ amount: 1n, currency: 'CNY', buyerId, sellerId });
  assert.deepEqual(check('buyer', 'seller'), []);
  assert.deepEqual(check('seller', 'seller'), [{ field: 'buyerId', rule }]);
  assert.deepEqual(check('buyer', 'buyer'), [{ field: 'sellerId', rule }]);
  assert.deepEqual(check('constructor', '__proto__'), [
    { field: 'buyerId', rule },
    { field: 'sellerId', rule },
  ]);
});

describe('a hold that Stripe does not make is VOID, and stays so', () => {
  const cases: readonly (readonly [string, string, Partial<PaymentOrder>])[] = [
    ['a declined card', 'declined', {}],
    ['a card whose buyer would have to authenticate', 'authentication', {}],
    ['a card that asks for an action without an error', 'action', {}],
    ['a payment method that is unknown', 'unknown-card', {}],
    ['an amount that is too small', 'buyer', { amount: 1n }],
    ['an amount that is too large', 'buyer', { amount: 100_000_000n }],
  ];
  for (const [what, buyerId, more] of cases) {
    test(what, async (t) => {
      const { standIn, institution, order } = await opened(t);
      const asked = order(buyerId, more);
      for (const kind of ['FREEZE', 'FREEZE', 'FREEZE'] as const) {
        assert.equal((await instruct(institution, asked, kind)).status, 'VOID');
      }
      const open = standIn.intents.filter(({ status }) => status !== 'canceled');
      assert.deepEqual(open, []);
    });
  }

  test('refused without the refusal being saved: the key is used up', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    for (let sent = 0; sent < 2; sent += 1) standIn.failNext(freezeRequest, { status: 400 });
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    assert.deepEqual(
      standIn.intents.map(({ status }) => status),
      ['canceled'],
    );
  });

  test('refused once, in passing: the second attempt holds', async (t) => {
    const { standIn, institution, order } = await opened(t);
    standIn.failNext(freezeRequest, { status: 400 });
    assert.equal((await instruct(institution, order(), 'FREEZE')).status, 'HELD');
    assert.equal(standIn.intents.length, 1);
  });

  test('a decline whose answer was lost: ABSENT, then VOID by the FREEZE once more', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order('declined');
    standIn.failNext(freezeRequest, 'lose-answer');
    await assert.rejects(instruct(institution, asked, 'FREEZE'));
    assert.deepEqual(await lookUp(institution, asked), { status: 'ABSENT' });
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    assert.equal((await lookUp(institution, asked)).status, 'VOID');
  });
});

describe('a customer that Stripe does not know', () => {
  test('VOID where the refusal is saved; a look-up rejects', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order('unknown-customer');
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    await assert.rejects(lookUp(institution, asked), /resource_missing/);
    assert.deepEqual(standIn.intents, []);
  });

  test('rejects where it is not saved, since the key cannot be used up either', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order('unknown-customer');
    for (let sent = 0; sent < 2; sent += 1) standIn.failNext(freezeRequest, { status: 400 });
    await assert.rejects(instruct(institution, asked, 'FREEZE'), /resource_missing/);
  });
});

describe('without a definite answer a call rejects, and a look-up tells', () => {
  const faults: readonly (readonly [string, Fault, PaymentStatus, FailureKind])[] = [
    ['the request is lost', 'lose-request', 'ABSENT', 'UNREACHABLE'],
    ['the answer is lost', 'lose-answer', 'HELD', 'UNREACHABLE'],
    ['500, nothing done', 'fail-and-save', 'ABSENT', 'FAILED'],
    ['500, though all is done', 'do-and-fail', 'HELD', 'FAILED'],
    ['401', { status: 401 }, 'ABSENT', 'CREDENTIALS_REJECTED'],
    ['403', { status: 403 }, 'ABSENT', 'CREDENTIALS_REJECTED'],
    ['409', { status: 409 }, 'ABSENT', 'FAILED'],
    ['429', { status: 429 }, 'ABSENT', 'OVERLOADED'],
    ['503', { status: 503 }, 'ABSENT', 'FAILED'],
  ];
  for (const [what, fault, status, kind] of faults) {
    test(`FREEZE, ${what}: ${kind}, and ${status}`, async (t) => {
      const { standIn, institution, order } = await opened(t);
      const asked = order();
      standIn.failNext(freezeRequest, fault);
      await assert.rejects(instruct(institution, asked, 'FREEZE'), { name: 'InstitutionFailure', kind });
      // One attempt alone: to try again is for whoever gave the instruction.
      assert.ok(standIn.requests.length <= 1);
      assert.equal((await lookUp(institution, asked)).status, status);
      assert.ok(standIn.intents.length <= 1);
    });
  }

  for (const [kind, path, status] of [
    ['RELEASE', 'capture', 'PAID_OUT'],
    ['REFUND', 'cancel', 'RETURNED'],
    ['CANCEL', 'cancel', 'RETURNED'],
  ] as const) {
    test(`${kind}, the answer is lost: ${status}, and the same again`, async (t) => {
      const { standIn, institution, order } = await opened(t);
      const held = order();
      const { reference } = await instruct(institution, held, 'FREEZE');
      const asked = { ...held, reference };
      standIn.failNext(new RegExp(`^POST .*/${path}$`), 'lose-answer');
      await assert.rejects(instruct(institution, asked, kind));
      assert.equal((await lookUp(institution, asked)).status, status);
      assert.equal((await instruct(institution, asked, kind)).status, status);
    });
  }

  test('a saved 500 stays one until Stripe forgets the key; the look-up tells what was done', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const { reference } = await instruct(institution, order(), 'FREEZE');
    const asked = order('buyer', { reference });
    standIn.failNext(/^POST .*\/capture$/, 'fail-and-save');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await assert.rejects(instruct(institution, asked, 'RELEASE'), /status 500/);
      assert.equal((await lookUp(institution, asked)).status, 'HELD');
    }
    standIn.forgetKeys();
    assert.equal((await instruct(institution, asked, 'RELEASE')).status, 'PAID_OUT');
  });

  test('a FREEZE that is being processed', async (t) => {
    const { institution, order } = await opened(t);
    const asked = order('processing');
    await assert.rejects(instruct(institution, asked, 'FREEZE'), /processing/);
    await assert.rejects(lookUp(institution, asked), /processing/);
    await assert.rejects(instruct(institution, asked, 'CANCEL'), /processing/);
  });

  test('nobody is there', async (t) => {
    const { standIn, order } = await opened(t);
    const nobody = createServer().listen(0, '127.0.0.1');
    await once(nobody, 'listening');
    const { port } = nobody.address() as AddressInfo;
    nobody.close();
    await once(nobody, 'close');
    const institution = createStripeInstitution({ ...standIn, url: `http://127.0.0.1:${port}`, parties });
    const message = 'Stripe: StripeConnectionError, cause ECONNREFUSED';
    const refused = { name: 'InstitutionFailure', kind: 'UNREACHABLE', message };
    await assert.rejects(instruct(institution, order(), 'FREEZE'), refused);
  });

  test('the error has no secret and nothing of the buyer', async (t) => {
    const { standIn, institution, order } = await opened(t);
    for (const status of [401, 403, 429, 500]) {
      standIn.failNext(freezeRequest, { status });
      const error = await instruct(institution, order(), 'FREEZE').catch((thrown) => thrown);
      assert.match(error.message, /^Stripe: Stripe\w+Error, status \d+, request req_standin$/);
      assert.doesNotMatch(
        inspect(error, { depth: 9, showHidden: true }),
        /sk_test|whsec|cus_1|secret_standin/,
      );
    }
  });
});

describe('CANCEL and FREEZE cross', () => {
  /** A fault that holds a request up until it is let through, and tells when the request is there. */
  function heldUp(t: TestContext) {
    const there = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    t.after(() => gate.resolve());
    const wait = () => {
      there.resolve();
      return gate.promise;
    };
    return { wait, there: there.promise, letThrough: () => gate.resolve() };
  }

  /** Gives a FREEZE and gives it up when the request is there. */
  async function givenUp(institution: Institution, order: PaymentOrder, there: Promise<void>) {
    const given = new AbortController();
    const instruction = { ...order, kind: 'FREEZE', instructionId: order.holdId } as const;
    const rejected = assert.rejects(institution.instruct(instruction, given.signal), /given up/);
    await there;
    given.abort(new Error('given up'));
    await rejected;
  }

  test('the CANCEL is first: VOID, and the FREEZE holds nothing when it arrives', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(freezeRequest, { onTheWay: wait });
    await givenUp(institution, asked, there);
    const cancelled = await instruct(institution, asked, 'CANCEL');
    assert.equal(cancelled.status, 'VOID');
    const before = standIn.requests.length;
    letThrough();
    await eventually('the FREEZE', limitMs, () => standIn.requests.length > before);
    assert.deepEqual(await lookUp(institution, asked), cancelled);
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    assert.equal(standIn.intents.length, 1);
  });

  test('the FREEZE is being carried out: the CANCEL does not know, and gives it back later', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(freezeRequest, { until: wait });
    await givenUp(institution, asked, there);
    await assert.rejects(instruct(institution, asked, 'CANCEL'), /StripeIdempotencyError/);
    letThrough();
    await eventually('the hold', limitMs, () => standIn.intents.length === 1);
    assert.equal((await instruct(institution, asked, 'CANCEL')).status, 'RETURNED');
  });

  test('the FREEZE arrives between the look-up of the CANCEL and its use of the key', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(freezeRequest, { onTheWay: wait });
    const cancelled = instruct(institution, asked, 'CANCEL');
    await there;
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'HELD');
    letThrough();
    assert.equal((await cancelled).status, 'RETURNED');
  });

  test('the FREEZE was refused, its answer lost: the CANCEL does not know, the FREEZE does', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order('buyer', { amount: 1n });
    standIn.failNext(freezeRequest, 'lose-answer');
    await assert.rejects(instruct(institution, asked, 'FREEZE'));
    await assert.rejects(instruct(institution, asked, 'CANCEL'), /StripeIdempotencyError/);
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
  });

  test('the CANCEL of an amount that Stripe does not take is VOID as well', async (t) => {
    const { institution, order } = await opened(t);
    for (const amount of [1n, 100_000_000n]) {
      const asked = order('buyer', { amount });
      assert.equal((await instruct(institution, asked, 'CANCEL')).status, 'VOID');
      assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
    }
  });

  test('the CANCEL breaks off between its two requests: ABSENT, and VOID when given again', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    standIn.failNext(/^POST .*\/cancel$/, 'lose-request');
    await assert.rejects(instruct(institution, asked, 'CANCEL'));
    assert.deepEqual(await lookUp(institution, asked), { status: 'ABSENT' });
    assert.equal((await instruct(institution, asked, 'CANCEL')).status, 'VOID');
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'VOID');
  });
});

describe('the keys that Stripe forgets', () => {
  for (const [course, status] of [
    ['FREEZE', 'HELD'],
    ['FREEZE RELEASE', 'PAID_OUT'],
    ['FREEZE REFUND', 'RETURNED'],
    ['CANCEL', 'VOID'],
  ] as const) {
    test(`a day after ${course}, a FREEZE makes no second hold: ${status}`, async (t) => {
      let nowMs = Date.now();
      const { standIn, institution, order } = await opened(t, () => nowMs);
      const asked = order();
      for (const kind of course.split(' ')) await instruct(institution, asked, kind as InstructionKind);
      nowMs += 25 * hourMs;
      standIn.forgetKeys();
      assert.equal((await instruct(institution, asked, 'FREEZE')).status, status);
      assert.equal(standIn.intents.length, 1);
    });
  }

  test('a day after nothing has arrived, a FREEZE holds', async (t) => {
    const { institution, order } = await opened(t);
    const asked = order('buyer', { openedAtMs: Date.now() - 25 * hourMs });
    assert.equal((await instruct(institution, asked, 'FREEZE')).status, 'HELD');
  });
});

describe('a look-up', () => {
  test('tells the amount and the currency as Stripe does, whatever was asked', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    await instruct(institution, asked, 'FREEZE');
    const [intent] = standIn.intents;
    assert.ok(intent);
    Object.assign(intent, { amount_capturable: 7, currency: 'usd' });
    const { amount, currency } = await lookUp(institution, asked);
    assert.deepEqual({ amount, currency }, { amount: 7n, currency: 'USD' });
  });

  test('finds an order among more than a page of the same buyer, and those of others', async (t) => {
    const { institution, order } = await opened(t);
    const [asked, ...others] = Array.from({ length: 130 }, (_, place) =>
      order(place % 9 === 8 ? 'other-buyer' : 'buyer'),
    );
    assert.ok(asked);
    const first = await instruct(institution, asked, 'FREEZE');
    for (const other of others) await instruct(institution, other, 'FREEZE');
    assert.deepEqual(await lookUp(institution, asked), first);
  });

  test('gives up, rather than saying ABSENT, where a buyer has too many', async (t) => {
    const { standIn, institution, order } = await opened(t);
    await instruct(institution, order(), 'FREEZE');
    const [intent] = standIn.intents;
    assert.ok(intent);
    for (let made = 0; made < 2_000; made += 1) standIn.intents.push({ ...intent, id: `pi_many${made}` });
    await assert.rejects(lookUp(institution, order()), /more than 2000/);
  });

  test('does not look before the order was opened, but allows for another clock', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    await lookUp(institution, asked);
    const since = Number(standIn.requests[0]?.params['created[gte]']);
    assert.equal(since, Math.floor(asked.openedAtMs / 1000) - 600);
  });

  test('tells an authorisation that ran out from one that was cancelled by Stripe or by us', async (t) => {
    const { standIn, institution, order } = await opened(t);
    for (const [reason, charge, status] of [
      ['automatic', 'succeeded', 'LAPSED'],
      ['expired', 'succeeded', 'LAPSED'],
      ['requested_by_customer', 'succeeded', 'RETURNED'],
      [null, 'succeeded', 'RETURNED'],
      ['automatic', 'failed', 'VOID'],
      [null, 'failed', 'VOID'],
    ] as const) {
      const asked = order();
      await instruct(institution, asked, 'FREEZE');
      const intent = standIn.intents.at(-1);
      assert.ok(intent?.latest_charge);
      const latest_charge = { ...intent.latest_charge, status: charge };
      Object.assign(intent, { status: 'canceled', cancellation_reason: reason, latest_charge });
      assert.equal((await lookUp(institution, asked)).status, status, `${reason} ${charge}`);
    }
  });

  test('says nothing about a status that it does not know', async (t) => {
    const { standIn, institution, order } = await opened(t);
    const asked = order();
    await instruct(institution, asked, 'FREEZE');
    Object.assign(standIn.intents[0] ?? {}, { status: 'requires_review' });
    await assert.rejects(lookUp(institution, asked), /requires_review/);
  });

  test('of a buyer who is no longer in the file rejects, unless there is a reference', async (t) => {
    const { institution, order } = await opened(t);
    const { reference } = await instruct(institution, order(), 'FREEZE');
    const gone = order('gone');
    await assert.rejects(lookUp(institution, gone), /no longer in the file/);
    assert.equal((await lookUp(institution, { ...gone, reference })).status, 'HELD');
  });
});

test('closing ends what is under way', async (t) => {
  const { standIn, institution, order } = await opened(t);
  const gate = Promise.withResolvers<void>();
  t.after(() => gate.resolve());
  standIn.failNext(freezeRequest, { until: () => gate.promise });
  const outcome = instruct(institution, order(), 'FREEZE');
  const rejected = assert.rejects(outcome, /closed/);
  await eventually('the request', limitMs, () => standIn.requests.length === 1);
  await institution.close();
  await rejected;
  await assert.rejects(lookUp(institution, order()), /closed/);
});

describe('notifications of Stripe', () => {
  const nowS = 1_795_000_000;
  const intent = { object: 'payment_intent', metadata: { artseal_hold: 'hold-x' } };
  const sent = (body: Uint8Array, signature: string, laterS = 0) => ({
    ...{ method: 'POST', query: '' },
    headers: { 'stripe-signature': [signature] },
    body,
    nowS: nowS + laterS,
  });
  const refusedFor = (reason: string) => (error: unknown) =>
    error instanceof Refusal && error.reason === reason;

  test('are taken for 300 seconds by the clock that is passed in', async (t) => {
    const { standIn, institution } = await opened(t);
    const { body, signature } = standIn.event('evt_1', 'payment_intent.succeeded', intent, nowS);
    const expected = { eventId: 'evt_1', about: { holdId: 'hold-x' } };
    for (const laterS of [-10, 0, 300]) {
      assert.deepEqual(institution.readNotification(sent(body, signature, laterS)), expected);
    }
    assert.throws(
      () => institution.readNotification(sent(body, signature, 301)),
      refusedFor('SIGNATURE_INVALID'),
    );
  });

  test('are taken with one of several signatures, as while a secret is being rolled', async (t) => {
    const { standIn, institution } = await opened(t);
    const { body, signature } = standIn.event('evt_1', 'payment_intent.succeeded', intent, nowS);
    const rolled = signature.replace('v1=', `v1=${'a'.repeat(64)},v1=`);
    assert.equal(institution.readNotification(sent(body, rolled)).eventId, 'evt_1');
  });

  test('are refused with a malformed signature of any kind', async (t) => {
    const { standIn, institution } = await opened(t);
    const { body, signature } = standIn.event('evt_1', 'payment_intent.succeeded', intent, nowS);
    const [time = '', mac = ''] = signature.split(',');
    for (const malformed of [
      't',
      '=',
      time,
      mac,
      `${time},v1`,
      `${time},v1=`,
      `t=,${mac}`,
      `t=x,${mac}`,
      `t=${nowS + 1},${mac}`,
      `${time},${mac.replace('v1', 'v0')}`,
    ]) {
      assert.throws(
        () => institution.readNotification(sent(body, malformed)),
        refusedFor('SIGNATURE_INVALID'),
        malformed,
      );
    }
  });

  test('about anything else name no order', async (t) => {
    const { standIn, institution } = await opened(t);
    const others = [
      { object: 'charge', metadata: { artseal_hold: 'hold-x' } },
      { object: 'payment_intent', metadata: {} },
      { object: 'payment_intent', metadata: null },
      { object: 'payment_intent' },
      {},
    ];
    for (const object of others) {
      const { body, signature } = standIn.event('evt_1', 'charge.expired', object, nowS);
      assert.deepEqual(institution.readNotification(sent(body, signature)), {
        eventId: 'evt_1',
        about: undefined,
      });
    }
  });

  test('that are genuine and cannot be read are INVALID_JSON', async (t) => {
    const { standIn, institution } = await opened(t);
    const texts = ['', 'x', '{', 'null', '1', '[]', '{}', '{"id":1}', '{"id":""}'];
    for (const body of [...texts.map((text) => Buffer.from(text)), Buffer.from('{"id":"\x80"}', 'latin1')]) {
      // The library decodes leniently, and signs what it decoded.
      const signature = standIn.sign(body.toString(), nowS);
      assert.throws(
        () => institution.readNotification(sent(body, signature)),
        refusedFor('INVALID_JSON'),
        body.toString(),
      );
    }
  });
});

describe('what Stripe makes of the credentials', () => {
  const anyTime = () => new AbortController().signal;

  test('is asked by a read that changes nothing, in the words of what came of it', async (t) => {
    const { standIn, institution } = await opened(t);
    assert.deepEqual(await institution.checkAccess(anyTime()), { kind: 'ACCEPTED' });
    assert.deepEqual(
      standIn.requests.map(({ method, path }) => `${method} ${path}`),
      ['GET /v1/payment_intents'],
    );
    standIn.revokeKey(true);
    const revoked = await institution.checkAccess(anyTime());
    assert.ok(revoked.kind === 'REJECTED' && /API key.*401/.test(revoked.why), inspect(revoked));
    standIn.revokeKey(false);
    standIn.failNext(/^GET/, { status: 403 });
    const restricted = await institution.checkAccess(anyTime());
    assert.ok(restricted.kind === 'REJECTED' && /permission.*403/.test(restricted.why), inspect(restricted));
    assert.equal(inspect([revoked, restricted]).includes(standIn.apiKey), false);
  });

  test('is not known where it gives no answer or one that says nothing of them', async (t) => {
    const { standIn, institution } = await opened(t);
    for (const fault of [{ status: 429 }, { status: 503 }, 'fail-and-save', 'lose-request'] as const) {
      standIn.failNext(/^GET/, fault);
      const access = await institution.checkAccess(anyTime());
      assert.ok(access.kind === 'UNREACHABLE' && access.why !== '', inspect(access));
    }
    const forEver = Promise.withResolvers<void>();
    t.after(() => forEver.resolve());
    standIn.failNext(/^GET/, { until: () => forEver.promise });
    const giveUp = new AbortController();
    const asked = institution.checkAccess(giveUp.signal);
    giveUp.abort(new Error('no answer within a while'));
    assert.deepEqual(await asked, { kind: 'UNREACHABLE', why: 'no answer within a while' });
  });
});

test('parties that are reloaded are those of the next order', async (t) => {
  const { standIn, institution, order } = await opened(t);
  const stranger = order('newcomer');
  assert.equal(institution.check(stranger).length, 1);
  institution.reload({
    ...standIn,
    parties: { ...parties, buyers: new Map([['newcomer', buyer(cards.good)]]) },
  });
  assert.deepEqual(institution.check(stranger), []);
  assert.equal(institution.check(order('buyer')).length, 1);
  const hold = { ...stranger, instructionId: stranger.holdId, kind: 'FREEZE' } as const;
  assert.equal((await institution.instruct(hold, new AbortController().signal)).status, 'HELD');
  assert.equal(standIn.intents.at(-1)?.customer, 'cus_1');
});
