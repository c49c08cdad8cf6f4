import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Migration } from '../../src/store/engine/migrations.ts';
import { upgradeDatabase } from '../../src/store/postgres/inspection.ts';
import { grantsFor } from '../../src/store/postgres/roles.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { migrations, waiting } from '../../src/store/postgres/upgrade.ts';
import { perform, type Store, type StoreRequest } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { connectTo, createDatabase, runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { startInstance } from './child-instance.ts';
import { furtherOnPostgres } from './further-migration.ts';
import { addPlatform, instanceFacts, sandbox, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };
const nowS = 1_800_000_000;
const limitMs = 60_000;

/** Roles belong to the cluster, and end with it. */
let roles = 0;

/** Two instances of a database with a platform. Their role is not the one that owns the tables, and `grant` gives it its rights. */
async function openTwo(t: TestContext) {
  roles += 1;
  const app = `upgraded_app_${roles}`;
  const url = await createDatabase(t);
  await (await openPostgresStore({ place: { url }, ...sandbox })).close();
  await runSql(url, `CREATE ROLE ${app} LOGIN`);
  const grant = () => runSql(url, grantsFor({ app, reader: undefined }).join('\n'));
  await grant();
  const openAs = async (host: string) => {
    const place = { url: url.replace('postgres@', `${app}@`) };
    const store = await openPostgresStore({ place, ...sandbox });
    t.after(() => store.close());
    await perform(store, { kind: 'JoinInstances', facts: instanceFacts(host) });
    return store;
  };
  const one = await openAs('one');
  await addPlatform(one, 'gallery');
  await perform(one, toFile(by));
  return { url, grant, both: [one, await openAs('two')] as const };
}

/** Gives the code a migration that a later version could have, until the test ends. */
function addMigration(t: TestContext, migration: Migration): void {
  migrations.push(migration);
  t.after(() => migrations.splice(migrations.indexOf(migration), 1));
}

/** Changes how an upgrade waits until the test ends. */
function waitOnce(t: TestContext, changed: Partial<typeof waiting>): void {
  const before = { ...waiting };
  Object.assign(waiting, changed);
  t.after(() => Object.assign(waiting, before));
}

let nonces = 0;

/** Calls as platforms make them: each has a nonce and a quota; some read, some file, some file under an idempotency key. */
function nextCall(nth: number): StoreRequest {
  nonces += 1;
  const admission = {
    nowS,
    nonce: { keyId: 1, nonce: `${nonces}` },
    quota: { callerId: 1, month: '2026-11', limit: 1_000_000, take: true },
  };
  const idempotency = { callerId: 1, key: `${nonces}`, fingerprint: Buffer.from('f'), requestId: 'r' };
  if (nth % 4 === 0) return { admission: { ...admission, idempotency }, effect: toFile(by) };
  if (nth % 4 === 1) return { admission, effect: toFile(by) };
  return { admission, effect: { kind: 'GetFiling', filingNo: 'AS-2026-000001', owner: 1 } };
}

/** Calls each instance over and over. Returns what did not succeed, and how many did. */
function callBoth(t: TestContext, both: readonly Store[]) {
  const errors: unknown[] = [];
  let [count, longestMs, isStopped] = [0, 0, false];
  const work = async (store: Store, nth: number) => {
    while (!isStopped) {
      const beganMs = performance.now();
      try {
        const { outcome } = await store.execute(nextCall(nth));
        if (outcome.kind === 'DONE') count += 1;
        else errors.push(outcome);
      } catch (error) {
        errors.push(error);
      }
      longestMs = Math.max(longestMs, performance.now() - beganMs);
    }
  };
  t.after(() => {
    isStopped = true;
  });
  const working = both.flatMap((store) => Array.from({ length: 16 }, (_, nth) => work(store, nth)));
  return {
    count: () => count,
    stop: async () => {
      isStopped = true;
      await Promise.all(working);
      return { errors, longestMs };
    },
  };
}

/** How often transactions of an instance were repeated, by the reason. */
const repeatedAt = async (store: Store) => Object.entries((await store.metrics()).server?.repeated ?? {});

test('an upgrade beside instances that serve fails no call', { skip }, async (t) => {
  const { url, grant, both } = await openTwo(t);
  const calls = callBoth(t, both);
  await eventually('calls', limitMs, () => calls.count() > 500);
  addMigration(t, furtherOnPostgres);
  // Long enough to find a deadlock.
  waitOnce(t, { lockTimeoutMs: 20_000, tries: 1 });
  const beganMs = performance.now();
  const { migrations: applied } = await upgradeDatabase({ url });
  t.diagnostic(`upgrade ${Math.round(performance.now() - beganMs)} ms`);
  assert.deepEqual(applied, [furtherOnPostgres.name]);
  await grant();
  const count = calls.count();
  await eventually('calls after the upgrade', limitMs, () => calls.count() > count + 500);
  const { errors, longestMs } = await calls.stop();
  t.diagnostic(`longest call ${Math.round(longestMs)} ms`);
  assert.deepEqual(errors, []);
  const repeated = (await Promise.all(both.map(repeatedAt))).flat();
  assert.deepEqual(
    repeated.filter(([, times]) => times > 0),
    [],
  );
});

test('an upgrade that waits for a long transaction does not make calls wait', { skip }, async (t) => {
  const { url, both } = await openTwo(t);
  const reader = await connectTo(t, url);
  await reader.query('BEGIN');
  await reader.query('SELECT FROM filing');
  const calls = callBoth(t, both);
  await eventually('calls', limitMs, () => calls.count() > 500);
  addMigration(t, furtherOnPostgres);
  const upgrading = upgradeDatabase({ url });
  await eventually('the upgrade waits', limitMs, async () => (await runSql(url, waitingUpgrade)).length > 0);
  const count = calls.count();
  await eventually('calls during the upgrade', limitMs, () => calls.count() > count + 500);
  await reader.query('COMMIT');
  await upgrading;
  const { errors, longestMs } = await calls.stop();
  t.diagnostic(`longest call ${Math.round(longestMs)} ms`);
  assert.deepEqual(errors, []);
});

/** The upgrade, when it waits for the lock of a table. */
const waitingUpgrade = `SELECT pid FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation = 'filing'::regclass`;

test('an upgrade that waits in vain says so, and changes nothing', { skip }, async (t) => {
  const { url } = await openTwo(t);
  const reader = await connectTo(t, url);
  await reader.query('BEGIN');
  await reader.query('SELECT FROM filing');
  addMigration(t, furtherOnPostgres);
  waitOnce(t, { lockTimeoutMs: 10, pauseMs: 10, tries: 3 });
  const message = /waited in vain for a transaction that uses the tables, such as pg_dump: end it/;
  await assert.rejects(upgradeDatabase({ url }), message);
  await reader.query('COMMIT');
  assert.equal((await upgradeDatabase({ url })).migrations.length, 1);
});

/** A migration after which only the version that has it can use the database. */
const contracting: Migration = {
  name: furtherOnPostgres.name,
  sql: `UPDATE oldest_version SET schema = ${migrations.length + 1}, version = '9.9.9'`,
};

test('an upgrade is refused while an instance serves that could not use the database after it', {
  skip,
}, async (t) => {
  const { url, both } = await openTwo(t);
  for (const store of both) await store.close();
  const { child, answered: lines } = await startInstance(t, url, 4);
  await eventually('filings of the child', limitMs, () => lines.length > 50);
  addMigration(t, contracting);
  const upgraded = () => upgradeDatabase({ url });
  const message = `needs artseal 9.9.9 or later, and artseal 1.0.0 serves it on child (process ${child.pid}): stop it, or `;
  await assert.rejects(upgraded(), ({ message: found }: Error) => found.includes(message));
  const count = lines.length;
  await eventually('further filings', limitMs, () => lines.length > count + 50);

  // One that stands still longer than others wait for it continues in vain.
  child.kill('SIGSTOP');
  await eventually('the upgrade', limitMs, async () => {
    await runSql(url, "UPDATE instance SET seen_at = seen_at - interval '1 minute'");
    return upgraded().then(
      () => true,
      () => false,
    );
  });
  const stored = () => runSql(url, 'SELECT count(*) FROM filing');
  const before = await stored();
  child.kill('SIGCONT');
  await eventually('the child ends', limitMs, () => child.exitCode !== null);
  assert.equal(lines.at(-1), 'the database was upgraded, and needs a later version of artseal');
  assert.deepEqual(await stored(), before);
});
