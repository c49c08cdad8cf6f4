import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runHere } from '../support/artseal.ts';
import { askProvenance, escrowIdIn, fileArtwork, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { issueInto } from '../support/issued.ts';
import { assertRejected } from '../support/rejected.ts';
import { send } from '../support/signed-request.ts';
import { cards, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand, serveWatched } from '../support/watched-command.ts';

const settledWithinMs = 60_000;
/** Within Stripe's bounds, which the artwork of the documentation is beyond. */
const amount = 1_280_000;

const partiesOfBefore = {
  buyers: {
    'buyer-1': { customer: 'cus_1', paymentMethod: cards.good },
    'buyer-2': { customer: 'cus_2', paymentMethod: cards.stolen },
    'buyer-3': { customer: 'cus_2', paymentMethod: cards.authenticationRequired },
    'buyer-4': { customer: 'cus_gone', paymentMethod: cards.good },
  },
  sellers: { 'seller-1': 'acct_1', 'seller-2': 'acct_2' },
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

/** The real command with Stripe as its provider, and two platforms, the first of them with parties. */
async function servedByStripe(t: TestContext) {
  const standIn = await startStripeStandIn(t);
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 2);
  const [platform = assert.fail(), other = assert.fail()] = platforms;
  const settings = settingsFor(dataDir, standIn);
  const artseal = async (...words: readonly string[]) => {
    const { code, printed, errors } = await runHere(words, settings);
    assert.equal(code, 0, errors.join('\n'));
    return printed;
  };
  const party = (...words: readonly string[]) => artseal('party', ...words);
  const parties = join(dataDir, 'parties.json');
  writeFileSync(parties, JSON.stringify(partiesOfBefore));
  await party('import', parties, '--platform', platform.caller);
  const service = await serveWatched(t, settings);
  let log = '';
  service.child.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  const order = async (escrowId: string) =>
    (await send(service.publicUrl, platform, { target: `/api/v1/escrow/${escrowId}` })).json;
  const file = async (by = platform) => (await fileArtwork(service, by)).json.filingNo as string;
  const intentOf = (escrowId: string) =>
    standIn.intents.find(({ metadata }) => metadata.artseal_escrow === escrowId) ?? assert.fail(escrowId);
  let events = 0;
  return {
    ...{ standIn, service, platform, other, artseal, party, order, file, intentOf, settings },
    log: () => log,
    open: async (terms: object = {}) => openEscrow(service, platform, await file(), { amount, ...terms }),
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
  const { standIn, service, platform, order, open, resolve, becomes, notify, intentOf } = at;

  await t.test('reserves the amount on the account of the seller, and pays it out there', async () => {
    const filingNo = await at.file();
    const opened = await openEscrow(service, platform, filingNo, { amount });
    assert.equal(opened.status, 200, opened.text);
    const { escrowId } = opened.json;
    const intent = intentOf(escrowId);
    assert.deepEqual([intent.status, intent.account], ['requires_capture', 'acct_1']);
    const { holdExpiresAt } = await order(escrowId);
    assert.equal(Date.parse(holdExpiresAt) / 1000, intent.created + 7 * 24 * 3600);
    const released = await resolve(escrowId, 'release');
    assert.equal(released.json.state, 'RELEASED', released.text);
    assert.equal(intent.status, 'succeeded');
    const { records } = (await askProvenance(service, platform, filingNo)).json;
    assert.equal(records.length, 2);
  });

  await t.test('gives back what is refunded', async () => {
    const { escrowId } = (await open({ sellerId: 'seller-2' })).json;
    const refunded = await resolve(escrowId, 'refund');
    assert.equal(refunded.json.state, 'REFUNDED', refunded.text);
    const { status, account } = intentOf(escrowId);
    assert.deepEqual([status, account], ['canceled', 'acct_2']);
  });

  await t.test(
    'declines in words for the buyer, and at once where Stripe knows no such customer',
    async () => {
      const stolen = await open({ buyerId: 'buyer-2' });
      assertRejected(stolen, 402, 'PAYMENT_DECLINED', /declined the FREEZE/, /without saying why/);
      assert.doesNotMatch(stolen.text, /stolen|cus_|4242/);
      const gone = await open({ buyerId: 'buyer-4' });
      assertRejected(gone, 402, 'PAYMENT_DECLINED', /does not take this payment/);
    },
  );

  await t.test("rejects amounts outside Stripe's bounds before any request", async () => {
    const before = standIn.requests.length;
    const unknown = await open({ buyerId: 'nobody', sellerId: 'no one' });
    assertRejected(unknown, 400, 'VALIDATION_FAILED', /buyerId is not known/, /sellerId is not known/);
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

    const other = (await open({ buyerId: 'buyer-3' })).json;
    standIn.authenticate(intentOf(other.escrowId).id, false);
    await notify('payment_intent.payment_failed', intentOf(other.escrowId));
    await becomes(other.escrowId, 'CLOSED');
  });

  await t.test(
    'finds by asking what an answer would have said, and is not held up by a saved 500',
    async () => {
      standIn.failNext(/^POST .*payment_intents$/, 'lose-answer');
      const made = standIn.intents.length;
      const pending = await open();
      assertRejected(pending, 503, 'PAYMENT_PENDING');
      const escrowId = escrowIdIn(pending);
      await becomes(escrowId, 'FROZEN');
      assert.equal(standIn.intents.length, made + 1);
      standIn.failNext(/capture$/, 'fail-and-save');
      assertRejected(await resolve(escrowId, 'release'), 503, 'PAYMENT_PENDING');
      await becomes(escrowId, 'RELEASED');
      assert.equal(intentOf(escrowId).amount_received, amount);
    },
  );

  await t.test('looks up the order of a notification, and ignores its content', async () => {
    const { escrowId } = (await open()).json;
    const intent = intentOf(escrowId);
    const asked = standIn.requests.length;
    // It claims what is not so.
    assert.equal((await notify('payment_intent.canceled', intent)).status, 200);
    await eventually('Stripe is asked', settledWithinMs, () => standIn.requests.length > asked);
    assert.equal((await order(escrowId)).state, 'FROZEN');
    standIn.expire(intent.id);
    assert.equal((await notify('payment_intent.canceled', intent)).status, 200);
    await becomes(escrowId, 'CLOSED');
    const headers = { 'Stripe-Signature': 't=1,v1=00' };
    const address = `${service.publicUrl}/payment/notifications`;
    const forged = await fetch(address, { method: 'POST', headers, body: '{}' });
    assert.equal(forged.status, 401);
    assert.equal(((await forged.json()) as { code: string }).code, 'SIGNATURE_INVALID');
  });

  await t.test(
    'needs review if the seller captures, and is no sale until an operator accepts it',
    async () => {
      const filingNo = await at.file();
      const { escrowId } = (await openEscrow(service, platform, filingNo, { amount })).json;
      const intent = intentOf(escrowId);
      standIn.captureAsSeller(intent.id, { artseal_captured: 'yes' });
      assert.equal((await notify('payment_intent.succeeded', intent)).status, 200);
      await eventually('the order waits for a person', settledWithinMs, async () => {
        const waiting = await at.artseal('escrow', 'list', '--review');
        return waiting.some((line) => line.includes(escrowId) && /FROZEN; .* says PAID_OUT/.test(line));
      });
      assert.equal((await order(escrowId)).state, 'FROZEN');
      const events = async () => {
        const { records } = (await askProvenance(service, platform, filingNo)).json;
        return records.map(({ event }: { event: string }) => event);
      };
      assert.deepEqual(await events(), ['SUBMITTED']);
      assertRejected(
        await resolve(escrowId, 'release'),
        409,
        'ESCROW_STATE_CONFLICT',
        /decision of the operator/,
      );
      await at.artseal('escrow', 'resolve', escrowId, '--accept', '--reason', 'the gallery agrees');
      await becomes(escrowId, 'RELEASED');
      assert.deepEqual(await events(), ['SUBMITTED', 'TRANSFER']);
    },
  );

  await t.test('appends to the history what becomes of the money after a release', async () => {
    const { escrowId } = (await open()).json;
    await resolve(escrowId, 'release');
    const { id, latest_charge: charge } = intentOf(escrowId);
    const recorded = async (payment: string) =>
      eventually(`${escrowId} has ${payment}`, settledWithinMs, async () => {
        const { history, state } = await order(escrowId);
        return state === 'RELEASED' && history.at(-1).payment === payment;
      });
    standIn.refund(id, 1);
    assert.equal((await notify('charge.refunded', { ...charge })).status, 200);
    await recorded('PARTLY_RETURNED');
    assert.equal((await order(escrowId)).history.at(-1).left, amount - 1);
    const dispute = standIn.dispute(id, amount - 1);
    assert.equal((await notify('charge.dispute.created', dispute)).status, 200);
    await recorded('DISPUTED');
    dispute.status = 'lost';
    assert.equal((await notify('charge.dispute.closed', dispute)).status, 200);
    await recorded('RETURNED');
  });

  await t.test('says what to change where another kind of event is sent', async () => {
    const [intent = assert.fail()] = standIn.intents;
    for (const [more, said] of [
      [{ livemode: true }, /is of live mode/],
      [{ object: 'v2.core.event' }, /is a thin event/],
      [{ api_version: '2020-08-27' }, /API version 2020-08-27/],
    ] as const) {
      const refused = await notify('payment_intent.succeeded', intent, more);
      assert.equal(refused.status, 400);
      const { code, message } = (await refused.json()) as { code: string; message: string };
      assert.equal(code, 'VALIDATION_FAILED');
      assert.match(message, said);
      await eventually('it is logged', settledWithinMs, () =>
        linesOf(at.log()).some(({ level, why }) => level === 40 && said.test(String(why))),
      );
    }
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

test('an order whose account at Stripe is gone is ended by an operator, with evidence', {
  timeout: 300_000,
}, async (t) => {
  const { standIn, service, platform, order, file, resolve, settings } = await servedByStripe(t);
  const letter = join(settings.ARTSEAL_DATA_DIR, 'letter.eml');
  writeFileSync(letter, 'The account was closed. Its customer has the money back.');
  // sha256sum letter.eml
  const digest = '43da80e2f210830539062fa1c51ed1b9ff7b0def9afb803f52628f5ceeff73ac';
  const run = (...words: string[]) => runCommand(words, settings);
  const decide = (escrowId: string, ...words: string[]) =>
    run('escrow', 'resolve', escrowId, ...words, '--reason', 'letter of 3 March');
  const sell = async (filingNo: string, sellerId: string) =>
    (await openEscrow(service, platform, filingNo, { amount, sellerId })).json;
  const eventsOf = async (filingNo: string) =>
    (await askProvenance(service, platform, filingNo)).json.records.map(
      ({ event }: { event: string }) => event,
    );
  const sales = [];
  for (const end of ['REFUNDED', 'RELEASED'] as const) {
    const filingNo = await file();
    const { escrowId, state } = await sell(filingNo, 'seller-1');
    assert.equal(state, 'FROZEN');
    sales.push({ end, filingNo, escrowId });
  }
  standIn.accounts.delete('acct_1');

  for (const { end, filingNo, escrowId } of sales) {
    assertRejected(await resolve(escrowId, 'refund'), 503, 'PAYMENT_PENDING');
    assert.equal((await decide(escrowId, '--stop')).code, 0);
    assert.match((await decide(escrowId, '--accept')).stderr, /has not reported a status of/);
    assert.match((await decide(escrowId, '--close')).stderr, /only an UNPAID order can be closed/);
    const again = await openEscrow(service, platform, filingNo, { amount, sellerId: 'seller-2' });
    assertRejected(again, 409, 'ESCROW_ACTIVE');

    const ended = await decide(escrowId, '--end', end, '--evidence', letter);
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, new RegExp(`^${escrowId}  ${end} .*decided by an operator`));
    const { history, pending, state } = await order(escrowId);
    assert.deepEqual([state, pending], [end, undefined]);
    const [, frozen, last] = history;
    assert.deepEqual([frozen.byOperator, last.state, last.byOperator], [undefined, end, true]);
    assert.deepEqual(
      await eventsOf(filingNo),
      end === 'RELEASED' ? ['SUBMITTED', 'TRANSFER'] : ['SUBMITTED'],
    );
    assert.equal((await sell(filingNo, 'seller-2')).state, 'FROZEN', 'it can be sold again');
    const [act] = (await run('audit-log', '--json')).stdout
      .split('\n')
      .map((line) => JSON.parse(line || '{}'));
    assert.partialDeepStrictEqual(act, {
      ...{ action: 'escrow resolve', subject: escrowId, reason: 'letter of 3 March' },
      before: { state: 'FROZEN', review: 'An operator stopped it.' },
      after: { state: end, decision: 'END', evidence: digest, underWay: [] },
    });
  }
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

test('a sandbox with open orders of the simulated provider does not start with Stripe', async (t) => {
  const dataDir = temporaryFolder(t);
  const { platforms } = await issueInto(dataDir, 1);
  const [platform = assert.fail()] = platforms;
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir });
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

test('a platform charges its own parties alone, from the moment that they are registered', {
  timeout: 300_000,
}, async (t) => {
  const { standIn, service, platform, other, party, file } = await servedByStripe(t);
  const filingNo = await file(other);
  const open = (buyerId = 'buyer-1', sellerId = 'seller-1') =>
    openEscrow(service, other, filingNo, { amount, buyerId, sellerId });
  const foreign = await open();
  assertRejected(foreign, 400, 'VALIDATION_FAILED', /buyerId is not known/, /sellerId is not known/);
  assert.equal((await open('nobody', 'no one')).json.message, foreign.json.message);
  // Whether the key is accepted is asked by a list of nobody's.
  assert.deepEqual(
    standIn.requests.filter(({ method }) => method !== 'GET'),
    [],
  );
  const own = (role: string, id: string) => ['--platform', other.caller, '--role', role, '--id', id];
  await party(
    'add',
    ...own('buyer', 'buyer-1'),
    '--provider-ids',
    `customer=cus_2,paymentMethod=${cards.good}`,
  );
  await party('add', ...own('seller', 'seller-1'), '--provider-ids', 'account=acct_2');
  const opened = await open();
  assert.equal(opened.status, 200, opened.text);
  assert.deepEqual(
    standIn.intents.map(({ account }) => account),
    ['acct_2'],
  );
  const mine = await openEscrow(service, platform, await file(), { amount });
  assert.equal(mine.status, 200, mine.text);
  assert.equal(standIn.intents.at(-1)?.account, 'acct_1');

  await party('remove', ...own('buyer', 'buyer-1'));
  const target = `/api/v1/escrow/${opened.json.escrowId}/release`;
  const released = await send(service.publicUrl, other, { method: 'POST', target, body: '' });
  assert.equal(released.json.state, 'RELEASED', released.text);
  assertRejected(await open(), 400, 'VALIDATION_FAILED', /^buyerId is not known/);
});
