import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspectDatabase, isEmpty, planUpgrade, readLogNames } from '../../src/store/postgres/inspection.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { migrations } from '../../src/store/postgres/upgrade.ts';
import { perform } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { connectTo, createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { addPlatform, fileOne, sandbox } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();

test('an empty database is reported, and stays empty', { skip }, async (t) => {
  const place = { url: await createDatabase(t) };
  const inspection = await inspectDatabase(place, { year: 2026, nowMs: Date.now }, async () => {});
  const { schema, knownSchema, tooNew, content, unsafe } = inspection;
  assert.deepEqual([schema, knownSchema, tooNew, content, unsafe], [0, migrations.length, ...nothing]);
  assert.deepEqual(await readLogNames(place), { names: [], origin: undefined });
  await assert.rejects(planUpgrade(place), /no tables of Artseal: run artseal init/);
  assert.equal(await isEmpty(place), true);
});

const nothing = [undefined, undefined, undefined] as const;

test('a database is inspected while a store uses it', { skip }, async (t) => {
  const place = { url: await createDatabase(t) };
  const store = await openPostgresStore({ place, ...sandbox, opening: 'NEW' });
  t.after(() => store.close());
  await addPlatform(store, 'gallery');
  const filingNo = await fileOne(store, { callerId: 1, caller: 'gallery' });
  const tree = await perform(store, { kind: 'GetTree' });
  const year = Number(filingNo.split('-')[1]);
  const { content } = await inspectDatabase(place, { year, nowMs: Date.now }, (_, read) =>
    read({ kind: 'GetTree' }),
  );
  assert.deepEqual(content?.foundInLog, tree);
  assert.deepEqual([content?.environment, content?.numbers.filingNumbers], ['sandbox', 1]);
  assert.equal(content?.newestFilingMs, (content?.newestLeafS ?? 0) * 1_000);
});

test('the oldest snapshot is that of the oldest transaction', { skip }, async (t) => {
  const place = { url: await createDatabase(t) };
  const ageOf = async () =>
    (await inspectDatabase(place, { year: 2026, nowMs: Date.now }, async () => {})).snapshotS;
  assert.equal(await ageOf(), 0);
  const forgotten = await connectTo(t, place.url);
  await forgotten.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await forgotten.query('SELECT 1');
  await eventually('an age of a second', 10_000, async () => ((await ageOf()) ?? 0) >= 1);
  await forgotten.end();
  assert.equal(await ageOf(), 0);
});
