import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { askProvenance, escrowIdIn, fileArtwork, openEscrow } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { type MangopayStandIn, startMangopayStandIn } from '../support/mangopay-stand-in.ts';
import { assertRejected } from '../support/rejected.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runCommand, serveWatched } from '../support/watched-command.ts';

const settledWithinMs = 60_000;
const amount = 1_280_000;
const holdRequest = /^POST \/transfers$/;

/** The settings of a deployment whose provider is Mangopay; `standIn` takes its place. */
function settingsFor(folder: string, standIn: MangopayStandIn) {
  return {
    ARTSEAL_DATA_DIR: folder,
    ARTSEAL_CURRENCY: 'EUR',
    ARTSEAL_PAYMENT_PROVIDER: 'mangopay',
    ARTSEAL_MANGOPAY_CLIENT_ID: standIn.clientId,
    ARTSEAL_MANGOPAY_API_KEY: standIn.apiKey,
    ARTSEAL_MANGOPAY_ESCROW_USER: standIn.escrowUser,
    ARTSEAL_MANGOPAY_HOOK_SECRET: standIn.hookSecret,
    ARTSEAL_MANGOPAY_URL: standIn.url,
  };
}

/** A deployment at Mangopay whose platform has registered its parties, not yet served. */
async function deployed(t: TestContext) {
  const standIn = await startMangopayStandIn(t);
  const settings = settingsFor(temporaryFolder(t), standIn);
  const { platforms } = await issueInto(settings.ARTSEAL_DATA_DIR, 1, { ARTSEAL_CURRENCY: 'EUR' });
  const [platform = assert.fail()] = platforms;
  const buyers = {
    'buyer-1': standIn.party('PAYER', 'EUR', 100 * amount),
    'buyer-2': standIn.party('PAYER', 'EUR', amount - 1),
    'buyer-3': standIn.party('OWNER', 'EUR', 100 * amount),
  };
  const seller = standIn.party('OWNER', 'EUR', 0);
  const { wallet } = standIn.party('OWNER', 'EUR', 0);
  const sellers = { 'seller-1': seller, mistyped: { ...seller, wallet } };
  const file = join(settings.ARTSEAL_DATA_DIR, 'parties.json');
  writeFileSync(file, JSON.stringify({ buyers, sellers }));
  const registered = await runCommand(['party', 'import', file, '--platform', platform.caller], settings);
  assert.equal(registered.code, 0, registered.stderr);
  const parties = { ...buyers, ...sellers };
  standIn.askToAuthenticate(parties['buyer-3'].user);
  const balance = (party: keyof typeof parties) =>
    standIn.wallets.find(({ Id }) => Id === parties[party].wallet)?.Balance.Amount;
  return { standIn, settings, platform, balance };
}

type Deployed = Awaited<ReturnType<typeof deployed>>;

/** The real command for it. */
async function served(t: TestContext, { settings, platform, standIn }: Deployed) {
  const service = await serveWatched(t, settings);
  let log = '';
  service.child.stderr?.on('data', (chunk) => {
    log += chunk;
  });
  service.child.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  const order = async (escrowId: string) =>
    (await send(service.publicUrl, platform, { target: `/api/v1/escrow/${escrowId}` })).json;
  let hooks = 0;
  return {
    ...service,
    order,
    log: () => log,
    file: async () => (await fileArtwork(service, platform)).json.filingNo as string,
    open: (filingNo: string, more: object = {}) =>
      openEscrow(service, platform, filingNo, { amount, ...more }),
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
    hook: (eventType: string, resourceId: string, secret = standIn.hookSecret) => {
      hooks += 1;
      const query = `secret=${secret}&EventType=${eventType}&RessourceId=${resourceId}&Date=${hooks}`;
      return fetch(`${service.publicUrl}/payment/notifications?${query}`);
    },
  };
}

