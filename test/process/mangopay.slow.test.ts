import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  askProvenance,
  fileArtwork,
  getEscrow,
  openEscrow,
  refundEscrow,
  releaseEscrow,
} from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto } from '../support/issued.ts';
import { type MangopayStandIn, startMangopayStandIn } from '../support/mangopay-stand-in.ts';
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
  const { platform } = await issueInto(settings.ARTSEAL_DATA_DIR, 1, { ARTSEAL_CURRENCY: 'EUR' });
  const buyers = {
    'buyer-1': standIn.party('PAYER', 'EUR', 100 * amount),
    'buyer-3': standIn.party('OWNER', 'EUR', 100 * amount),
  };
  const seller = standIn.party('OWNER', 'EUR', 0);
  const file = join(settings.ARTSEAL_DATA_DIR, 'parties.json');
  writeFileSync(file, JSON.stringify({ buyers, sellers: { 'seller-1': seller } }));
  const registered = await runCommand(['party', 'import', file, '--platform', platform.caller], settings);
  assert.equal(registered.code, 0, registered.stderr);
  const parties = { ...buyers, 'seller-1': seller };
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
  const order = async (escrowId: string) => (await getEscrow(service, platform, escrowId)).json;
  let hooks = 0;
  return {
    ...service,
    order,
    log: () => log,
    file: async () => (await fileArtwork(service, platform)).json.filingNo as string,
    open: (filingNo: string, more: object = {}) =>
      openEscrow(service, platform, filingNo, { amount, ...more }),
    release: (escrowId: string) => releaseEscrow(service, platform, escrowId),
    refund: (escrowId: string) => refundEscrow(service, platform, escrowId),
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

test('a deployment at Mangopay', { timeout: 300_000 }, async (t) => {
  const deployment = await deployed(t);
  const { standIn, platform, balance } = deployment;
  const service = await served(t, deployment);

  await t.test('holds the money of an order, and returns it', async () => {
    const opened = await service.open(await service.file());
    assert.equal(opened.status, 200, opened.text);
    assert.equal(balance('buyer-1'), 99 * amount);
    const refunded = await service.refund(opened.json.escrowId);
    assert.equal(refunded.json.state, 'REFUNDED', refunded.text);
    assert.equal(balance('buyer-1'), 100 * amount);
  });

  await t.test('sends a buyer to authenticate, and continues after the hook', async () => {
    const waiting = await service.open(await service.file(), { buyerId: 'buyer-3' });
    assert.equal(waiting.status, 200, waiting.text);
    assert.equal(waiting.json.state, 'UNPAID');
    const { Id } = standIn.transfers.at(-1) ?? assert.fail();
    assert.equal(waiting.json.nextAction?.url, `https://sca.sandbox.mangopay.com/?token=sca_${Id}`);
    standIn.authenticated(Id, true);
    assert.equal((await service.hook('TRANSFER_NORMAL_SUCCEEDED', Id)).status, 200);
    await service.becomes(waiting.json.escrowId, 'FROZEN');
    assert.equal((await service.refund(waiting.json.escrowId)).json.state, 'REFUNDED');
  });

  await t.test('looks an order up after a hook, and ignores a forged hook', async () => {
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
    const released = await service.release(escrowId);
    assert.equal(released.json.state, 'RELEASED', released.text);
    assert.equal(balance('seller-1'), amount);
    const { records } = (await askProvenance(service, platform, filingNo)).json;
    assert.equal(records.length, 2);
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
  const unanswered = first.release(escrowId).catch(() => undefined);
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
