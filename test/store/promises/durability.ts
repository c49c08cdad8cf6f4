import assert from 'node:assert/strict';
import { newToken, nowS, refused, settlementOf, toFile, toResolve } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

const month = '2026-11';

/** Durability, and what a closed store does. */
export function durabilityPromises({ test }: StoreTests): void {
  test('a crash leaves all of a request or nothing, and the numbers continue from there', async (store) => {
    const by = store.gallery;
    const { escrowId, filingNo } = await store.frozen(by);
    const { instructionId } = await store.perform(toResolve(by, 'RELEASE', escrowId));
    const ended = [{ instructionId, status: 'CONFIRMED' }] as const;
    const change = settlementOf(await store.caseOf(escrowId), {
      to: 'RELEASED',
      reference: 'theirs',
      ended,
    });
    const underWay = [
      store.updateOrder(change),
      store.execute({
        admission: {
          nowS,
          nonce: { keyId: by.id, nonce: 'n' },
          quota: { callerId: by.callerId, month, limit: undefined, take: true },
        },
        effect: toFile(by),
      }),
    ];
    const copy = store.crashCopy();
    await Promise.all(underWay);
    const crashed = await store.openCrashed(copy);

    const { order, reference } = await crashed.caseOf(escrowId);
    const operation = await crashed.findInstruction(instructionId);
    const provenance = await crashed.findProvenance(filingNo);
    assert.deepEqual(
      [order.state, operation?.status, reference, provenance?.records.length],
      order.state === 'RELEASED'
        ? ['RELEASED', 'CONFIRMED', 'theirs', 2]
        : ['FROZEN', 'PREPARED', undefined, 1],
    );
    const filed = (await crashed.filingPages()).flat().length - 1;
    const calls = await crashed.perform({ kind: 'CountCalls', callerId: by.callerId, month });
    const nonce = { keyId: by.id, nonce: 'n' };
    assert.deepEqual([calls, await crashed.isAdmitted({ nowS, nonce })], [filed, filed === 0]);
    assert.equal(await crashed.fileOne(by), `AS-2026-00000${2 + filed}`);
  });

  test('a request without an effect, or one that rewrites nothing, is done and changes nothing', async (store) => {
    const filed = store.fileOne(store.gallery);
    const outcome = { kind: 'DONE', result: undefined, isReplay: false };
    const effect = { kind: 'RewriteNothing' } as const;
    for (const request of [{}, { admission: { nowS } }, { effect }])
      assert.deepEqual((await store.execute(request)).outcome, outcome);
    assert.equal(await filed, 'AS-2026-000001');
    assert.deepEqual((await store.filingPages()).flat(), ['AS-2026-000001']);
  });

  test('closing runs submitted requests, and may be repeated', async (store) => {
    const filed = store.perform(toFile(store.gallery));
    await Promise.all([store.close(), store.close()]);
    assert.equal((await filed).filingNo, 'AS-2026-000001');
    await store.close();
    assert.deepEqual((await (await store.openCrashed()).filingPages()).flat(), ['AS-2026-000001']);
  });

  test('a closed store rejects all requests with UNAVAILABLE, and still finds keys and tokens', async (store) => {
    const { apiKey } = store.gallery;
    const token = newToken();
    await store.addService('ledger', token);
    const known = () => [store.findKey(apiKey)?.caller, store.findToken(token.sha256)?.caller];
    assert.deepEqual(known(), ['gallery', 'ledger']);
    await store.close();
    for (const command of [
      toFile(store.gallery),
      { kind: 'HasCallers' },
      { kind: 'ReadMetrics', nowMs: 1, year: 2026 },
    ] as const)
      await refused(store.perform(command), 'UNAVAILABLE');
    const nonce = { keyId: 1, nonce: 'n' };
    await refused(store.execute({ admission: { nowS, nonce } }), 'UNAVAILABLE');
    await refused(store.execute({}), 'UNAVAILABLE');
    assert.deepEqual(known(), ['gallery', 'ledger']);
  });

  test('a request during closing is kept or rejected with UNAVAILABLE', async (store) => {
    const closed = store.close();
    const late = store.perform(toFile(store.gallery)).then(
      ({ filingNo }) => [filingNo],
      (error) => refused(Promise.reject(error), 'UNAVAILABLE').then(() => []),
    );
    await closed;
    assert.deepEqual((await (await store.openAgain()).filingPages()).flat(), await late);
  });

  test('keyFor returns the same key whenever the folder is opened, and no other key', async (store) => {
    const key = store.keyFor('a');
    assert.equal(key.length, 32);
    await store.close();
    const later = await store.openAgain();
    assert.deepEqual(later.keyFor('a'), key);
    assert.notDeepEqual(later.keyFor('b'), key);
    const elsewhere = await store.createAnother();
    assert.notDeepEqual(elsewhere.keyFor('a'), key);
  });
}
