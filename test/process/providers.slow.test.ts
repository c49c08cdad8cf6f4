import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import {
  askProvenance,
  fileArtwork,
  getEscrow,
  openEscrow,
  refundEscrow,
  releaseEscrow,
} from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { type IssuedPlatform, issueInto, serveIssued } from '../support/issued.ts';
import { startMangopayStandIn } from '../support/mangopay-stand-in.ts';
import { cards, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand, serveWatched } from '../support/watched-command.ts';

const settledWithinMs = 60_000;
/** Within Stripe's bounds, which the artwork of the documentation is beyond. */
const amount = 1_280_000;

/** Makes a data folder with a platform, and registers its parties. Returns the settings for the folder. */
async function deployed(t: TestContext, provider: Readonly<Record<string, string>>, parties: object) {
  const settings = { ARTSEAL_DATA_DIR: temporaryFolder(t), ...provider };
  const { ARTSEAL_CURRENCY = 'CNY' } = provider;
  const { platform } = await issueInto(settings.ARTSEAL_DATA_DIR, 1, { ARTSEAL_CURRENCY });
  const file = join(settings.ARTSEAL_DATA_DIR, 'parties.json');
  writeFileSync(file, JSON.stringify(parties));
  const { code, errors } = await runHere(['party', 'import', file, '--platform', platform.caller], settings);
  assert.equal(code, 0, errors.join('\n'));
  return { settings, platform };
}

/** The real command on a deployment, and what its platform does there. */
async function served(t: TestContext, settings: Record<string, string>, platform: IssuedPlatform) {
  const service = await serveWatched(t, settings);
  const order = async (escrowId: string) => (await getEscrow(service, platform, escrowId)).json;
  return {
    service,
    order,
    open: async (terms: object = {}) => {
      const { filingNo } = (await fileArtwork(service, platform)).json;
      const { status, text, json } = await openEscrow(service, platform, filingNo, { amount, ...terms });
      assert.equal(status, 200, text);
      return { ...json, filingNo };
    },
    release: async (escrowId: string) => (await releaseEscrow(service, platform, escrowId)).json.state,
    refund: async (escrowId: string) => (await refundEscrow(service, platform, escrowId)).json.state,
    becomes: (escrowId: string, state: string) =>
      eventually(`${escrowId} becomes ${state}`, settledWithinMs, async () => {
        return (await order(escrowId)).state === state;
      }),
    assertTransferred: async (filingNo: string) => {
      const { records } = (await askProvenance(service, platform, filingNo)).json;
      assert.deepEqual(
        records.map(({ event }: { event: string }) => event),
        ['SUBMITTED', 'TRANSFER'],
      );
    },
  };
}

test('a deployment at Stripe', { timeout: 300_000 }, async (t) => {
  const standIn = await startStripeStandIn(t);
  const { settings, platform } = await deployed(
    t,
    { ...standIn.settings, ARTSEAL_STRIPE_RETURN_URL: 'https://platform.example/paid' },
    {
      buyers: {
        'buyer-1': { customer: 'cus_1', paymentMethod: cards.good },
        'buyer-3': { customer: 'cus_2', paymentMethod: cards.authenticationRequired },
      },
      sellers: { 'seller-1': 'acct_1' },
    },
  );
  const { service, order, open, release, becomes, assertTransferred } = await served(t, settings, platform);
  const intentOf = (escrowId: string) =>
    standIn.intents.find(({ metadata }) => metadata.artseal_escrow === escrowId) ?? assert.fail(escrowId);
  let events = 0;
  const notify = (type: string, object: object, more?: object) => {
    events += 1;
    const nowS = Math.floor(Date.now() / 1000);
    const { body, signature } = standIn.event(`evt_${events}`, type, object, nowS, more);
    const headers = { 'Stripe-Signature': signature };
    return fetch(`${service.publicUrl}/payment/notifications`, { method: 'POST', headers, body });
  };

  await t.test('reserves the amount on the account of the seller, and pays it out there', async () => {
    const { escrowId, filingNo } = await open();
    const intent = intentOf(escrowId);
    assert.deepEqual([intent.status, intent.account], ['requires_capture', 'acct_1']);
    const { holdExpiresAt } = await order(escrowId);
    assert.equal(Date.parse(holdExpiresAt) / 1000, intent.created + 7 * 24 * 3600);
    assert.equal(await release(escrowId), 'RELEASED');
    assert.equal(intent.status, 'succeeded');
    await assertTransferred(filingNo);
  });

  await t.test('waits for a buyer who has to confirm', async () => {
    const { escrowId, state, nextAction } = await open({ buyerId: 'buyer-3' });
    const intent = intentOf(escrowId);
    assert.deepEqual([state, nextAction.url], ['UNPAID', `${standIn.url}/3ds/${intent.id}`]);
    standIn.authenticate(intent.id, true);
    assert.equal((await notify('payment_intent.amount_capturable_updated', intent)).status, 200);
    await becomes(escrowId, 'FROZEN');
  });

  await t.test(
    'logs what to change where another kind of event is sent, and nothing but its own lines',
    async () => {
      const [intent = assert.fail()] = standIn.intents;
      assert.equal((await notify('payment_intent.succeeded', intent, { livemode: true })).status, 400);
      await eventually('it is logged', settledWithinMs, () =>
        service.logged().some(({ level, why }) => level === 40 && /is of live mode/.test(String(why))),
      );
      assert.ok(service.logLines().length > 10);
      assert.doesNotMatch(service.stderr(), /A notice of the stand-in|Warning/);
    },
  );
});

