import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import Stripe from 'stripe';
import type { PaymentOrder, PaymentProvider, SentNotification } from '../../src/payments/provider.ts';
import { apiVersion } from '../../src/payments/stripe/client.ts';
import { createStripeProvider } from '../../src/payments/stripe/provider.ts';
import { apiError } from '../support/rejected.ts';
import { cards } from '../support/stripe-stand-in.ts';
import { httpSuite } from './http-suite.ts';
import { instruct, lookUp, type ProviderEngine, providerSuite } from './provider-suite.ts';
import { held, opened } from './stripe-support.ts';

const freezeRequest = /^POST \/v1\/payment_intents$/;

/** A notification as Stripe posts it. */
const posted = (body: Uint8Array, signature: string, nowS: number): SentNotification => {
  const headers = { 'stripe-signature': [signature] };
  return { query: '', headers, body, nowS };
};

const engine: ProviderEngine = {
  notifies: true,
  open: async (t) => {
    const { standIn, provider, order } = await opened(t, { returnUrl: 'https://platform.example/paid' });
    const intentOf = ({ holdId }: PaymentOrder) => {
      const intent = standIn.intents.find(({ metadata }) => metadata.artseal_hold === holdId);
      assert.ok(intent);
      return intent;
    };
    let events = 0;
    const disputes = new Map<string, ReturnType<typeof standIn.dispute>>();
    return {
      provider,
      order: (buyer) => order(buyer === 'acting' ? 'authentication' : buyer),
      lapse: async (asked) => standIn.expire(intentOf(asked).id),
      act: async (asked, how) => standIn.authenticate(intentOf(asked).id, how === 'DONE'),
      happen: async (asked, event) => {
        const { id, amount_received: paid } = intentOf(asked);
        switch (event) {
          case 'RETURN_ALL':
            return standIn.refund(id, paid);
          case 'RETURN_PART':
            return standIn.refund(id, paid / 2);
          case 'DISPUTE':
            disputes.set(id, standIn.dispute(id, paid));
            return;
          case 'DISPUTE_WON':
          case 'DISPUTE_LOST':
            (disputes.get(id) ?? assert.fail()).status = event === 'DISPUTE_WON' ? 'won' : 'lost';
        }
      },
      notification: (asked, sentAtS) => {
        events += 1;
        const type = 'payment_intent.amount_capturable_updated';
        const { body, signature } = standIn.event(`evt_${events}`, type, intentOf(asked), sentAtS);
        return posted(body, signature, sentAtS);
      },
    };
  },
};

providerSuite('at Stripe', engine);
httpSuite('at Stripe', {
  open: async (t, now) => {
    const { standIn, provider, order } = await opened(t, { now });
    const holds = ({ holdId }: PaymentOrder) =>
      standIn.intents.filter(
        ({ metadata, latest_charge }) => metadata.artseal_hold === holdId && latest_charge !== null,
      ).length;
    const openAt = (url: string) => createStripeProvider({ ...standIn, url, returnUrl: undefined });
    return { standIn, provider, order: (more) => order('buyer', more), holds, openAt };
  },
  freeze: [/^POST \/v1\/payment_methods$/, freezeRequest],
  release: /^POST .*\/capture$/,
  giveBack: /^POST .*\/cancel$/,
  savesErrors: true,
});

test('Stripe gets the documented requests for a hold and its release', async (t) => {
  const { standIn, provider, asked, reference } = await held(t);
  await instruct(provider, { ...asked, reference }, 'RELEASE');
  const [cloned, made, captured, ...more] = standIn.requests;
  assert.deepEqual(more, []);
  assert.ok(cloned && made && captured);
  assert.equal(cloned.path, '/v1/payment_methods');
  assert.deepEqual(cloned.params, { customer: 'cus_1', payment_method: cards.good });
  assert.equal(cloned.idempotencyKey, `${asked.holdId}:card`);
  assert.deepEqual(made.params, {
    amount: '1250000',
    currency: 'cny',
    payment_method: 'pm_clone1',
    'allowed_payment_method_types[0]': 'card',
    capture_method: 'manual',
    confirm: 'true',
    off_session: 'true',
    'metadata[artseal_hold]': asked.holdId,
    'metadata[artseal_escrow]': asked.escrowId,
    'expand[0]': 'latest_charge',
  });
  assert.equal(made.idempotencyKey, asked.holdId);
  assert.equal(reference, 'acct_1/pi_1');
  assert.equal(captured.path, '/v1/payment_intents/pi_1/capture');
  assert.ok(captured.idempotencyKey);
  for (const { headers } of [cloned, made, captured]) {
    assert.equal(headers['stripe-account'], 'acct_1');
    assert.equal(headers['stripe-version'], apiVersion);
    assert.equal(headers['x-stripe-client-telemetry'], undefined);
    assert.doesNotMatch(String(headers['x-stripe-client-user-agent']), /telemetry_id|platform/);
  }
});

