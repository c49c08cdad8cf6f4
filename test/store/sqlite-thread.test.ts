import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import { type ApiErrorData, ValidationError } from '../../src/domain/violation.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { openThreadedStore } from '../../src/store/sqlite/threaded-store.ts';
import { type Command, perform, type StoreOptions } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, isAdmitted, nowS, recordSent, refused, sandbox, toFile } from './promises/fixtures.ts';

/** A store and the thread that it works in. */
async function openWithThread(t: TestContext) {
  const started = once(process, 'worker');
  const store = await openThreadedStore({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => store.close());
  const [worker] = (await started) as [Worker];
  return { store, worker };
}

test('when the thread ends, what it was asked is refused with UNAVAILABLE, and all that follows', async (t) => {
  const { store, worker } = await openWithThread(t);
  const asked = [store.execute({}), store.execute({})].map((unit) => refused(unit, 'UNAVAILABLE'));
  await worker.terminate();
  await Promise.all(asked);
  await refused(store.execute({}), 'UNAVAILABLE');
  await refused(store.beginServing(), 'UNAVAILABLE');
  assert.match((await store.lost).message, /thread of the store ended with 1/);
  await store.close();
  await refused(store.execute({}), 'UNAVAILABLE');
});

test('a batch behind which the thread fails may be stored: it is refused with UNAVAILABLE, and the store is lost', async (t) => {
  const started = once(process, 'worker');
  const dataDir = temporaryFolder(t);
  const store = await openThreadedStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  await started;
  const gallery = await addPlatform(store, 'Gallery One');
  const other = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => other.close());
  // Credentials are read behind each batch that another process wrote before.
  other.exec('ALTER TABLE service_token RENAME TO lost');
  await refused(perform(store, toFile(gallery)), 'UNAVAILABLE');
  assert.match((await store.lost).message, /no such table: service_token/);
  assert.equal(other.prepare('SELECT count(*) FROM filing').pluck().get(), 1);
});

test('a store that was closed is not lost, and its thread is gone', async (t) => {
  const { store, worker } = await openWithThread(t);
  let isGone = false;
  worker.once('exit', () => {
    isGone = true;
  });
  const isLost = Promise.race([store.lost.then(() => true), once(worker, 'exit').then(() => false)]);
  await Promise.all(
    [store.close(), store.close()].map(async (closing) => {
      await closing;
      assert.ok(isGone, 'each waits for the end');
    }),
  );
  assert.equal(await isLost, false);
  await refused(store.beginServing(), 'UNAVAILABLE');
});

test('a thread that ends while the store closes holds nobody up', async (t) => {
  const { store, worker } = await openWithThread(t);
  const asked = Promise.allSettled([store.execute({})]);
  const closing = store.close();
  await worker.terminate();
  await closing;
  await asked;
});

test('a database that is refused is refused by the thread in the same words', async (t) => {
  const dataDir = temporaryFolder(t);
  const first = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => first.close());
  await first.beginServing();
  const moved = temporaryFolder(t);
  const made = createSqliteStore({ dataDir: moved, ...sandbox });
  await made.beginServing();
  await made.close();
  renameSync(join(moved, 'artseal.db'), join(moved, 'elsewhere.db'));
  const refusals: Record<string, StoreOptions> = {
    'another environment': { dataDir, ...sandbox, environment: 'production' },
    'another currency': { dataDir, ...sandbox, currency: 'USD' },
    'made already': { dataDir, ...sandbox, opening: 'NEW', serving: false },
    'not there': { dataDir: temporaryFolder(t), ...sandbox, opening: 'EXISTING' },
    'served already': { dataDir, ...sandbox, serving: true },
    moved: { dataDir: moved, ...sandbox, serving: true },
  };
  for (const [what, options] of Object.entries(refusals)) {
    const here = await errorOf(async () => createSqliteStore(options));
    const there = await errorOf(() => openThreadedStore(options));
    for (const error of [here, there]) assert.ok(error instanceof DatabaseError, `${what}: ${error}`);
    assert.equal(there.message, here.message, what);
  }
  const second = await openThreadedStore({ dataDir, ...sandbox });
  t.after(() => second.close());
  await assert.rejects(second.beginServing(), DatabaseError);
  await second.execute({});
});

test('what a unit is refused for and what fails in the thread comes back whole', async (t) => {
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
  const refusedWith = await errorOf(() => perform(store, { kind: 'Reject', apiError: ofFields }));
  assert.ok(refusedWith instanceof ValidationError);
  assert.deepEqual(refusedWith.violations, violations);
  const failure = await errorOf(() => recordSent(store, 'none'));
  assert.match(failure.message, /is no open instruction/);
  assert.match(failure.stack ?? '', /src\/store\/sqlite\/reconciliation\.ts:\d+/);
});

test('what cannot be sent to the thread fails, and every unit after it gets its own answer', async (t) => {
  const { store } = await openWithThread(t);
  const unsendable = { kind: 'GetFiling', filingNo: () => '', owner: undefined } as unknown as Command;
  await assert.rejects(store.execute({ effect: unsendable }), /could not be cloned/);
  const names = ['a', 'b', 'c'];
  const spent = names.map((nonce) => isAdmitted(store, { nowS, nonce: { keyId: 1, nonce } }));
  assert.deepEqual(await Promise.all(spent), [true, true, true]);
  assert.equal(await perform(store, { kind: 'HasCallers' }), false);
});

/** What a promise is rejected with. */
async function errorOf(attempt: () => Promise<unknown>): Promise<Error> {
  const error = await attempt().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error, 'it was not refused');
  return error;
}
