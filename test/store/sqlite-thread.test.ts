import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { type ApiErrorData, ValidationError } from '../../src/domain/violation.ts';
import { DatabaseError } from '../../src/store/engine/failure.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { lockFolder } from '../../src/store/sqlite/folder-lock.ts';
import { openThreadedStore } from '../../src/store/sqlite/threaded-store.ts';
import { type Command, perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, isAdmitted, nowS, refused, sandbox, toFile } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

/** A store and its thread. */
async function openWithThread(t: TestContext) {
  const started = once(process, 'worker');
  const dataDir = temporaryFolder(t);
  const store = await openThreadedStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const [worker] = (await started) as [Worker];
  return { store, worker, dataDir };
}

test('when the thread ends, requests under way and all later ones are rejected with UNAVAILABLE', async (t) => {
  const { store, worker } = await openWithThread(t);
  const underWay = [store.execute({}), store.execute({})].map((request) => refused(request, 'UNAVAILABLE'));
  await worker.terminate();
  await Promise.all(underWay);
  await refused(store.execute({}), 'UNAVAILABLE');
  assert.match((await store.lost).message, /thread of the store ended with 1/);
  await store.close();
  await refused(store.execute({}), 'UNAVAILABLE');
});

test('a batch after which the thread fails is rejected with UNAVAILABLE, and the store is lost', async (t) => {
  const { store, dataDir } = await openWithThread(t);
  const gallery = await addPlatform(store, 'Gallery One');
  const other = openRaw(t, dataDir);
  // The thread reads the tokens after a batch that may have changed some.
  other.exec('ALTER TABLE service_token RENAME TO lost');
  const { keyId } = gallery;
  const suspending = { kind: 'SetKeyStatus', by: tester, keyId, status: 'SUSPENDED' } as const;
  await refused(perform(store, suspending), 'UNAVAILABLE');
  assert.match((await store.lost).message, /no such table: service_token/);
  assert.equal(other.prepare('SELECT status FROM api_key').pluck().get(), 'SUSPENDED');
});

test('a write that waits for the lock of another process does not block this thread', async (t) => {
  const { store, dataDir } = await openWithThread(t);
  const gallery = await addPlatform(store, 'Gallery One');
  const other = openRaw(t, dataDir);
  other.exec('BEGIN IMMEDIATE');
  let isStored = false;
  const stored = perform(store, toFile(gallery)).finally(() => {
    isStored = true;
  });
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.equal(isStored, false);
  other.exec('ROLLBACK');
  assert.equal((await stored).filingNo, 'AS-2026-000001');
});

test('batches that arrive while the thread executes one share a transaction, and each gets its replies', async (t) => {
  const { store, dataDir } = await openWithThread(t);
  const gallery = await addPlatform(store, 'Gallery One');
  const transactions = async () => {
    const { transactionRequests } = await store.metrics();
    return transactionRequests.counts.reduce((sum, count) => sum + count, 0);
  };
  const before = await transactions();
  const other = openRaw(t, dataDir);
  other.exec('BEGIN IMMEDIATE');
  const filed = [];
  for (let batch = 0; batch < 10; batch += 1) {
    filed.push(perform(store, toFile(gallery)), perform(store, toFile(gallery)));
    await turn();
  }
  other.exec('ROLLBACK');
  const numbers = (await Promise.all(filed)).map(({ filingNo }) => filingNo);
  assert.deepEqual(
    numbers,
    numbers.map((_, place) => `AS-2026-${String(place + 1).padStart(6, '0')}`),
  );
  assert.ok((await transactions()) - before <= 2);
});

test('batches with long replies, metrics and a close among them all get their replies', async (t) => {
  const { store, dataDir } = await openWithThread(t);
  const gallery = await addPlatform(store, 'Gallery One');
  const { artwork, ...file } = toFile(gallery);
  const filings = 60;
  const titled = (nth: number) => ({
    ...file,
    artwork: { ...artwork, author: `T${nth}`, material: 'x'.repeat(20_000) },
  });
  for (let nth = 0; nth < filings; nth += 1) await perform(store, titled(nth));
  const other = openRaw(t, dataDir);
  other.exec('BEGIN IMMEDIATE');
  const replies: Promise<unknown>[] = [perform(store, titled(filings))];
  await turn();
  for (let nth = 0; nth < filings; nth += 1) {
    const filingNo = `AS-2026-${String(nth + 1).padStart(6, '0')}`;
    replies.push(
      perform(store, { kind: 'GetFiling', filingNo, owner: undefined }).then((found) =>
        assert.equal(found?.author, `T${nth}`),
      ),
    );
    if (nth === 40) replies.push(store.metrics());
    if (nth % 7 === 0) await turn();
  }
  const closed = store.close();
  other.exec('ROLLBACK');
  await Promise.all([...replies, closed]);
});