test('the API version is that of the library', () => {
  assert.equal(apiVersion, Stripe.API_VERSION);
});

test('an order from before its parties were registered says who has to register them', async (t) => {
  const { standIn, provider, order } = await opened(t);
  for (const nameless of [{ buyer: undefined }, { seller: undefined }])
    await assert.rejects(
      instruct(provider, order('buyer', nameless), 'FREEZE'),
      /of the order is not known: artseal party add/,
    );
  assert.deepEqual(standIn.requests, []);
});

test('an order with a reference is looked up without the ids of its parties', async (t) => {
  const { provider, order } = await opened(t);
  const { reference } = await instruct(provider, order(), 'FREEZE');
  const nameless = order('buyer', { buyer: undefined, seller: undefined });
  await assert.rejects(lookUp(provider, nameless), /of the order is not known/);
  assert.equal((await lookUp(provider, { ...nameless, reference })).status, 'HELD');
});

describe('a hold that Stripe does not make is VOID, and stays so', () => {
  test('rejected once, with an error that is not saved: the second attempt holds', async (t) => {
    const { standIn, provider, order } = await opened(t);
    standIn.failNext(freezeRequest, { status: 400 });
    assert.equal((await instruct(provider, order(), 'FREEZE')).status, 'HELD');
    assert.equal(standIn.intents.length, 1);
  });
});

describe('without a definite response a call rejects, and a look-up finds what was done', () => {
  for (const [fault, kind] of [
    [{ status: 403 }, 'CREDENTIALS_REJECTED'],
    [{ status: 409 }, 'FAILED'],
    // Another request works on the same object.
    [{ status: 429, code: 'lock_timeout' }, 'FAILED'],
  ] as const) {
    test(`FREEZE, ${Object.values(fault)}: ${kind}, and the next one holds`, async (t) => {
      const { standIn, provider, order } = await opened(t);
      const asked = order();
      standIn.failNext(freezeRequest, fault);
      await assert.rejects(instruct(provider, asked, 'FREEZE'), { name: 'ProviderFailure', kind });
      assert.equal((await lookUp(provider, asked)).status, 'ABSENT');
      assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
    });
  }

  test('a saved 500 of a FREEZE stays one until Stripe forgets the key; a look-up finds what was done', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    standIn.failNext(freezeRequest, 'fail-and-save');
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await assert.rejects(instruct(provider, asked, 'FREEZE'), /status 500/);
      assert.equal((await lookUp(provider, asked)).status, 'ABSENT');
    }
    standIn.forgetKeys();
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
  });

  test('a FREEZE that is being processed', async (t) => {
    const { provider, order } = await opened(t);
    const asked = order('processing');
    await assert.rejects(instruct(provider, asked, 'FREEZE'), /processing/);
    await assert.rejects(lookUp(provider, asked), /processing/);
    await assert.rejects(instruct(provider, asked, 'CANCEL'), /processing/);
  });
});

describe('a CANCEL without a hold', () => {
  test('after a declined FREEZE whose response was lost rejects; a second FREEZE is VOID', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('buyer', { amount: 1n });
    standIn.failNext(freezeRequest, 'lose-answer');
    await assert.rejects(instruct(provider, asked, 'FREEZE'));
    await assert.rejects(instruct(provider, asked, 'CANCEL'), /StripeIdempotencyError/);
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
  });

  test('of an amount that Stripe does not accept is VOID', async (t) => {
    const { provider, order } = await opened(t);
    for (const amount of [1n, 100_000_000n]) {
      const asked = order('buyer', { amount });
      assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
      assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
    }
  });

  test('that breaks off between its two requests: ABSENT, and VOID when it is repeated', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    standIn.failNext(/^POST .*\/cancel$/, 'lose-request');
    await assert.rejects(instruct(provider, asked, 'CANCEL'));
    assert.deepEqual(await lookUp(provider, asked), { status: 'ABSENT' });
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
  });
});