test('orders at Mangopay, from the opening to what follows a release', { timeout: 300_000 }, async (t) => {
  const deployment = await deployed(t);
  const { standIn, platform, balance } = deployment;
  const service = await served(t, deployment);

  await t.test('held, and given back', async () => {
    const opened = await service.open(await service.file());
    assert.equal(opened.status, 200, opened.text);
    assert.equal(balance('buyer-1'), 99 * amount);
    const refunded = await service.resolve(opened.json.escrowId, 'refund');
    assert.equal(refunded.json.state, 'REFUNDED', refunded.text);
    assert.equal(balance('buyer-1'), 100 * amount);
  });

  await t.test('declined for want of money, and refused with parties that nobody knows', async () => {
    const filingNo = await service.file();
    const declined = await service.open(filingNo, { buyerId: 'buyer-2' });
    assertRejected(declined, 402, 'PAYMENT_DECLINED', /wallet does not hold enough money/);
    const unknown = await service.open(filingNo, { buyerId: 'nobody', sellerId: 'no one' });
    assertRejected(unknown, 400, 'VALIDATION_FAILED', /buyerId is not known/, /sellerId is not known/);
  });

  await t.test(
    "refused for a seller's wallet that is of somebody else, and opened with one that is right",
    async () => {
      const filingNo = await service.file();
      const before = balance('buyer-1');
      const wrong = await service.open(filingNo, { sellerId: 'mistyped' });
      assertRejected(wrong, 402, 'PAYMENT_DECLINED', /seller's wallet wlt_m_\w+ is not a wallet of the user/);
      assert.equal((await service.order(escrowIdIn(wrong))).state, 'CLOSED');
      assert.equal(balance('buyer-1'), before);
      const { escrowId } = (await service.open(filingNo)).json;
      assert.equal((await service.resolve(escrowId, 'refund')).json.state, 'REFUNDED');
    },
  );

  await t.test('a look-up finds what a lost response said', async () => {
    standIn.failNext(holdRequest, 'lose-answer');
    const pending = await service.open(await service.file());
    assertRejected(pending, 503, 'PAYMENT_PENDING');
    const escrowId = escrowIdIn(pending);
    await service.becomes(escrowId, 'FROZEN');
    assert.equal((await service.resolve(escrowId, 'refund')).json.state, 'REFUNDED');
    assert.equal(balance('buyer-1'), 100 * amount);
  });

  await t.test('a buyer who has to authenticate is sent there, and a hook says when', async () => {
    const waiting = await service.open(await service.file(), { buyerId: 'buyer-3' });
    assert.equal(waiting.status, 200, waiting.text);
    assert.equal(waiting.json.state, 'UNPAID');
    const { Id } = standIn.transfers.at(-1) ?? assert.fail();
    assert.equal(waiting.json.nextAction?.url, `https://sca.sandbox.mangopay.com/?token=sca_${Id}`);
    standIn.authenticated(Id, true);
    assert.equal((await service.hook('TRANSFER_NORMAL_SUCCEEDED', Id)).status, 200);
    await service.becomes(waiting.json.escrowId, 'FROZEN');
    assert.equal((await service.resolve(waiting.json.escrowId, 'refund')).json.state, 'REFUNDED');
  });

  await t.test('a hook leads to a look-up, a forged one to nothing', async () => {
    const filingNo = await service.file();
    const { escrowId } = (await service.open(filingNo)).json;
    const { Id } = standIn.transfers.at(-1) ?? assert.fail();
    const asked = standIn.requests.length;
    // It claims what is not so.
    assert.equal((await service.hook('TRANSFER_NORMAL_FAILED', Id)).status, 200);
    await eventually('Mangopay is asked', settledWithinMs, () => standIn.requests.length > asked);
    const forged = await service.hook('TRANSFER_NORMAL_FAILED', Id, 'x'.repeat(40));
    assert.equal(forged.status, 401);
    assert.equal(((await forged.json()) as { code: string }).code, 'SIGNATURE_INVALID');
    assert.equal((await service.order(escrowId)).state, 'FROZEN');
    const released = await service.resolve(escrowId, 'release');
    assert.equal(released.json.state, 'RELEASED', released.text);
    assert.equal(balance('seller-1'), amount);
    const { records } = (await askProvenance(service, platform, filingNo)).json;
    assert.equal(records.length, 2);
  });

  await t.test('a seller who pays back after the release: the order needs a person', async () => {
    const release = standIn.transfers.at(-1)?.Id ?? assert.fail();
    const { Id } = standIn.refundOutside(release);
    assert.equal((await service.hook('TRANSFER_REFUND_SUCCEEDED', Id)).status, 200);
    await eventually('the order needs a person', settledWithinMs, async () => {
      const { stdout } = await runCommand(['escrow', 'list', '--review'], deployment.settings);
      return /PARTLY_RETURNED/.test(stdout);
    });
  });

  await t.test(
    'a buyer who contests their pay-in: no release, and a person for what was released',
    async () => {
      const { Id: payIn } = standIn.payIns[0] ?? assert.fail();
      const [released, held] = [await service.file(), await service.file()];
      const { escrowId } = (await service.open(released)).json;
      assert.equal((await service.resolve(escrowId, 'release')).json.state, 'RELEASED');
      const open = (await service.open(held)).json.escrowId;
      const { Id: dispute } = standIn.dispute(payIn);
      assert.equal((await service.hook('DISPUTE_CREATED', dispute)).status, 200);
      await eventually('the order needs a person', settledWithinMs, async () => {
        const { stdout } = await runCommand(['escrow', 'list', '--review'], deployment.settings);
        return stdout.includes(escrowId) && /DISPUTED/.test(stdout);
      });
      const refused = await service.resolve(open, 'release');
      assertRejected(refused, 402, 'PAYMENT_DECLINED', /The buyer contests a payment/);
      standIn.endDispute(dispute, 'WON');
      assert.equal((await service.hook('DISPUTE_CLOSED', dispute)).status, 200);
      assert.equal((await service.resolve(open, 'release')).json.state, 'RELEASED');
    },
  );

  await t.test('staff who move the money elsewhere stop the order, which is no sale', async () => {
    const elsewhere = standIn.party('OWNER', 'EUR', 0);
    const heldFor = async () => {
      const filingNo = await service.file();
      const { escrowId } = (await service.open(filingNo)).json;
      return { filingNo, escrowId, hold: standIn.transfers.at(-1) ?? assert.fail() };
    };
    const needsPerson = async (escrowId: string) => {
      const { stdout } = await runCommand(['escrow', 'list', '--review', '--json'], deployment.settings);
      return stdout.includes(escrowId);
    };
    const [looked, released] = [await heldFor(), await heldFor()];
    for (const { hold } of [looked, released]) {
      standIn.transferOutside(hold.CreditedWalletId ?? '', elsewhere.wallet, amount, hold.Tag ?? '');
    }
    // Mangopay is asked for whatever reason.
    assert.equal((await service.hook('TRANSFER_NORMAL_SUCCEEDED', looked.hold.Id)).status, 200);
    await eventually('the order stops', settledWithinMs, () => needsPerson(looked.escrowId));
    const refused = await service.resolve(released.escrowId, 'release');
    assertRejected(refused, 402, 'PAYMENT_DECLINED', /left its wallet by other means than this service/);
    assert.equal(await needsPerson(released.escrowId), true);
    for (const { filingNo, escrowId } of [looked, released]) {
      assert.equal((await service.order(escrowId)).state, 'FROZEN');
      const { records } = (await askProvenance(service, platform, filingNo)).json;
      assert.deepEqual(
        records.map(({ event }: { event: string }) => event),
        ['SUBMITTED'],
      );
    }
    assert.match(service.log(), /took 1280000 EUR to wallet wlt_m_\w+, which is not the seller's/);
  });

  assert.equal(await service.stop('SIGTERM'), 0);
  assert.match(service.log(), /payment notification/);
  for (const secret of [standIn.hookSecret, standIn.apiKey, 'token-1']) {
    assert.ok(!service.log().includes(secret), secret);
  }
});

test('killed while money moves: it moves once, and the order goes on', { timeout: 300_000 }, async (t) => {
  const deployment = await deployed(t);
  const { standIn, platform, balance } = deployment;
  const arrived = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  t.after(() => gate.resolve());
  const heldUp = {
    until: () => {
      arrived.resolve();
      return gate.promise;
    },
  };
  const first = await served(t, deployment);
  const filingNo = await first.file();
  const { escrowId } = (await first.open(filingNo)).json;
  standIn.failNext(holdRequest, heldUp);
  const unanswered = first.resolve(escrowId, 'release').catch(() => undefined);
  await arrived.promise;
  await first.stop('SIGKILL');
  await unanswered;

  const second = await served(t, deployment);
  assert.equal((await second.order(escrowId)).state, 'FROZEN');
  gate.resolve();
  await second.becomes(escrowId, 'RELEASED');
  assert.equal(balance('seller-1'), amount);
  assert.equal(balance('buyer-1'), 99 * amount);
  const { records } = (await askProvenance(second, platform, filingNo)).json;
  assert.equal(records.length, 2);
});
