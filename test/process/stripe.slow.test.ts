import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { askProvenance, fileArtwork, getEscrow, openEscrow, releaseEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { issueInto, serveIssued } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { cards, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand, serveWatched } from '../support/watched-command.ts';

const settledWithinMs = 60_000;
/** Within Stripe's bounds, which the artwork of the documentation is beyond. */
const amount = 1_280_000;

const partiesOfBefore = {
  buyers: {
    'buyer-1': { customer: 'cus_1', paymentMethod: cards.good },
    'buyer-3': { customer: 'cus_2', paymentMethod: cards.authenticationRequired },
  },
  sellers: { 'seller-1': 'acct_1' },
};

/** The settings of a deployment whose provider is Stripe; `standIn` takes its place. */
function settingsFor(folder: string, standIn: { url: string; apiKey: string; webhookSecret: string }) {
  return {
    ARTSEAL_DATA_DIR: folder,
    ARTSEAL_PAYMENT_PROVIDER: 'stripe',
    ARTSEAL_STRIPE_API_KEY: standIn.apiKey,
    ARTSEAL_STRIPE_WEBHOOK_SECRET: standIn.webhookSecret,
    ARTSEAL_STRIPE_URL: standIn.url,
    ARTSEAL_STRIPE_RETURN_URL: 'https://platform.example/paid',
  };
}

/** The real command with Stripe as its provider, and a platform with parties. */
async function servedByStripe(t: TestContext) {
  const standIn = await startStripeStandIn(t);
  const dataDir = temporaryFolder(t);
  const { platform } = await issueInto(dataDir, 1);
  const settings = settingsFor(dataDir, standIn);
  const parties = join(dataDir, 'parties.json');
  writeFileSync(parties, JSON.stringify(partiesOfBefore));
  const { code, errors } = await runHere(
    ['party', 'import', parties, '--platform', platform.caller],
    settings,
  );
  assert.equal(code, 0, errors.join('\n'));
  const service = await serveWatched(t, settings);
  let log = '';
  service.child.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const order = async (escrowId: string) => (await getEscrow(service, platform, escrowId)).json;
  const file = async () => (await fileArtwork(service, platform)).json.filingNo as string;
  let events = 0;
  return {
    ...{ standIn, service, platform, order, file },
    log: () => log,
    open: async (terms: object = {}) => openEscrow(service, platform, await file(), { amount, ...terms }),
    intentOf: (escrowId: string) =>
      standIn.intents.find(({ metadata }) => metadata.artseal_escrow === escrowId) ?? assert.fail(escrowId),
    becomes: (escrowId: string, state: string) =>
      eventually(`${escrowId} becomes ${state}`, settledWithinMs, async () => {
        return (await order(escrowId)).state === state;
      }),
    notify: (type: string, object: object, more?: object) => {
      events += 1;
      const nowS = Math.floor(Date.now() / 1000);
      const { body, signature } = standIn.event(`evt_${events}`, type, object, nowS, more);
      const headers = { 'Stripe-Signature': signature };
      return fetch(`${service.publicUrl}/payment/notifications`, { method: 'POST', headers, body });
    },
  };
}

test('a deployment at Stripe', { timeout: 300_000 }, async (t) => {
  const at = await servedByStripe(t);
  const { standIn, service, platform, order, open, becomes, notify, intentOf } = at;

  await t.test('reserves the amount on the account of the seller, and pays it out there', async () => {
    const filingNo = await at.file();
    const opened = await openEscrow(service, platform, filingNo, { amount });
    assert.equal(opened.status, 200, opened.text);
    const { escrowId } = opened.json;
    const intent = intentOf(escrowId);
    assert.deepEqual([intent.status, intent.account], ['requires_capture', 'acct_1']);
    const { holdExpiresAt } = await order(escrowId);
    assert.equal(Date.parse(holdExpiresAt) / 1000, intent.created + 7 * 24 * 3600);
    const released = await releaseEscrow(service, platform, escrowId);
    assert.equal(released.json.state, 'RELEASED', released.text);
    assert.equal(intent.status, 'succeeded');
    const { records } = (await askProvenance(service, platform, filingNo)).json;
    assert.equal(records.length, 2);
  });

  await t.test("rejects amounts outside Stripe's bounds before any request", async () => {
    const before = standIn.requests.length;
    const tooMuch = await open({ amount: 100_000_000 });
    assertRejected(tooMuch, 400, 'VALIDATION_FAILED', /amount must be from 1 to 99999999/);
    assert.equal(standIn.requests.length, before);
  });

  await t.test('waits for a buyer who has to confirm', async () => {
    const opened = await open({ buyerId: 'buyer-3' });
    assert.equal(opened.status, 200, opened.text);
    const { escrowId, state, nextAction } = opened.json;
    assert.equal(state, 'UNPAID');
    const intent = intentOf(escrowId);
    assert.equal(nextAction.url, `${standIn.url}/3ds/${intent.id}`);
    standIn.authenticate(intent.id, true);
    assert.equal((await notify('payment_intent.amount_capturable_updated', intent)).status, 200);
    await becomes(escrowId, 'FROZEN');
  });

  await t.test('rejects a notification with another signature', async () => {
    const headers = { 'Stripe-Signature': 't=1,v1=00' };
    const address = `${service.publicUrl}/payment/notifications`;
    const forged = await fetch(address, { method: 'POST', headers, body: '{}' });
    assert.equal(forged.status, 401);
    assert.equal(((await forged.json()) as { code: string }).code, 'SIGNATURE_INVALID');
  });

  await t.test('logs what to change where another kind of event is sent', async () => {
    const [intent = assert.fail()] = standIn.intents;
    assert.equal((await notify('payment_intent.succeeded', intent, { livemode: true })).status, 400);
    await eventually('it is logged', settledWithinMs, () =>
      linesOf(at.log()).some(({ level, why }) => level === 40 && /is of live mode/.test(String(why))),
    );
  });

  await t.test('leaves nothing on standard error but its own lines', () => {
    assert.ok(linesOf(at.log()).length > 10);
    assert.doesNotMatch(at.log(), /A notice of the stand-in|Warning/);
  });
});

/** The lines of a log, all of which are JSON. */
function linesOf(log: string): Record<string, unknown>[] {
  const whole = log.slice(0, log.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

test('a sandbox with open orders of the simulated provider does not start with Stripe', async (t) => {
  const service = await serveIssued(t);
  const { dataDir, platform } = service;
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
  assert.match(stderr, /simulated: 1.*ARTSEAL_PAYMENT_PROVIDER/);
});
