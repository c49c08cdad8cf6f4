import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { grantsFor } from '../../src/store/postgres/roles.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { askProvenance } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { connectTo, createDatabase, runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { startService } from '../support/service.ts';
import { instanceFacts, sandbox } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();

/** The role that serves. */
const app = 'rates_app';

/** Makes the tables, and lets the role that serves use them. */
async function fill(url: string): Promise<void> {
  await (await openPostgresStore({ place: { url }, ...sandbox, opening: 'NEW' })).close();
  await runSql(url, `CREATE ROLE ${app} LOGIN`, ...grantsFor({ app, reader: undefined }));
}

/** A new database as its owner, and a store on it. */
async function openDatabase(t: TestContext) {
  const url = await createDatabase(t, { template: fill });
  const open = async () => {
    const place = { url: url.replace('postgres@', `${app}@`) };
    const store = await openPostgresStore({ place, ...sandbox, opening: 'EXISTING' });
    t.after(() => store.close());
    return store;
  };
  return { open, owner: await connectTo(t, url) };
}

/** Reports what an instance allowed callers, in milliseconds. Returns their arrivals. */
async function merged(store: Store, periodMs: number, ...used: readonly (readonly [number, number])[]) {
  const rates = await perform(store, {
    kind: 'MergeRates',
    periodMs,
    used: used.map(([callerId, usedMs]) => ({ callerId, usedMs })),
  });
  return Object.fromEntries(rates.map(({ callerId, arrivalMs }) => [callerId, arrivalMs]));
}

/** The stored arrivals, in Unix microseconds. */
async function stored(owner: pg.Client): Promise<Readonly<Record<number, number>>> {
  const { rows } = await owner.query<{ caller: string; us: string }>(
    'SELECT caller_id AS caller, extract(epoch FROM arrives_at) * 1000000 AS us FROM rate ORDER BY arrives_at',
  );
  assert.equal(new Set(rows.map(({ caller }) => caller)).size, rows.length, 'a caller has one row');
  return Object.fromEntries(rows.map(({ caller, us }) => [caller, Number(us)]));
}

test('what instances allow a caller adds up, and rest takes it away', { skip }, async (t) => {
  const { open, owner } = await openDatabase(t);
  const store = await open();
  assert.deepEqual(await merged(store, 200), {});
  assert.deepEqual(await merged(store, 200, [2, 9_000], [1, 50.5]), { 1: 50.5, 2: 9_000 });
  const first = await stored(owner);
  const { 2: arrivalMs = 0 } = await merged(store, 0, [2, 300], [3, 5]);
  const second = await stored(owner);
  assert.deepEqual(second, { ...second, 1: first[1], 2: (first[2] ?? 0) + 300_000 });
  assert.ok(arrivalMs > 300 && arrivalMs < 9_300, `${arrivalMs}`);
  await owner.query("UPDATE rate SET arrives_at = now() - interval '1 min'");
  assert.deepEqual(await merged(store, 200, [1, 5], [2, 10]), { 1: 5, 2: 10 });
});

test('a clock of the database that was set back delays a caller by ten seconds', { skip }, async (t) => {
  const { open, owner } = await openDatabase(t);
  const store = await open();
  await merged(store, 200, [1, 5]);
  await owner.query("UPDATE rate SET arrives_at = now() + interval '1 day'");
  assert.deepEqual(await merged(store, 200, [1, 5]), { 1: 10_005 });
  assert.equal(Object.keys(await stored(owner)).length, 1);
});

test('reports of two stores at once add up, and neither store has to repeat one', { skip }, async (t) => {
  const { open, owner } = await openDatabase(t);
  const [one, other] = [await open(), await open()];
  await merged(one, 0, [1, 9_000], [2, 9_000]);
  const before = await stored(owner);
  const reports = 40;
  const reportAll = async (store: Store, ...used: readonly (readonly [number, number])[]) => {
    for (let report = 0; report < reports; report += 1) await merged(store, 0, ...used);
  };
  await Promise.all([reportAll(one, [1, 0.001], [2, 0.002]), reportAll(other, [2, 0.02], [1, 0.01])]);
  const after = await stored(owner);
  const addedUs = [1, 2].map((callerId) => (after[callerId] ?? 0) - (before[callerId] ?? 0));
  assert.deepEqual(addedUs, [11 * reports, 22 * reports]);
  for (const store of [one, other]) {
    const { repeated = {} } = (await store.metrics()).server ?? {};
    assert.deepEqual(new Set(Object.values(repeated)), new Set([0]));
  }
});

test('a service reports the calls that it allows while another instance serves', { skip }, async (t) => {
  const url = await createDatabase(t);
  const service = await startService(t, { env: { ARTSEAL_DATABASE_URL: url } });
  const other = await openPostgresStore({ place: { url }, ...sandbox });
  t.after(() => other.close());
  await perform(other, { kind: 'JoinInstances', facts: instanceFacts('other') });
  const platform = await service.platform('STANDARD');
  await eventually('a report', 10_000, async () => {
    await askProvenance(service, platform, 'none');
    return (await runSql(url, 'SELECT FROM rate')).length === 1;
  });
});
