import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { askProvenance, fileArtwork, openEscrow } from '../support/calls.ts';
import { runCommand, serveCommand } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { issueInto } from '../support/issued.ts';
import { assertRefused } from '../support/refused.ts';
import { send } from '../support/signed-request.ts';
import { cards, type StandInIntent, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const settledWithinMs = 60_000;
/** Within Stripe's bounds, which the artwork of the documentation is beyond. */
const amount = 1_280_000;

const parties = {
  buyers: {
    'buyer-1': { customer: 'cus_1', paymentMethod: cards.good },
    'buyer-2': { customer: 'cus_2', paymentMethod: cards.declined },
  },
  sellers: { 'seller-1': 'acct_1' },
};

/** The settings of a deployment whose institution is Stripe; `standIn` takes its place. */
function settingsFor(folder: string, standIn: { url: string; apiKey: string; webhookSecret: string }) {
  const file = join(folder, 'parties.json');
  writeFileSync(file, JSON.stringify(parties));
  return {
    ARTSEAL_DATA_DIR: folder,
    ARTSEAL_PAYMENT_INSTITUTION: 'stripe',
    ARTSEAL_STRIPE_API_KEY: standIn.apiKey,
    ARTSEAL_STRIPE_WEBHOOK_SECRET: standIn.webhookSecret,
    ARTSEAL_STRIPE_PARTIES_FILE: file,
    ARTSEAL_STRIPE_URL: standIn.url,
  };
}

/** The real command with Stripe as its institution, and a platform with a filing. */
async function servedByStripe(t: TestContext) {
  const standIn = await startStripeStandIn(t);
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const [platform = assert.fail()] = platforms;
  const service = await serveCommand(t, settingsFor(dataDir, standIn));
  const order = async (escrowId: string) =>
    (await send(service.publicUrl, platform, { target: `/api/v1/escrow/${escrowId}` })).json;
  return {
    ...{ standIn, service, platform },
    file: async () => (await fileArtwork(service, platform)).json.filingNo as string,
    order,
    resolve: (escrowId: string, verb: 'release' | 'refund') =>
      send(service.publicUrl, platform, {
        method: 'POST',
        target: `/api/v1/escrow/${escrowId}/${verb}`,
        body: '',
      }),
    becomes: (escrowId: string, state: string) =>
      eventually(`${escrowId} becomes ${state}`, settledWithinMs, async () => {
        return (await order(escrowId)).state === state;
      }),
    notify: (eventId: string, type: string, intent: StandInIntent) => {
      const { body, signature } = standIn.event(eventId, type, intent, Math.floor(Date.now() / 1000));
      const headers = { 'Stripe-Signature': signature };
      return fetch(`${service.publicUrl}/payment/notifications`, { method: 'POST', headers, body });
    },
  };
}

test('an order is held, released, refunded and declined by Stripe', { timeout: 300_000 }, async (t) => {
  const { standIn, service, platform, file, resolve } = await servedByStripe(t);
  const filingNo = await file();
  const opened = await openEscrow(service, platform, filingNo, { amount });
  assert.equal(opened.status, 200, opened.text);
  const [intent] = standIn.intents;
  assert.equal(intent?.status, 'requires_capture');
  assert.equal(intent.transfer_data?.destination, 'acct_1');
  const released = await resolve(opened.json.escrowId, 'release');
  assert.equal(released.json.state, 'RELEASED', released.text);
  assert.equal(intent.status, 'succeeded');
  const { records } = (await askProvenance(service, platform, filingNo)).json;
  assert.equal(records.length, 2);

  const again = await openEscrow(service, platform, filingNo, { amount });
  const refunded = await resolve(again.json.escrowId, 'refund');
  assert.equal(refunded.json.state, 'REFUNDED', refunded.text);
  assert.equal(standIn.intents.at(-1)?.status, 'canceled');

  const declined = await openEscrow(service, platform, filingNo, { amount, buyerId: 'buyer-2' });
  assertRefused(declined, 402, 'PAYMENT_DECLINED', /declined the FREEZE/);
  const unknown = await openEscrow(service, platform, filingNo, { buyerId: 'nobody', sellerId: 'no one' });
  assertRefused(unknown, 400, 'VALIDATION_FAILED', /buyerId is not known/, /sellerId is not known/);
});

test('an answer of Stripe that is lost is found by asking', { timeout: 300_000 }, async (t) => {
  const { standIn, service, platform, file, becomes, resolve } = await servedByStripe(t);
  standIn.failNext(/^POST .*payment_intents$/, 'lose-answer');
  const pending = await openEscrow(service, platform, await file(), { amount });
  assertRefused(pending, 503, 'PAYMENT_PENDING');
  const [escrowId = ''] = /ES-\d{4}-\w{4}/.exec(pending.json.message) ?? [];
  await becomes(escrowId, 'FROZEN');
  assert.equal(standIn.intents.length, 1);
  standIn.failNext(/capture$/, 'lose-request');
  assertRefused(await resolve(escrowId, 'release'), 503, 'PAYMENT_PENDING');
  await becomes(escrowId, 'RELEASED');
  assert.equal(standIn.intents[0]?.amount_received, amount);
});

test('a webhook of Stripe leads to a question, a forged one to nothing', { timeout: 300_000 }, async (t) => {
  const { standIn, service, platform, file, order, becomes, notify } = await servedByStripe(t);
  const { escrowId } = (await openEscrow(service, platform, await file(), { amount })).json;
  const [intent = assert.fail()] = standIn.intents;
  const asked = standIn.requests.length;
  // It claims what is not so.
  assert.equal((await notify('evt_1', 'payment_intent.canceled', intent)).status, 200);
  await eventually('Stripe is asked', settledWithinMs, () => standIn.requests.length > asked);
  const headers = { 'Stripe-Signature': 't=1,v1=00' };
  const forged = await fetch(`${service.publicUrl}/payment/notifications`, {
    method: 'POST',
    headers,
    body: '{}',
  });
  assert.equal(forged.status, 401);
  assert.equal(((await forged.json()) as { code: string }).code, 'SIGNATURE_INVALID');
  standIn.expire(intent.id);
  assert.equal((await order(escrowId)).state, 'FROZEN');
  assert.equal((await notify('evt_2', 'payment_intent.canceled', intent)).status, 200);
  await becomes(escrowId, 'CLOSED');
});

test('two settings lead from the stand-in to Stripe itself', async (t) => {
  const standIn = { url: '', apiKey: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc', webhookSecret: 'whsec_1' };
  const env = settingsFor(temporaryFolder(t), standIn);
  const { code, stderr } = await runCommand(['init'], env);
  assert.equal(code, 0, stderr);
  const live = await runCommand(['escrow', 'list'], { ...env, ARTSEAL_STRIPE_API_KEY: 'sk_live_1' });
  assert.equal(live.code, 2);
  assert.match(live.stderr, /ARTSEAL_STRIPE_API_KEY/);
  assert.doesNotMatch(live.stderr, /sk_live_1/);
});

test('a sandbox with open orders of the simulated institution does not start with Stripe', async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const [platform = assert.fail()] = platforms;
  const service = await serveCommand(t, { ARTSEAL_DATA_DIR: dataDir });
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assert.equal((await openEscrow(service, platform, filingNo)).status, 200);
  await service.stop('SIGTERM');
  const stripe = settingsFor(dataDir, {
    url: 'http://127.0.0.1:1',
    apiKey: 'sk_test_1',
    webhookSecret: 'whsec_1',
  });
  const { code, stderr } = await runCommand(['serve'], { ...stripe, ...anyAddresses });
  assert.equal(code, 1);
  assert.match(stderr, /simulated: 1.*ARTSEAL_PAYMENT_INSTITUTION/);
});
