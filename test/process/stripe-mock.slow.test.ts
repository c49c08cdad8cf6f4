import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { type TestContext, test } from 'node:test';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import { instruct, lookUp } from '../payments/provider-suite.ts';
import { opened } from '../payments/stripe-support.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import type { SeenRequest } from '../support/stripe-stand-in.ts';

// Stripe's own stand-in knows the requests and their parameters, and has no state. So it checks the requests, and this project's
// stand-in checks the rest.
const skip = skipUnlessInstalled('stripe-mock');

const returnUrl = 'https://platform.example/paid';

/** Starts it at free ports of loopback; its address. */
async function startStripeMock(t: TestContext): Promise<string> {
  const addresses = ['-http-addr', '127.0.0.1:0', '-https-addr', '127.0.0.1:0'];
  const child = spawn('stripe-mock', addresses, { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => child.kill());
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  let address: string | undefined;
  await eventually('stripe-mock listens', 60_000, () => {
    address = /HTTP at address: (\S+)/.exec(said)?.[1];
    return address !== undefined;
  });
  return `http://${address}`;
}

/** Sends a request as it was sent to the stand-in. */
async function sendTo(url: string, { method, path, params, headers }: SeenRequest) {
  const form = new URLSearchParams(params);
  const isPost = method === 'POST';
  const sent = ['authorization', 'stripe-version', 'stripe-account'].flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' ? [[name, value] as [string, string]] : [];
  });
  const answer = await fetch(`${url}${path}${isPost ? '' : `?${form}`}`, {
    method,
    headers: sent,
    ...(isPost ? { body: form } : {}),
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

test('every request that Stripe gets is one that its own stand-in takes', { skip }, async (t) => {
  const url = await startStripeMock(t);
  const kinds = new Set<string>();
  for (const options of [{}, { returnUrl }]) {
    const { standIn, provider, order } = await opened(t, options);
    await provider.checkAccess(new AbortController().signal);
    const asked = order();
    for (const kind of ['CANCEL', 'FREEZE'] as InstructionKind[]) await instruct(provider, asked, kind);
    const released = order();
    for (const kind of ['FREEZE', 'RELEASE'] as InstructionKind[]) await instruct(provider, released, kind);
    standIn.dispute(standIn.intents.at(-1)?.id ?? '', 1);
    await lookUp(provider, released);
    const refunded = order();
    for (const kind of ['FREEZE', 'REFUND'] as InstructionKind[]) await instruct(provider, refunded, kind);
    await instruct(provider, order('authentication'), 'FREEZE');

    for (const request of standIn.requests) {
      const kind = `${request.method} ${request.path.replace(/pi_\d+/, 'pi')}`;
      const { status, body } = await sendTo(url, request);
      assert.equal(status, 200, `${kind} ${JSON.stringify(request.params)}: ${JSON.stringify(body)}`);
      kinds.add(kind);
    }
    // What is wrong is refused, so that what is not says something.
    const [wrong = assert.fail()] = standIn.requests.filter(({ params }) => params.amount !== undefined);
    const refused = await sendTo(url, { ...wrong, params: { ...wrong.params, payment_methods: 'card' } });
    assert.equal(refused.status, 400);
  }
  assert.deepEqual([...kinds].sort(), [
    'GET /v1/disputes',
    'GET /v1/payment_intents',
    'GET /v1/payment_intents/pi',
    'POST /v1/payment_intents',
    'POST /v1/payment_intents/pi/cancel',
    'POST /v1/payment_intents/pi/capture',
    'POST /v1/payment_methods',
  ]);
});

test('what is read of a payment is what its own stand-in shows of one', { skip }, async (t) => {
  const url = await startStripeMock(t);
  const headers = { 'stripe-version': '2026-10-28.endive', authorization: 'Bearer sk_test_1' };
  const seen = { method: 'GET', idempotencyKey: undefined, headers };
  const params = { 'expand[0]': 'latest_charge' };
  const { body: intent } = await sendTo(url, { ...seen, path: '/v1/payment_intents/pi_1', params });
  for (const member of ['amount_capturable', 'amount_received', 'created']) {
    assert.equal(typeof intent[member], 'number', member);
  }
  for (const member of ['cancellation_reason', 'last_payment_error', 'next_action', 'metadata']) {
    assert.ok(member in intent, member);
  }
  const { latest_charge: charge } = intent;
  for (const member of ['amount', 'amount_captured', 'amount_refunded']) {
    assert.equal(typeof charge[member], 'number', member);
  }
  assert.equal(typeof charge.disputed, 'boolean');
  assert.equal(typeof charge.payment_method_details.card, 'object');
  const asked = { payment_intent: 'pi_1', limit: '100' };
  const { body: disputes } = await sendTo(url, { ...seen, path: '/v1/disputes', params: asked });
  assert.equal(typeof disputes.has_more, 'boolean');
  assert.equal(typeof disputes.data[0].amount, 'number');
  assert.equal(typeof disputes.data[0].status, 'string');
});