test('a closed store is not lost, and its thread has ended', async (t) => {
  const { store, worker } = await openWithThread(t);
  let isGone = false;
  worker.once('exit', () => {
    isGone = true;
  });
  const isLost = Promise.race([store.lost.then(() => true), once(worker, 'exit').then(() => false)]);
  await Promise.all(
    [store.close(), store.close()].map(async (closing) => {
      await closing;
      assert.ok(isGone, 'each call waits for the end');
    }),
  );
  assert.equal(await isLost, false);
});

test('a store closes although its thread ends meanwhile', async (t) => {
  const { store, worker } = await openWithThread(t);
  const underWay = Promise.allSettled([store.execute({})]);
  const closing = store.close();
  await worker.terminate();
  await closing;
  await underWay;
});

test('the thread rejects a database with the message of the engine', async (t) => {
  const dataDir = temporaryFolder(t);
  const first = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => first.close());
  const here = await errorOf(async () => createSqliteStore({ dataDir, ...sandbox }));
  const there = await errorOf(() => openThreadedStore({ dataDir, ...sandbox }));
  for (const error of [here, there]) assert.ok(error instanceof DatabaseError, `${error}`);
  assert.equal(there.message, here.message);
});

test('a store waits for the process that uses its folder', async (t) => {
  const dataDir = temporaryFolder(t);
  const lock = lockFolder(dataDir);
  const opening = openThreadedStore({ dataDir, ...sandbox, lockTimeoutMs: 60_000 });
  await assert.rejects(openThreadedStore({ dataDir, ...sandbox }), DatabaseError);
  lock.release();
  await (await opening).close();
});

test('rejections and errors come back from the thread with all their fields', async (t) => {
  const { store } = await openWithThread(t);
  const hints = { retryAfterS: 7, serverTimeS: nowS, allow: ['GET'] };
  const violations = [{ field: 'author', rule: 'is required' }];
  const hinted: ApiErrorData = { reason: 'RATE_LIMITED', message: 'Too many calls.', hints };
  const ofFields: ApiErrorData = {
    reason: 'VALIDATION_FAILED',
    message: 'author is required',
    hints: {},
    violations,
  };
  for (const apiError of [hinted, ofFields]) {
    const { outcome } = await store.execute({ effect: { kind: 'Reject', apiError } });
    assert.deepEqual(outcome, { kind: 'REJECTED', apiError, isReplay: false });
  }
  const error = await errorOf(() => perform(store, { kind: 'Reject', apiError: ofFields }));
  assert.ok(error instanceof ValidationError);
  assert.deepEqual(error.violations, violations);
  const unknown = {
    instructionId: 'none',
    status: 'PREPARED',
    expectedLookUpAtMs: 1,
    lookUpAtMs: 1,
  } as const;
  const failure = await errorOf(() => perform(store, { kind: 'RecordSent', ...unknown }));
  assert.match(failure.message, /There is no instruction none/);
  assert.match(failure.stack ?? '', /src\/store\/handlers\/reconciliation\.ts:\d+/);

  // A request that cannot be sent takes no response from later ones.
  const unsendable = { kind: 'GetFiling', filingNo: () => '', owner: undefined } as unknown as Command;
  await assert.rejects(store.execute({ effect: unsendable }), /could not be cloned/);
  const names = ['a', 'b', 'c'];
  const spent = names.map((nonce) => isAdmitted(store, { nowS, nonce: { keyId: 1, nonce } }));
  assert.deepEqual(await Promise.all(spent), [true, true, true]);
  assert.equal(await perform(store, { kind: 'HasCallers' }), false);
});

/** The error of a promise. */
async function errorOf(attempt: () => Promise<unknown>): Promise<Error> {
  const error = await attempt().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error, 'it was not rejected');
  return error;
}
