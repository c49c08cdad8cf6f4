import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { recordRestorationAt } from '../../src/store/postgres/restoration.ts';
import { grantsFor } from '../../src/store/postgres/roles.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { connectTo, createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { acceptClock, addPlatform, fileOne, noon, sandbox, yearsAgo } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();

/** Roles belong to the cluster, and end with it. */
let created = 0;

/** A database with a filing, and sessions of its roles. */
async function databaseWithRoles(t: TestContext, filedAt = noon) {
  created += 1;
  const [app, reader] = [`Roles app ${created}`, `roles_reader_${created}`];
  const url = await createDatabase(t);
  const urlOf = (role: string) => url.replace('postgres@', `${encodeURIComponent(role)}@`);
  const store = await openPostgresStore({ place: { url }, ...sandbox, opening: 'NEW' });
  const by = await addPlatform(store, 'gallery');
  await fileOne(store, by, filedAt);
  await store.close();
  const owner = await connectTo(t, url);
  await owner.query(`CREATE ROLE "${app}" LOGIN; CREATE ROLE ${reader} LOGIN`);
  // The second time ends what is granted, and grants it again.
  for (let times = 0; times < 2; times += 1) await owner.query(grantsFor({ app, reader }).join('\n'));
  const revoke = (right: string, table: string) => owner.query(`REVOKE ${right} ON ${table} FROM "${app}"`);
  const place = { url: urlOf(app) };
  return {
    ...{ by, revoke, app: await connectTo(t, place.url), reader: await connectTo(t, urlOf(reader)) },
    openAsApp: () => openPostgresStore({ place, ...sandbox, opening: 'EXISTING' }),
    restoredAsApp: () => recordRestorationAt({ place, ...sandbox }, () => restoredAtNoon),
  };
}

const restoredAtNoon = {
  ...{ takenAtS: noon.atMs / 1_000, restoredAtS: noon.atMs / 1_000, years: [2026] },
  ...{ numbersAfter: undefined, random: () => 0 },
};

test('the role that serves cannot change or remove what keeps the evidence', { skip }, async (t) => {
  const { by, revoke, app: session, openAsApp, restoredAsApp } = await databaseWithRoles(t);
  assert.equal((await restoredAsApp()).gaps.length, 2);
  const store = await openAsApp();
  await perform(store, { kind: 'RecordServing', atS: noon.atMs / 1_000 });
  assert.match(await fileOne(store, by), /^AS-\d{4}-500001$/);
  await store.close();
  for (const statement of [
    'DELETE FROM log_leaf',
    'UPDATE log_leaf SET data = data',
    'DELETE FROM filing',
    'UPDATE filing SET filing_no = filing_no',
    'UPDATE escrow SET amount = 1',
    'DELETE FROM audit_entry',
    'UPDATE schema_version SET version = 0',
    'UPDATE deployment SET secret = secret',
    'TRUNCATE log_leaf',
    'ALTER TABLE log_leaf DISABLE TRIGGER ALL',
    'SET session_replication_role = replica',
    'DROP TABLE log_leaf',
    'CREATE TABLE own ()',
  ])
    await assert.rejects(session.query(statement), { code: '42501' }, statement);

  await revoke('INSERT', 'log_leaf');
  await assert.rejects(
    openAsApp(),
    /Roles app 1 has no right to INSERT in the table log_leaf: .* database roles --app/,
  );
});

test('the role that serves can erase a filing whose retention is over', { skip }, async (t) => {
  const { openAsApp } = await databaseWithRoles(t, yearsAgo(6, 0));
  const store = await openAsApp();
  t.after(() => store.close());
  const nowS = Math.floor(Date.now() / 1_000);
  await acceptClock(store, { ...noon, atMs: nowS * 1_000 });
  const page = { from: undefined, size: 1 };
  const { items } = await perform(store, { kind: 'ListExpired', nowS, page });
  const filingNos = items.map(({ filingNo }) => filingNo);
  const erased = await perform(store, { kind: 'EraseFilings', by: { ...tester, atS: nowS }, filingNos });
  assert.deepEqual([filingNos.length, erased.length], [1, 1]);
});

test('the role that reads reads no secret', { skip }, async (t) => {
  const { reader: session } = await databaseWithRoles(t);
  const { rows } = await session.query('SELECT filing_no FROM filing');
  assert.equal(rows.length, 1);
  await assert.rejects(session.query('SELECT secret FROM deployment'), { code: '42501' });
  await assert.rejects(session.query('DELETE FROM batch'), { code: '42501' });
  // All secrets are of this type.
  const bytes = await session.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND data_type = 'bytea'
       AND has_column_privilege(table_name::text, column_name::text, 'SELECT') ORDER BY 1`,
  );
  assert.deepEqual(
    bytes.rows.map(({ name }) => name),
    [
      'filing.salt',
      'idempotency_key.fingerprint',
      'log_checkpoint.time_stamp',
      'log_leaf.hashes',
      'provenance_record.salt',
      'webhook_delivery.response',
    ],
  );
});