describe('a look-up', () => {
  test('has the amount and the currency of Stripe, whatever was requested', async (t) => {
    const { provider, asked, intent } = await held(t);
    Object.assign(intent, { amount_capturable: 7, currency: 'usd' });
    const { amount, currency } = await lookUp(provider, asked);
    assert.deepEqual({ amount, currency }, { amount: 7n, currency: 'USD' });
  });

  test('finds an order among more than a page of one seller', async (t) => {
    const { standIn, provider, asked, frozen: first, intent } = await held(t);
    const metadata = { artseal_hold: 'other' };
    for (let made = 0; made < 130; made += 1)
      standIn.intents.push({ ...intent, id: `pi_other${made}`, metadata });
    assert.deepEqual(await lookUp(provider, asked), first);
  });

  test('fails, rather than reporting ABSENT, if a seller has too many', async (t) => {
    const { standIn, provider, order } = await opened(t);
    await instruct(provider, order(), 'FREEZE');
    const [intent] = standIn.intents;
    assert.ok(intent);
    for (let made = 0; made < 2_000; made += 1) standIn.intents.push({ ...intent, id: `pi_many${made}` });
    await assert.rejects(lookUp(provider, order()), /more than 2000/);
  });

  test('does not read what the seller was paid long after the order', async (t) => {
    const { standIn, provider, asked, frozen, intent } = await held(t);
    const later = { ...intent, created: intent.created + 3 * 86_400, metadata: {} };
    for (let made = 0; made < 2_000; made += 1) standIn.intents.push({ ...later, id: `pi_later${made}` });
    assert.deepEqual(await lookUp(provider, asked), frozen);
  });

  test('does not look before the order was opened, but allows for another clock', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    await lookUp(provider, asked);
    const since = Number(standIn.requests[0]?.params['created[gte]']);
    assert.equal(since, Math.floor(asked.openedAtMs / 1000) - 600);
  });

  test('distinguishes a lapsed authorisation from a cancelled one', async (t) => {
    const { standIn, provider, order } = await opened(t);
    for (const [reason, charge, status] of [
      ['automatic', 'succeeded', 'LAPSED'],
      ['expired', 'succeeded', 'LAPSED'],
      ['requested_by_customer', 'succeeded', 'RETURNED'],
      [null, 'succeeded', 'RETURNED'],
      ['automatic', 'failed', 'VOID'],
      [null, 'failed', 'VOID'],
    ] as const) {
      const asked = order();
      await instruct(provider, asked, 'FREEZE');
      const intent = standIn.intents.at(-1);
      assert.ok(intent?.latest_charge);
      const latest_charge = { ...intent.latest_charge, status: charge };
      Object.assign(intent, { status: 'canceled', cancellation_reason: reason, latest_charge });
      assert.equal((await lookUp(provider, asked)).status, status, `${reason} ${charge}`);
    }
  });

  test('rejects for a status that it does not know', async (t) => {
    const { standIn, provider, asked } = await held(t);
    Object.assign(standIn.intents[0] ?? {}, { status: 'requires_review' });
    await assert.rejects(lookUp(provider, asked), /requires_review/);
  });
});

