import assert from 'node:assert/strict';
import { test } from 'node:test';
import { idempotencyRetentionS, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openStore, type StoreEngine } from './fixtures.ts';

const start = 1_790_000_000;
const [one, other] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const answer = { status: 200, body: '{"filingNo":"AS-2026-000001"} \u00e9\u{1F58C}' };

const claimer =
  (store: Store, callerId = 1) =>
  (key: string, fingerprint = one, nowS = start) =>
    store.idempotency.claim({ callerId, key, fingerprint, nowS });

/** Idempotency keys. */
export function idempotencyPromises(engine: StoreEngine): void {
  test('a key can be claimed until its answer is kept, and then has that answer', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    assert.deepEqual(await claim('k'), { kind: 'CLAIMED' });
    assert.deepEqual(await claim('k'), { kind: 'CLAIMED' });
    await store.idempotency.keep(1, 'k', answer);
    assert.deepEqual(await claim('k'), { kind: 'ANSWERED', answer });
    assert.deepEqual(await claim('k'), { kind: 'ANSWERED', answer });
  });

  test('of claims for different requests made at once, the first is granted', async (t) => {
    const claim = claimer(await openStore(t, engine));
    const standings = await Promise.all([claim('k'), claim('k', other), claim('k'), claim('k', other)]);
    assert.deepEqual(
      standings.map(({ kind }) => kind),
      ['CLAIMED', 'REUSED', 'CLAIMED', 'REUSED'],
    );
  });

  test('another request under a key that is claimed or answered is REUSED', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    await claim('k');
    assert.deepEqual(await claim('k', other), { kind: 'REUSED' });
    await store.idempotency.keep(1, 'k', answer);
    assert.deepEqual(await claim('k', other), { kind: 'REUSED' });
    assert.deepEqual(await claim('k'), { kind: 'ANSWERED', answer });
  });

  test('each caller has keys of its own', async (t) => {
    const store = await openStore(t, engine);
    await claimer(store, 1)('k');
    await store.idempotency.keep(1, 'k', answer);
    assert.deepEqual(await claimer(store, 2)('k', other), { kind: 'CLAIMED' });
    assert.deepEqual(await claimer(store, 1)('K'), { kind: 'CLAIMED' });
    await store.idempotency.release(2, 'k');
    assert.deepEqual(await claimer(store, 1)('k'), { kind: 'ANSWERED', answer });
  });

  test('a released key can be claimed again, for another request as well', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    await claim('k');
    await store.idempotency.release(1, 'k');
    assert.deepEqual(await claim('k', other), { kind: 'CLAIMED' });
    await store.idempotency.release(1, 'no key');
  });

  test('a key with a kept answer is not released', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    await claim('k');
    await store.idempotency.keep(1, 'k', answer);
    await store.idempotency.release(1, 'k');
    assert.deepEqual(await claim('k'), { kind: 'ANSWERED', answer });
  });

  test('a claim that is made again does not make the key be remembered longer', async (t) => {
    const claim = claimer(await openStore(t, engine));
    await claim('k');
    await claim('k', one, start + idempotencyRetentionS - 1);
    assert.deepEqual(await claim('k', other, start + idempotencyRetentionS), { kind: 'CLAIMED' });
  });

  test('a key is remembered for its time, counted from its claim, and then free', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    await claim('answered');
    await store.idempotency.keep(1, 'answered', answer);
    await claim('unanswered');
    const last = start + idempotencyRetentionS - 1;
    // Others are claimed as time goes by, and may sweep.
    for (let count = 0; count < 5; count += 1) await claim(`other ${count}`, other, last);
    assert.deepEqual(await claim('answered', one, last), { kind: 'ANSWERED', answer });
    assert.deepEqual(await claim('unanswered', one, last), { kind: 'CLAIMED' });
    assert.deepEqual(await claim('unanswered', other, last), { kind: 'REUSED' });
    assert.deepEqual(await claim('answered', other, last + 2), { kind: 'CLAIMED' });
    assert.deepEqual(await claim('unanswered', other, last + 2), { kind: 'CLAIMED' });
  });

  test('a key stays what it is when the clock is set back', async (t) => {
    const store = await openStore(t, engine);
    const claim = claimer(store);
    await claim('k');
    await store.idempotency.keep(1, 'k', answer);
    assert.deepEqual(await claim('k', one, start - 86_400), { kind: 'ANSWERED', answer });
  });

  test('a kept answer survives opening again, and so does what an unanswered key stands for', async (t) => {
    const dataDir = temporaryFolder(t);
    const before = await openStore(t, engine, dataDir);
    for (const key of ['answered', 'unanswered']) await claimer(before)(key);
    await before.idempotency.keep(1, 'answered', answer);
    await before.close();
    const after = await openStore(t, engine, dataDir);
    await after.beginServing();
    assert.deepEqual(await claimer(after)('answered'), { kind: 'ANSWERED', answer });
    assert.deepEqual(await claimer(after)('unanswered', other), { kind: 'REUSED' });
    assert.deepEqual(await claimer(after)('unanswered'), { kind: 'CLAIMED' });
  });
}
