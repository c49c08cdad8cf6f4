import assert from 'node:assert/strict';
import type { RegistryMetrics } from '../../../src/store/metric-commands.ts';
import type { StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { tester } from '../../support/audit-log.ts';
import { resultOf } from './endpoints.ts';
import { newKey, noon, nowS, states, time, toOpen } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const later = time('2026-11-21T13:00:00+00:00');

const metricsOf = (store: TestStore, nowMs = noon.atMs, year = 2026): Promise<RegistryMetrics> =>
  store.perform({ kind: 'ReadMetrics', nowMs, year });

/** How many orders are in each state, by what the metrics say. */
function countsOf({ openOrders, settledOrders }: RegistryMetrics): Record<string, number> {
  const open = openOrders.map(({ state, counts }) => [state, counts.reduce((sum, count) => sum + count, 0)]);
  return { ...Object.fromEntries(open), ...settledOrders };
}

/** Has an endpoint take what there is to send by a time, and each of it be answered, or refused until another time. */
async function attempted(store: TestStore, webhook: StoredWebhook, atMs: number, retryAtMs: number | null) {
  const { due } = await store.claim(webhook, atMs);
  const isDelivered = retryAtMs === null;
  const outcomes = due.map(({ event: { sequence }, attempts }) =>
    resultOf(webhook, sequence, { attempts: attempts + 1, atMs, retryAtMs, isDelivered }),
  );
  await store.perform({ kind: 'RecordAttempts', outcomes });
}

const webhooksOf = async (store: TestStore) => (await metricsOf(store)).webhooks;

const noWebhooks = { healthy: 0, failing: 0, disabled: 0, pending: 0, waiting: 0 };

/** What operators watch. */
export function metricPromises({ test }: StoreTests): void {
  test('issued numbers are counted by year', async (store) => {
    const by = store.gallery;
    const filingNo = await store.fileOne(by);
    await store.fileOne(by, time('2027-01-01T00:00:00+00:00'));
    await store.acceptClock(noon);
    await store.fileOne(by);
    await store.opened(by, filingNo);
    const { filingNumbers, escrowNumbers } = await metricsOf(store);
    assert.deepEqual([filingNumbers, escrowNumbers], [2, 1]);
    const next = await metricsOf(store, noon.atMs, 2027);
    assert.deepEqual([next.filingNumbers, next.escrowNumbers], [1, 0]);
  });

  test('metrics name the platform that has used most of its filing cap', async (store) => {
    await store.addPlatform('without a cap');
    const [large, small] = [await store.addPlatform('large'), await store.addPlatform('small')];
    const cap = (name: string, filingCap: number) => {
      const change = { tier: undefined, monthlyQuota: undefined, unlimited: false, filingCap };
      return store.perform({ kind: 'ChangeAgreement', by: tester, name, change });
    };
    await cap('large', 1_000);
    assert.deepEqual((await metricsOf(store)).nearestCap, { platform: 'large', filings: 0, cap: 1_000 });
    await cap('small', 4);
    for (const by of [large, large, small]) await store.fileOne(by);
    assert.deepEqual((await metricsOf(store)).nearestCap, { platform: 'small', filings: 1, cap: 4 });
    const next = await metricsOf(store, noon.atMs, 2027);
    assert.equal(next.nearestCap?.filings, 0);
  });

  test('each order counts in its current state', async (store) => {
    for (const state of ['RELEASED', 'CLOSED', 'REFUNDED', 'RELEASED'] as const)
      await store.orderIn(store.gallery, state);
    assert.deepEqual(countsOf(await metricsOf(store)), {
      ...{ UNPAID: 0, FROZEN: 0, RELEASED: 2, REFUNDED: 1, CLOSED: 1 },
    });
    const first = await store.orderIn(store.gallery, 'UNPAID');
    for (const state of states) await store.orderIn(store.gallery, state);
    const counted = { UNPAID: 2, FROZEN: 1, RELEASED: 3, REFUNDED: 2, CLOSED: 2 };
    assert.deepEqual(countsOf(await metricsOf(store)), counted);
    await store.settled(first.escrowId, { to: 'FROZEN' });
    assert.deepEqual(countsOf(await metricsOf(store)), { ...counted, UNPAID: 1, FROZEN: 2 });
    await store.settled(first.escrowId, { to: 'CLOSED' });
    for (let again = 0; again < 2; again += 1) {
      assert.deepEqual(countsOf(await metricsOf(store)), { ...counted, UNPAID: 1, CLOSED: 3 });
    }
  });

  test('open orders are grouped by age', async (store) => {
    const filingNo = () => store.fileOne(store.gallery);
    const openAgo = async (seconds: number) => {
      const at = { ...noon, atMs: noon.atMs - seconds * 1_000 };
      return store.perform(toOpen(store.gallery, await filingNo(), { at }));
    };
    // The last one was opened while the clock was ahead.
    const agesS = [2_000_000, 604_801, 604_800, 604_799, 86_401, 3_601, 700, 601, 600, 599, 0, -90_000];
    for (const age of agesS) await openAgo(age);
    const [unpaid, held] = (await metricsOf(store)).openOrders;
    assert.deepEqual(unpaid, { state: 'UNPAID', counts: [3, 3, 1, 2, 3] });
    assert.deepEqual(held?.counts, [0, 0, 0, 0, 0]);
  });

  test('metrics count the orders in review and have the next due time', async (store) => {
    const [first, second] = [await store.opened(store.gallery), await store.opened(store.gallery)];
    await store.settled(first.escrowId, { to: 'FROZEN', lookUpAtMs: noon.atMs + 5_000 });
    await store.settled(second.escrowId, { to: 'FROZEN', lookUpAtMs: noon.atMs + 7_000 });
    assert.equal((await metricsOf(store)).nextLookUpAtMs, noon.atMs + 5_000);
    await store.stopped(first.escrowId);
    const { ordersInReview, nextLookUpAtMs } = await metricsOf(store);
    assert.deepEqual([ordersInReview, nextLookUpAtMs], [1, noon.atMs + 7_000]);
  });

  test('holds of FROZEN orders that expire within a day are counted', async (store) => {
    const endsAfter = async (ms: number) => {
      const { escrowId } = await store.opened(store.gallery);
      const holdExpiresAtMs = noon.atMs + ms;
      await store.settled(escrowId, { to: 'FROZEN', holdExpiresAtMs });
      const { order } = await store.caseOf(escrowId);
      assert.equal(order.holdExpiresAtMs, holdExpiresAtMs);
      return escrowId;
    };
    await endsAfter(86_401_000);
    const ending = await endsAfter(86_400_000);
    assert.equal((await metricsOf(store)).holdsEnding, 1);
    await store.settled(ending, { to: 'RELEASED' });
    assert.equal((await metricsOf(store)).holdsEnding, 0);
    assert.equal((await store.caseOf(ending)).order.holdExpiresAtMs, undefined);
  });

  test('holds that expire are counted by the advanced clock of a sandbox, and keys by the real time', async (store) => {
    const { escrowId } = await store.opened(store.gallery);
    await store.settled(escrowId, { to: 'FROZEN', holdExpiresAtMs: noon.atMs + 7 * 86_400_000 });
    await store.perform({ kind: 'AdvanceClock', by: tester, seconds: 6 * 86_400 });
    const { holdsEnding, keysEnding, openOrders } = await metricsOf(store);
    assert.equal(holdsEnding, 1);
    // Opened at noon, six days before the time of the sandbox.
    assert.deepEqual(openOrders.find(({ state }) => state === 'FROZEN')?.counts, [0, 0, 0, 1, 0]);
    assert.deepEqual(new Set(keysEnding), new Set([0]));
  });

  test('open instructions are grouped by kind and status', async (store) => {
    const [silent] = [await store.opened(store.gallery), await store.opened(store.gallery)];
    const { escrowId, holdId: instructionId } = silent;
    await store.recordSent(instructionId);
    for (let attempt = 0; attempt < 3; attempt += 1) await store.unanswered(escrowId, 1);
    const { openInstructions } = await metricsOf(store);
    const sorted = openInstructions.toSorted((one, other) => one.status.localeCompare(other.status));
    const atFirst = { kind: 'FREEZE', count: 1, oldestAtMs: noon.atMs };
    assert.deepEqual(sorted, [
      { ...atFirst, status: 'PREPARED', failedAttempts: 0 },
      { ...atFirst, status: 'UNKNOWN', failedAttempts: 3 },
    ]);
  });

  test('keys that end within a day and within a week are counted', async (store) => {
    for (const [place, inS] of [-1, 0, 86_400, 86_401, 604_801].entries()) {
      const { keyId } = await store.addPlatform(`gallery ${place}`);
      await store.rotateKey(keyId, newKey({ createdAtS: nowS - 10 }), nowS + inS);
    }
    assert.deepEqual((await metricsOf(store, nowS * 1_000)).keysEnding, [1, 2]);
  });

  test('events of all callers are counted together', async (store) => {
    for (const name of ['museum', 'auction house']) {
      const by = await store.addPlatform(name);
      await store.fileOne(by);
      await store.fileOne(by);
    }
    assert.equal((await metricsOf(store)).newestEvent, 4);
  });

  test('webhooks count as healthy, failing or disabled, with the start of the longest failure', async (store) => {
    const by = store.gallery;
    const [first, second, third] = [
      await store.addWebhook(by),
      await store.addWebhook(by),
      await store.addWebhook(by),
    ];
    assert.equal((await webhooksOf(store)).healthy, 3);
    await store.fileOne(by);
    await attempted(store, first, noon.atMs + 5_000, null);
    await attempted(store, second, noon.atMs + 9_000, noon.atMs + 20_000);
    await attempted(store, third, noon.atMs + 7_000, noon.atMs + 20_000);
    const counts = await webhooksOf(store);
    assert.deepEqual([counts.healthy, counts.failing, counts.disabled], [1, 2, 0]);
    assert.equal(counts.failingSinceS, noon.atMs / 1_000 + 7);
    const { webhookId } = third;
    const change = { status: 'DISABLED' as const };
    await store.perform({ kind: 'ChangeWebhook', webhookId, owner: undefined, change });
    const without = await webhooksOf(store);
    assert.deepEqual([without.healthy, without.failing, without.disabled], [1, 1, 1]);
    assert.equal(without.failingSinceS, noon.atMs / 1_000 + 9);
  });

  test('pending and waiting deliveries are counted separately', async (store) => {
    const webhook = await store.addWebhook(store.gallery);
    const { escrowId } = await store.opened(store.gallery);
    for (const to of ['FROZEN', 'RELEASED'] as const) await store.settled(escrowId, { to });
    await attempted(store, webhook, noon.atMs, noon.atMs + 5_000);
    const { pending, waiting } = await webhooksOf(store);
    // The filing and the order being FROZEN; its release and the transfer wait for these.
    assert.deepEqual([pending, waiting], [2, 2]);
    await store.perform({ kind: 'DeleteWebhook', webhookId: webhook.webhookId, owner: undefined });
    assert.deepEqual(await webhooksOf(store), {
      ...noWebhooks,
      failingSinceS: undefined,
      waitsSinceMs: undefined,
    });
  });

  test('metrics have the time since which healthy webhooks have events to send', async (store) => {
    const other = await store.addPlatform('auction house');
    const [first, second] = [await store.addWebhook(store.gallery), await store.addWebhook(other)];
    const waitsSinceMs = async () => (await webhooksOf(store)).waitsSinceMs;
    assert.equal(await waitsSinceMs(), undefined);
    await store.fileOne(store.gallery);
    await store.fileOne(other, later);
    assert.equal(await waitsSinceMs(), noon.atMs);
    await attempted(store, first, later.atMs, null);
    assert.equal(await waitsSinceMs(), later.atMs);
    const takenMs = later.atMs + 4_000;
    await store.claim(second, takenMs);
    assert.equal(await waitsSinceMs(), takenMs);
    await attempted(store, second, takenMs + 1_000, takenMs + 6_000);
    // A failing endpoint does not count.
    assert.equal(await waitsSinceMs(), undefined);
    await store.fileOne(other, later);
    await attempted(store, second, takenMs + 2_000, null);
    assert.equal(await waitsSinceMs(), takenMs + 6_000);
  });

  test('the store counts its transactions, nonces and the bytes of its files', async (store) => {
    const { id } = store.gallery;
    const before = await store.metrics();
    await Promise.all(['a', 'b', 'c'].map((nonce) => store.spend(id, nonce)));
    const { files, server, ...after } = await store.metrics();
    const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);
    for (const metric of ['transactionRequests', 'transactionSeconds', 'commitSeconds'] as const) {
      assert.equal(total(after[metric].counts) - total(before[metric].counts), 1, metric);
      assert.ok(after[metric].sum > before[metric].sum, metric);
    }
    assert.equal(after.transactionRequests.sum - before.transactionRequests.sum, 3);
    assert.equal(after.nonces - before.nonces, 3);
    assert.equal(after.requestsInFlight, 0);
    // Of a database server only some are known, and not at once.
    const sizes = Object.values(files ?? {}).filter((bytes) => server === undefined || bytes !== undefined);
    for (const bytes of sizes) assert.ok(bytes > 0);
    const submitted = [store.spend(id, 'd'), store.spend(id, 'e')];
    assert.equal((await Promise.all([store.metrics(), ...submitted]))[0].requestsInFlight, 2);
  });
}
