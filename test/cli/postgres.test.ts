import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { checkDeployment } from '../../src/operations/check/deployment.ts';
import { systemClock } from '../../src/operations/registry.ts';
import { migrations } from '../../src/store/postgres/upgrade.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { eventually } from '../support/eventually.ts';
import { anyAddresses } from '../support/free-address.ts';
import { createDatabase, runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { productionSettings } from '../support/production.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessPostgres();

type Settings = Record<string, string> & {
  readonly ARTSEAL_DATA_DIR: string;
  readonly ARTSEAL_DATABASE_URL: string;
};

/** The settings of a sandbox with an empty database, in a folder that does not exist yet. */
async function sandbox(t: TestContext): Promise<Settings> {
  const dataDir = join(temporaryFolder(t), 'new', 'data');
  return { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_DATABASE_URL: await createDatabase(t) };
}

const databaseName = (url: string): string => new URL(url.replace('@', '@localhost')).pathname.slice(1);

/** The findings of `artseal check` about a part. */
async function findings(env: Settings, part: string): Promise<string[]> {
  const { printed } = await runHere(['check', '--json'], env);
  return printed
    .map((line) => JSON.parse(line))
    .filter((finding) => finding.part === part)
    .map(({ level, text }) => `${level}: ${text}`);
}

/** Adds a migration that a later version could have, until the test ends. */
function addMigration(t: TestContext): void {
  migrations.push({ name: '9999_further', sql: 'ALTER TABLE caller ADD further text' });
  t.after(() => migrations.pop());
}

test('init makes the tables, and commands work on them without a server', { skip }, async (t) => {
  const env = await sandbox(t);
  const artseal = artsealWith(env);
  const { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_DATABASE_URL: url } = env;
  await artseal.errors(1, 'key list', /there is no folder .*data: set ARTSEAL_DATA_DIR/);
  assert.ok(!existsSync(dataDir), 'nothing is made');

  const made = await artseal.text('init');
  assert.ok(made.startsWith(`created the tables in ${url}: sandbox, CNY\n`), made);
  assert.deepEqual(readdirSync(dataDir).sort(), ['artseal.lock', 'master-key']);
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
  await artseal.errors(1, 'init', /has the tables of Artseal already/);

  await artseal.lines('key create --name gallery --tier STANDARD --reason test');
  const [key] = await artseal.list('key list');
  assert.equal(key.caller, 'gallery');
  await artseal.lines('platform suspend gallery --reason test');
  assert.match(await artseal.text('platform list'), /SUSPENDED .*gallery/);
  assert.match(await artseal.text('clock show'), /filings +are accepted/);
  assert.match(await artseal.text('audit-log'), /platform suspend/);
  const erased = await artseal.json('retention purge --erase --reason test');
  assert.deepEqual([erased.filings, erased.left], [0, null]);
});

test('check looks at PostgreSQL in place of a file, and leaves the folder as it is', { skip }, async (t) => {
  const env = await sandbox(t);
  const { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_DATABASE_URL: url } = env;
  assert.deepEqual(await findings(env, 'database'), [
    `warning: ${url} has no tables of Artseal yet: artseal serve makes them`,
  ]);
  assert.ok(!existsSync(dataDir));
  await artsealWith(env).lines('init');

  const names = readdirSync(dataDir);
  const all = await artsealWith({ ...env, ...anyAddresses }).lines('check');
  assert.deepEqual(readdirSync(dataDir), names);
  assert.ok(!all.some((line) => line.includes('artseal.db')), all.join('\n'));
  const [database = '', ...more] = await findings(env, 'database');
  assert.deepEqual(more, []);
  assert.match(
    database,
    /^ok: postgres:.*: sandbox in CNY, schema \d+, PostgreSQL [\d.]+, role postgres, \d+ MiB, without a/,
  );
  assert.deepEqual(await findings(env, 'numbers'), ['ok: 0 of 999999 filing numbers of this year are used']);
  assert.match((await findings(env, 'evidence log')).join(), /^ok: it gets its name and its key/);
  assert.match((await findings(env, 'backup')).join(), /^unchecked: .*pg_basebackup with WAL archiving/);
  assert.match((await findings(env, 'master key')).join(), /^ok: main encrypts/);
  assert.deepEqual(await findings({ ...env, ARTSEAL_CURRENCY: 'EUR' }, 'database'), [
    `fault: ${url} is in CNY: set ARTSEAL_CURRENCY to match`,
  ]);
});

test('check names a replication slot that nobody uses, and compares the clocks', { skip }, async (t) => {
  const env = await sandbox(t);
  await artsealWith(env).lines('init');
  const slot = "SELECT pg_create_physical_replication_slot('left_over', true)";
  await runSql(env.ARTSEAL_DATABASE_URL, slot);
  const clock = { ...systemClock, nowMs: () => Date.now() + 60_000 };
  const found = await Array.fromAsync(checkDeployment({ ...process.env, ...env }, clock));
  await runSql(env.ARTSEAL_DATABASE_URL, "SELECT pg_drop_replication_slot('left_over')");
  const text = found.map(({ level, text }) => `${level}: ${text}`).join('\n');
  assert.match(text, /^warning: nobody uses the replication slot left_over/m);
  assert.match(text, /^warning: the clock of PostgreSQL is 60 s behind/m);
});

test('a server warns while its clock is far from that of the database', { skip }, async (t) => {
  const { ARTSEAL_DATABASE_URL } = await sandbox(t);
  let aheadMs = -60_000;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
  const { logLines } = await startService(t, { clock, env: { ARTSEAL_DATABASE_URL } });
  const linesLike = (text: string) => logLines.filter((line) => line.includes(text));
  assert.equal(linesLike('the clock of PostgreSQL is 60 s ahead of that of this machine').length, 1);
  aheadMs = 0;
  await eventually(
    'the clock agrees',
    30_000,
    () => linesLike('agrees with that of the database').length === 1,
  );
  aheadMs = 60_000;
  await eventually('the clock differs', 30_000, () => linesLike('PostgreSQL is 60 s behind').length === 1);
});

test('check finds a server that loses commits, and no server', { skip }, async (t) => {
  const env = await sandbox(t);
  const { ARTSEAL_DATABASE_URL: url } = env;
  await artsealWith(env).lines('init');
  await runSql(url, `ALTER DATABASE ${databaseName(url)} SET synchronous_commit = off`);
  assert.match((await findings(env, 'database')).at(-1) ?? '', /^fault: .*set synchronous_commit = on$/);

  const nowhere = { ...env, ARTSEAL_DATABASE_URL: 'postgres://artseal@/artseal?host=/nowhere' };
  const [fault = '', ...more] = await findings(nowhere, 'database');
  assert.match(fault, /^fault: cannot connect to the database: there is no socket in \/nowhere/);
  assert.deepEqual(more, []);
  assert.match((await findings(nowhere, 'master key')).join(), /^unchecked/);
});

test('in production, check warns if the role that serves may change the tables', { skip }, async (t) => {
  const env = {
    ...(await sandbox(t)),
    ...productionSettings(t),
  };
  const { ARTSEAL_DATABASE_URL: url } = env;
  await runSql(url, 'CREATE ROLE check_owner LOGIN', 'CREATE ROLE check_app LOGIN');
  await runSql(url, `ALTER DATABASE ${databaseName(url)} OWNER TO check_owner`);
  const as = (role: string) => ({ ...env, ARTSEAL_DATABASE_URL: url.replace('postgres@', `${role}@`) });
  const [asOwner, asApp] = [as('check_owner'), as('check_app')];
  await artsealWith(asOwner).lines('init');
  assert.match(
    (await findings(asOwner, 'database')).join('\n'),
    /^warning: the role check_owner may change/m,
  );
  assert.match(
    (await findings(asApp, 'database')).join(),
    /^fault: the role check_app has no right to \w+ in .* artseal database roles --app check_app/,
  );

  const grants = await artsealWith({}).text('database roles --app check_app');
  await runSql(asOwner.ARTSEAL_DATABASE_URL, grants);
  const [database = '', ...more] = await findings(asApp, 'database');
  assert.match(database, /^ok: .*: production in EUR, .*, role check_app,/);
  assert.match(more.join(), /^unchecked: [^:]*: GRANT pg_read_all_stats TO "check_app"$/);
  await runSql(url, 'GRANT pg_read_all_stats TO check_app');
  assert.equal((await findings(asApp, 'database')).length, 1);
  await artsealWith(asApp).lines('key create --name gallery --tier STANDARD --reason test');
});

test('upgrade runs the missing migrations, and says what it did', { skip }, async (t) => {
  const env = await sandbox(t);
  const artseal = artsealWith(env);
  const { ARTSEAL_DATABASE_URL: url } = env;
  await artseal.errors(1, 'upgrade', /no tables of Artseal: run artseal init/);
  await artseal.lines('init');
  const schema = migrations.length;
  const nothing = `${url} has schema ${schema}: there is nothing to do`;
  assert.deepEqual(
    [await artseal.text('upgrade --check'), await artseal.text('upgrade')],
    [nothing, nothing],
  );

  addMigration(t);
  const due = await runHere(['upgrade', '--check', '--json'], env);
  assert.equal(due.code, 3);
  assert.deepEqual(JSON.parse(due.printed.join()), {
    ...{ database: url, schema, newSchema: schema + 1, migrations: ['9999_further'], faults: [] },
  });
  assert.match((await findings(env, 'database')).join(), /^warning: .*run artseal upgrade/);
  await artseal.errors(2, 'upgrade --without-copy', /makes no copy/);
  assert.equal(await artseal.text('upgrade'), `${url} had schema ${schema} and has schema ${schema + 1} now`);
  assert.equal((await runHere(['upgrade', '--check'], env)).code, 0);
  assert.match((await findings(env, 'database')).join(), /^ok: /);
});

test('backup and restore say what to use instead', async (t) => {
  const url = 'postgres://artseal@db.example/artseal';
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_DATABASE_URL: url });
  for (const line of ['backup ./b.tar', 'backup rotate --into . --keep 1', 'restore b.tar --into folder'])
    await artseal.errors(2, line, /pg_basebackup with WAL archiving, or the managed backups/);
});

test('a folder that belongs to another database gets no empty one', { skip }, async (t) => {
  const env = await sandbox(t);
  const artseal = artsealWith(env);
  await artseal.lines('init');
  const { ARTSEAL_DATA_DIR: dataDir } = env;
  const others = { ...env, ARTSEAL_DATABASE_URL: await createDatabase(t) };
  writeFileSync(join(dataDir, 'log-checkpoint'), '');
  await artsealWith(others).errors(1, 'init', /log-checkpoint is in .*use an empty folder/);
  assert.match((await findings(others, 'database')).join(), /has no tables of Artseal/);
});
