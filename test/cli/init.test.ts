import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { addFurtherMigration, furtherSchema, presentSchema } from '../store/further-migration.ts';
import { openRaw } from '../store/raw-database.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { productionSettings } from '../support/production.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const modeOf = (file: string): number => statSync(file).mode & 0o777;

type Settings = Record<string, string> & { readonly ARTSEAL_DATA_DIR: string };

/** The settings of a sandbox in a folder that does not exist yet. */
const sandbox = (t: TestContext): Settings => ({ ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data') });

/** The settings of a production in a folder that does not exist yet. */
const production = (t: TestContext): Settings => ({ ...sandbox(t), ...productionSettings(t) });

/** Starts a service with these settings, as `artseal serve` does. */
const serve = (t: TestContext, env: Settings) => startService(t, { env, dataDir: env.ARTSEAL_DATA_DIR });

test('a production does not start without a database, and starts with the one that init makes', async (t) => {
  const env = production(t);
  const dataDir = env.ARTSEAL_DATA_DIR;
  const artseal = artsealWith(env);
  await assert.rejects(serve(t, env), /no database in .*data: run artseal init, or set ARTSEAL_DATA_DIR/);
  assert.ok(!existsSync(dataDir), 'nothing is made');

  const made = await artseal.text('init');
  assert.match(made, new RegExp(`^created ${dataDir}/artseal\\.db: production, EUR$`, 'm'));
  assert.match(made, /master key of-2026/);
  assert.doesNotMatch(made, /before artseal serve/);
  assert.deepEqual(readdirSync(dataDir), ['artseal.db', 'artseal.lock']);
  assert.deepEqual([modeOf(dataDir), modeOf(join(dataDir, 'artseal.db'))], [0o700, 0o600]);
  const stamps = openRaw(t, dataDir).prepare('SELECT environment, currency FROM deployment').get();
  assert.deepEqual(stamps, { environment: 'production', currency: 'EUR' });
  await artseal.errors(1, 'init', /artseal\.db is there already/);
  await (await serve(t, env)).close();
});

/** What `artseal check` finds about the evidence log. */
async function logFinding(env: Settings): Promise<string> {
  const { printed } = await runHere(['check'], env);
  return printed.find((line) => line.includes('evidence log')) ?? 'nothing';
}

test('a production does not start without the origin of its evidence log', async (t) => {
  const env = production(t);
  const { ARTSEAL_TLOG_ORIGIN: origin = '', ...unset } = env;
  const wanted = /ARTSEAL_TLOG_ORIGIN must be set in production, to a name of yours/;
  assert.match(await artsealWith(unset).text('init'), wanted);
  await assert.rejects(serve(t, unset), wanted);
  assert.match(await logFinding(unset), new RegExp(`^fault .*${wanted.source}`));

  await (await serve(t, env)).close();
  const named =
    /ARTSEAL_TLOG_ORIGIN must be set to log\.example\/artseal in production: the evidence log has that name/;
  await assert.rejects(serve(t, unset), named);
  assert.match(await logFinding(unset), new RegExp(`^fault .*${named.source}`));
  const other = { ...env, ARTSEAL_TLOG_ORIGIN: 'log.example/other' };
  await assert.rejects(serve(t, other), /Set it to log\.example\/artseal/);
  assert.match(await logFinding({ ...unset, ARTSEAL_TLOG_ORIGIN: origin }), /^ok /);
});

test('a production is upgraded only with the origin of its evidence log', async (t) => {
  const env = production(t);
  const { ARTSEAL_TLOG_ORIGIN: origin, ...unset } = env;
  const dataDir = env.ARTSEAL_DATA_DIR;
  await artsealWith(env).text('init');
  openRaw(t, dataDir).prepare('INSERT INTO log_origin VALUES (1, ?, 0)').run(origin);
  addFurtherMigration(t);
  const named =
    /ARTSEAL_TLOG_ORIGIN must be set to log\.example\/artseal in production: the evidence log has that name/;
  await assert.rejects(serve(t, unset), named);
  await artsealWith(unset).errors(2, 'upgrade', named);
  const { printed } = await runHere(['upgrade', '--check'], unset);
  assert.match(printed.join('\n'), new RegExp(`^before artseal serve: ${named.source}`, 'm'));
  const checked = await runHere(['upgrade', '--check', '--json'], unset);
  assert.match(JSON.parse(checked.printed.join('\n')).faults.join('\n'), named);
  assert.match(await logFinding(unset), new RegExp(`^fault +evidence log .*${named.source}`));
  const schema = () => openRaw(t, dataDir).pragma('user_version', { simple: true });
  assert.equal(schema(), presentSchema);

  await serve(t, env);
  assert.equal(schema(), furtherSchema);
});

test('init of a production says which setting serve will reject', async (t) => {
  const simulated = () => artsealWith({ ...production(t), ARTSEAL_PAYMENT_PROVIDER: 'simulated' });
  const made = await simulated().text('init');
  assert.match(made, /^before artseal serve: ARTSEAL_PAYMENT_PROVIDER must name a real .*\.$/m);
  const { database, faults, ...shown } = await simulated().json('init');
  assert.deepEqual(shown, { environment: 'production', currency: 'EUR', masterKey: 'of-2026' });
  assert.ok(existsSync(database));
  assert.ok(made.endsWith(`before artseal serve: ${faults}`));
});

test('init of a sandbox makes a master key as well', async (t) => {
  const env = sandbox(t);
  const dataDir = env.ARTSEAL_DATA_DIR;
  const made = await artsealWith(env).text('init');
  assert.match(made, new RegExp(`^created ${dataDir}/artseal\\.db: sandbox, CNY$`, 'm'));
  assert.match(made, new RegExp(`^master key .*${dataDir}/master-key`, 'm'));
  assert.equal(modeOf(join(dataDir, 'master-key')), 0o600);

  const other = sandbox(t);
  assert.deepEqual(await artsealWith(other).json('init'), {
    ...{ database: join(other.ARTSEAL_DATA_DIR, 'artseal.db'), environment: 'sandbox', currency: 'CNY' },
    ...{ masterKeyFile: join(other.ARTSEAL_DATA_DIR, 'master-key'), faults: [] },
  });
});

test('init makes no database beside a file that only a lost database can have left', async (t) => {
  const env = sandbox(t);
  const dataDir = env.ARTSEAL_DATA_DIR;
  const artseal = artsealWith(env);
  await artseal.text('init');
  rmSync(join(dataDir, 'artseal.db'));
  for (const proof of [
    'sandbox-credentials.json',
    'simulated-provider.db',
    'log-checkpoint',
    'log-verified',
  ]) {
    writeFileSync(join(dataDir, proof), '', { mode: 0o600 });
    const message = new RegExp(`artseal\\.db is missing, but ${proof} is there`);
    await artseal.errors(1, 'init', message);
    rmSync(join(dataDir, proof));
  }
  assert.deepEqual(
    readdirSync(dataDir),
    ['artseal.lock', 'master-key'],
    'both may be older than the database',
  );
  await artseal.text('init');
});

test('a command that works on a database makes none', async (t) => {
  const env = sandbox(t);
  const why = await artsealWith(env).errors(1, 'key list');
  assert.match(why, /no database in .*: run artseal init or start artseal serve/);
  assert.ok(!existsSync(env.ARTSEAL_DATA_DIR));
});

test('neither init, upgrade nor a second serve touches the folder of a running server', async (t) => {
  const { dataDir } = await startService(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const artseal = artsealWith(env);
  const inUse =
    /another artseal uses .*, a server or a command: wait until it ends or stop it, or use another folder/;
  await artseal.errors(1, 'upgrade', inUse);
  renameSync(join(dataDir, 'artseal.db'), `${dataDir}.away`);
  await artseal.errors(1, 'init', inUse);
  await assert.rejects(serve(t, env), inUse);
  renameSync(`${dataDir}.away`, join(dataDir, 'artseal.db'));
});