describe('notifications of Stripe', () => {
  const nowS = 1_795_000_000;
  const intent = { object: 'payment_intent', metadata: { artseal_hold: 'hold-x' } };
  const sent = (body: Uint8Array, signature: string, laterS = 0) => posted(body, signature, nowS + laterS);

  test('are taken for 300 seconds by the clock that is passed in', async (t) => {
    const { standIn, provider } = await opened(t);
    const { body, signature } = standIn.event('evt_1', 'payment_intent.succeeded', intent, nowS);
    const expected = { eventId: 'evt_1', about: { holdId: 'hold-x' } };
    for (const laterS of [-10, 0, 300]) {
      assert.deepEqual(provider.readNotification(sent(body, signature, laterS)), expected);
    }
    assert.throws(() => provider.readNotification(sent(body, signature, 301)), apiError('SIGNATURE_INVALID'));
  });

  test('of a charge name the order by its metadata, of anything else by the payment', async (t) => {
    const { standIn, provider } = await opened(t);
    const reference = 'acct_1/pi_7';
    const cases: readonly (readonly [object, object, unknown])[] = [
      [
        { object: 'charge', payment_intent: 'pi_7', metadata: { artseal_hold: 'hold-x' } },
        {},
        { holdId: 'hold-x' },
      ],
      [{ object: 'charge', payment_intent: 'pi_7', metadata: {} }, {}, { reference }],
      [
        { object: 'dispute', payment_intent: 'pi_7', metadata: { artseal_hold: 'hold-x' } },
        {},
        { reference },
      ],
      [{ object: 'refund', payment_intent: 'pi_7' }, { account: 'acct_2' }, { reference: 'acct_2/pi_7' }],
      [{ object: 'dispute', payment_intent: 'pi_7' }, { account: undefined }, undefined],
      [{ object: 'dispute', payment_intent: null }, {}, undefined],
      [{ object: 'payment_intent', id: 'pi_7', metadata: {} }, {}, undefined],
      [{ object: 'payment_intent', metadata: null }, {}, undefined],
      [{ object: 'payment_intent' }, {}, undefined],
      [{}, {}, undefined],
    ];
    for (const [object, more, about] of cases) {
      const { body, signature } = standIn.event('evt_1', 'charge.dispute.created', object, nowS, more);
      assert.deepEqual(provider.readNotification(sent(body, signature)), { eventId: 'evt_1', about });
    }
  });

  test('of another mode, form or release are rejected, with what to change', async (t) => {
    const { standIn, provider } = await opened(t);
    const live = createStripeProvider({ ...standIn, returnUrl: undefined, apiKey: 'rk_live_1' });
    t.after(() => live.close());
    const cases: readonly (readonly [PaymentProvider, object, RegExp | undefined])[] = [
      [provider, { livemode: true }, /of live mode: let a webhook endpoint of test mode/],
      [live, { livemode: false }, /of test mode: let a webhook endpoint of live mode/],
      [live, { livemode: true }, undefined],
      [provider, { object: 'v2.core.event' }, /thin event: .*payload style/],
      [provider, { api_version: '2020-08-27' }, /API version 2020-08-27: .*2026-10-28\.endive/],
      [provider, { api_version: '2026-11-25.endive' }, undefined],
      [provider, { api_version: null }, undefined],
    ];
    for (const [at, more, message] of cases) {
      const { body, signature } = standIn.event('evt_1', 'charge.refunded', {}, nowS, more);
      const read = () => at.readNotification(sent(body, signature));
      if (message === undefined) assert.equal(read().eventId, 'evt_1');
      else assert.throws(read, apiError('VALIDATION_FAILED', message));
    }
  });

  test('that are genuine and cannot be read are INVALID_JSON', async (t) => {
    const { standIn, provider } = await opened(t);
    const texts = ['', 'x', '{', 'null', '1', '[]', '{}', '{"id":1}', '{"id":""}'];
    for (const body of [...texts.map((text) => Buffer.from(text)), Buffer.from('{"id":"\x80"}', 'latin1')]) {
      // The library decodes leniently, and checks the signature of what it decoded.
      const signature = standIn.sign(body.toString(), nowS);
      assert.throws(
        () => provider.readNotification(sent(body, signature)),
        apiError('INVALID_JSON'),
        body.toString(),
      );
    }
  });
});

test('credentials that lack a permission are rejected', async (t) => {
  const { standIn, provider } = await opened(t);
  standIn.failNext(/^GET/, { status: 403 });
  const restricted = await provider.checkAccess(new AbortController().signal);
  assert.ok(restricted.kind === 'REJECTED' && /permission.*403/.test(restricted.why), inspect(restricted));
  assert.equal(standIn.requests[0]?.path, '/v1/payment_intents');
});