test('a sandbox with open orders of the simulated provider does not start with Stripe', async (t) => {
  const service = await serveIssued(t);
  const { dataDir, platform } = service;
  const { filingNo } = (await fileArtwork(service, platform)).json;
  assert.equal((await openEscrow(service, platform, filingNo)).status, 200);
  await service.stop('SIGTERM');
  const { settings } = await startStripeStandIn(t);
  const { code, stderr } = await runCommand(['serve'], {
    ...settings,
    ARTSEAL_DATA_DIR: dataDir,
  });
  assert.equal(code, 1);
  assert.match(stderr, /simulated: 1.*ARTSEAL_PAYMENT_PROVIDER/);
});

/** A deployment at Mangopay whose platform has registered its parties, not yet served. */
async function deployedAtMangopay(t: TestContext) {
  const standIn = await startMangopayStandIn(t);
  const buyers = {
    'buyer-1': standIn.party('PAYER', 'EUR', 100 * amount),
    'buyer-3': standIn.party('OWNER', 'EUR', 100 * amount),
  };
  const sellers = { 'seller-1': standIn.party('OWNER', 'EUR', 0) };
  standIn.askToAuthenticate(buyers['buyer-3'].user);
  const parties = { ...buyers, ...sellers };
  const balance = (party: keyof typeof parties) =>
    standIn.wallets.find(({ Id }) => Id === parties[party].wallet)?.Balance.Amount;
  const settings = {
    ARTSEAL_CURRENCY: 'EUR',
    ARTSEAL_PAYMENT_PROVIDER: 'mangopay',
    ARTSEAL_MANGOPAY_CLIENT_ID: standIn.clientId,
    ARTSEAL_MANGOPAY_API_KEY: standIn.apiKey,
    ARTSEAL_MANGOPAY_ESCROW_USER: standIn.escrowUser,
    ARTSEAL_MANGOPAY_HOOK_SECRET: standIn.hookSecret,
    ARTSEAL_MANGOPAY_URL: standIn.url,
  };
  return { standIn, balance, ...(await deployed(t, settings, { buyers, sellers })) };
}

test('a deployment at Mangopay', { timeout: 300_000 }, async (t) => {
  const { standIn, balance, settings, platform } = await deployedAtMangopay(t);
  const { service, open, refund, becomes } = await served(t, settings, platform);

  await t.test('holds the money of an order, and returns it', async () => {
    const { escrowId } = await open();
    assert.equal(balance('buyer-1'), 99 * amount);
    assert.equal(await refund(escrowId), 'REFUNDED');
    assert.equal(balance('buyer-1'), 100 * amount);
  });

  await t.test(
    'sends a buyer to authenticate, and continues after the hook, not after a forged one',
    async () => {
      const { escrowId, state, nextAction } = await open({ buyerId: 'buyer-3' });
      const { Id } = standIn.transfers.at(-1) ?? assert.fail();
      const page = `https://sca.sandbox.mangopay.com/?token=sca_${Id}`;
      assert.deepEqual([state, nextAction?.url], ['UNPAID', page]);
      standIn.authenticated(Id, true);
      const hook = (secret: string) =>
        fetch(
          `${service.publicUrl}/payment/notifications?secret=${secret}&EventType=TRANSFER_NORMAL_SUCCEEDED&RessourceId=${Id}&Date=1`,
        );
      assert.equal((await hook('x'.repeat(40))).status, 401);
      assert.equal((await hook(standIn.hookSecret)).status, 200);
      await becomes(escrowId, 'FROZEN');
    },
  );

  assert.equal(await service.stop('SIGTERM'), 0);
  const output = service.stdout() + service.stderr();
  assert.match(output, /payment notification/);
  for (const secret of [standIn.hookSecret, standIn.apiKey, 'token-1']) assert.ok(!output.includes(secret));
});

test('killed while money moves: it moves once, and the order continues', { timeout: 300_000 }, async (t) => {
  const { standIn, balance, settings, platform } = await deployedAtMangopay(t);
  const arrived = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  t.after(() => gate.resolve());
  const heldUp = {
    until: () => {
      arrived.resolve();
      return gate.promise;
    },
  };
  const first = await served(t, settings, platform);
  const { escrowId, filingNo } = await first.open();
  standIn.failNext(/^POST \/transfers$/, heldUp);
  const unanswered = first.release(escrowId).catch(() => undefined);
  await arrived.promise;
  await first.service.stop('SIGKILL');
  await unanswered;

  const second = await served(t, settings, platform);
  assert.equal((await second.order(escrowId)).state, 'FROZEN');
  gate.resolve();
  await second.becomes(escrowId, 'RELEASED');
  assert.equal(balance('seller-1'), amount);
  assert.equal(balance('buyer-1'), 99 * amount);
  await second.assertTransferred(filingNo);
});
