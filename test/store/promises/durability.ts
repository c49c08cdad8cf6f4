import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import {
  addService,
  caseOf,
  crashCopy,
  fileOne,
  filingPages,
  findInstruction,
  findProvenance,
  frozen,
  isAdmitted,
  newToken,
  openGallery,
  openStore,
  refused,
  type StoreEngine,
  settlementOf,
  toFile,
  toResolve,
  updateOrder,
} from './fixtures.ts';

const nowS = 1_790_000_000;
const month = '2026-11';

/** Durability, and what a closed store does. */
export function durabilityPromises(engine: StoreEngine): void {
  test('a resolved request and what it read survive a crash', async (t) => {
    const { store, by, dataDir } = await openGallery(t, engine);
    const filed = perform(store, toFile(by));
    const seen = filingPages(store);
    await Promise.all([filed, seen]);
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual((await filingPages(crashed)).flat(), ['AS-2026-000001']);
  });

  test('a crash leaves all of a request or nothing, and the numbers continue from there', async (t) => {
    const { store, by, dataDir } = await openGallery(t, engine);
    const { escrowId, filingNo } = await frozen(store, by);
    const { instructionId } = await perform(store, toResolve(by, 'RELEASE', escrowId));
    const ended = [{ instructionId, status: 'CONFIRMED' }] as const;
    const change = settlementOf(await caseOf(store, escrowId), {
      to: 'RELEASED',
      reference: 'theirs',
      ended,
    });
    const underWay = [
      updateOrder(store, change),
      store.execute({
        admission: {
          nowS,
          nonce: { keyId: by.id, nonce: 'n' },
          quota: { callerId: by.callerId, month, limit: undefined, take: true },
        },
        effect: toFile(by),
      }),
    ];
    const copy = crashCopy(t, dataDir);
    await Promise.all(underWay);
    const crashed = await openStore(t, engine, copy);

    const { order, reference } = await caseOf(crashed, escrowId);
    const operation = await findInstruction(crashed, instructionId);
    const provenance = await findProvenance(crashed, filingNo);
    assert.deepEqual(
      [order.state, operation?.status, reference, provenance?.records.length],
      order.state === 'RELEASED'
        ? ['RELEASED', 'CONFIRMED', 'theirs', 2]
        : ['FROZEN', 'PREPARED', undefined, 1],
    );
    const filed = (await filingPages(crashed)).flat().length - 1;
    const calls = await perform(crashed, { kind: 'CountCalls', callerId: by.callerId, month });
    const nonce = { keyId: by.id, nonce: 'n' };
    assert.deepEqual([calls, await isAdmitted(crashed, { nowS, nonce })], [filed, filed === 0]);
    assert.equal(await fileOne(crashed, by), `AS-2026-00000${2 + filed}`);
  });

  test('a request without an effect, or one that rewrites nothing, is done and changes nothing', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filed = fileOne(store, by);
    const outcome = { kind: 'DONE', result: undefined, isReplay: false };
    const effect = { kind: 'RewriteNothing' } as const;
    for (const request of [{}, { admission: { nowS } }, { effect }])
      assert.deepEqual((await store.execute(request)).outcome, outcome);
    assert.equal(await filed, 'AS-2026-000001');
    assert.deepEqual((await filingPages(store)).flat(), ['AS-2026-000001']);
  });

  test('closing runs submitted requests, and may be repeated', async (t) => {
    const { store, by, dataDir } = await openGallery(t, engine);
    const filed = perform(store, toFile(by));
    await Promise.all([store.close(), store.close()]);
    assert.equal((await filed).filingNo, 'AS-2026-000001');
    await store.close();
    assert.deepEqual((await filingPages(await openStore(t, engine, crashCopy(t, dataDir)))).flat(), [
      'AS-2026-000001',
    ]);
  });

  test('a closed store rejects all requests with UNAVAILABLE, and still finds keys and tokens', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { apiKey } = by;
    const token = newToken();
    await addService(store, 'ledger', token);
    const known = () => [store.findKey(apiKey)?.caller, store.findToken(token.sha256)?.caller];
    assert.deepEqual(known(), ['gallery', 'ledger']);
    await store.close();
    for (const command of [
      toFile(by),
      { kind: 'HasCallers' },
      { kind: 'ReadMetrics', nowMs: 1, year: 2026 },
    ] as const)
      await refused(perform(store, command), 'UNAVAILABLE');
    const nonce = { keyId: 1, nonce: 'n' };
    await refused(store.execute({ admission: { nowS, nonce } }), 'UNAVAILABLE');
    await refused(store.execute({}), 'UNAVAILABLE');
    assert.deepEqual(known(), ['gallery', 'ledger']);
  });

  test('a request during closing is kept or rejected with UNAVAILABLE', async (t) => {
    const { store, by, dataDir } = await openGallery(t, engine);
    const closed = store.close();
    const late = perform(store, toFile(by)).then(
      ({ filingNo }) => [filingNo],
      (error) => refused(Promise.reject(error), 'UNAVAILABLE').then(() => []),
    );
    await closed;
    assert.deepEqual((await filingPages(await openStore(t, engine, dataDir))).flat(), await late);
  });
}
