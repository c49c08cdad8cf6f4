import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { takeBack } from '../../src/store/sqlite/downgrade.ts';
import { earlierSchema, newestSchema } from '../store/earlier-database.ts';
import { readableNames } from '../support/copy-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, serveWatched } from '../support/watched-command.ts';

const [failed, usage] = [1, 2];
const modeOf = (file: string): number => statSync(file).mode & 0o777;

/** What the database of a folder is stamped with. */
function stampsIn(dataDir: string): unknown {
  const client = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  const stamps = client.prepare('SELECT environment, currency FROM deployment').get();
  client.close();
  return stamps;
}

/** A production as its operator sets it up, in a folder that is not there yet. */
function production(t: TestContext): Record<string, string> & { readonly ARTSEAL_DATA_DIR: string } {
  const folder = temporaryFolder(t);
  const keys = join(folder, 'keys');
  writeFileSync(keys, `of-2026:${'0123456789abcdef'.repeat(4)}\n`, { mode: 0o600 });
  return {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_CURRENCY: 'EUR',
    ARTSEAL_DATA_DIR: join(folder, 'data'),
    ARTSEAL_MASTER_KEY_FILE: keys,
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
    ARTSEAL_PAYMENT_PROVIDER: 'stripe',
    ARTSEAL_STRIPE_API_KEY: 'sk_live_1',
    ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_1',
  };
}

describe('the first database of a deployment', { concurrency: 2, timeout: 300_000 }, () => {
  test('production does not start without one, and does once init has made it', async (t) => {
    const env = production(t);
    const dataDir = env.ARTSEAL_DATA_DIR;
    const refused = await runBounded(t, ['serve'], env);
    assertOneLine(refused, failed, /no database in .*data: run artseal init, or set ARTSEAL_DATA_DIR/);
    assert.throws(() => readdirSync(dataDir), { code: 'ENOENT' }, 'nothing was made');

    const made = await runBounded(t, ['init'], env);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, new RegExp(`^created ${dataDir}/artseal\\.db: production, EUR$`, 'm'));
    assert.match(made.stdout, /master key of-2026/);
    assert.doesNotMatch(made.stdout, /before artseal serve/);
    assert.deepEqual(readdirSync(dataDir), ['artseal.db']);
    assert.deepEqual([modeOf(dataDir), modeOf(join(dataDir, 'artseal.db'))], [0o700, 0o600]);
    assert.deepEqual(stampsIn(dataDir), { environment: 'production', currency: 'EUR' });

    assertOneLine(await runBounded(t, ['init'], env), failed, /artseal\.db is there already/);
    const service = await serveWatched(t, env);
    assert.equal(await service.stop(), 0, service.stderr());
  });

  test('production does not start without the origin of its evidence log', async (t) => {
    const env = production(t);
    const { ARTSEAL_TLOG_ORIGIN: _, ...unset } = env;
    const asked = /ARTSEAL_TLOG_ORIGIN must be set in production, to a name of yours/;
    assert.match((await runBounded(t, ['init'], unset)).stdout, asked);
    assertOneLine(await runBounded(t, ['serve'], unset), usage, asked);
    const log = async (more: Record<string, string>) => {
      const { stdout } = await runBounded(t, ['check'], { ...unset, ...more });
      return stdout.split('\n').find((line) => line.includes('evidence log'));
    };
    assert.match((await log({})) ?? '', new RegExp(`^fault .*${asked.source}`));

    const service = await serveWatched(t, env);
    assert.equal(await service.stop(), 0, service.stderr());
    const named =
      /ARTSEAL_TLOG_ORIGIN must be set to log\.example\/artseal in production: the evidence log has that name/;
    assertOneLine(await runBounded(t, ['serve'], unset), usage, named);
    assert.match((await log({})) ?? '', new RegExp(`^fault .*${named.source}`));
    const other = { ...env, ARTSEAL_TLOG_ORIGIN: 'log.example/other' };
    assertOneLine(await runBounded(t, ['serve'], other), failed, /Set it to log\.example\/artseal/);
    assert.match((await log({ ARTSEAL_TLOG_ORIGIN: 'log.example/artseal' })) ?? '', /^ok /);
  });

  test('a production is upgraded only with the origin of its evidence log, and serve says that it did', async (t) => {
    const env = production(t);
    const { ARTSEAL_TLOG_ORIGIN: origin, ...unset } = env;
    const dataDir = unset.ARTSEAL_DATA_DIR;
    assert.equal((await runBounded(t, ['init'], env)).code, 0);
    const file = join(dataDir, 'artseal.db');
    takeBack(file, earlierSchema);
    const raw = new Sqlite(file);
    raw.prepare('INSERT INTO log_origin VALUES (1, ?, 0)').run(origin);
    raw.close();
    const schema = () => {
      const client = new Sqlite(file, { readonly: true });
      const found = client.pragma('user_version', { simple: true });
      client.close();
      return found;
    };

    const named =
      /ARTSEAL_TLOG_ORIGIN must be set to log\.example\/artseal in production: the evidence log has that name/;
    assertOneLine(await runBounded(t, ['serve'], unset), usage, named);
    assertOneLine(await runBounded(t, ['upgrade'], unset), usage, named);
    const plan = await runBounded(t, ['upgrade', '--check'], unset);
    assert.match(plan.stdout, new RegExp(`^before artseal serve: ${named.source}`, 'm'));
    const { stdout } = await runBounded(t, ['check'], unset);
    assert.match(stdout, new RegExp(`^fault +evidence log .*${named.source}`, 'm'));
    assert.equal(schema(), earlierSchema);

    const service = await serveWatched(t, env);
    assert.equal(schema(), newestSchema);
    assert.equal(await service.stop(), 0, service.stderr());
    const lines = service
      .stderr()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const said = lines.find(({ msg }) => msg === 'the database was upgraded to the schema of this version');
    assert.deepEqual([said?.fromSchema, said?.toSchema], [earlierSchema, newestSchema], service.stderr());
  });

  test('init of a production says in a line what serve will refuse', async (t) => {
    const env = { ...production(t), ARTSEAL_PAYMENT_PROVIDER: 'simulated' };
    const made = await runBounded(t, ['init'], env);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^before artseal serve: ARTSEAL_PAYMENT_PROVIDER must name a real .*\.$/m);
  });

  test('init of a sandbox makes a master key as well, and the first start gives credentials', async (t) => {
    const dataDir = join(temporaryFolder(t), 'data');
    const env = { ARTSEAL_DATA_DIR: dataDir };
    const made = await runBounded(t, ['init'], env);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, new RegExp(`^created ${dataDir}/artseal\\.db: sandbox, CNY$`, 'm'));
    assert.match(made.stdout, new RegExp(`^master key .*${dataDir}/master-key`, 'm'));
    assert.equal(modeOf(join(dataDir, 'master-key')), 0o600);
    const service = await serveWatched(t, env);
    assert.equal(await service.stop(), 0);
    assert.match(service.stdout(), /sandbox-credentials\.json/);

    rmSync(join(dataDir, 'artseal.db'));
    const own = ['sandbox-credentials.json', 'simulated-provider.db', 'log-checkpoint', 'log-verified'];
    for (const proof of [...own, 'serving.lock']) {
      const message = new RegExp(`artseal\\.db is missing, but ${proof} is there`);
      assertOneLine(await runBounded(t, ['init'], env), failed, message);
      rmSync(join(dataDir, proof));
    }
    assert.deepEqual(readdirSync(dataDir), ['master-key'], 'which may have been there before any database');
    assert.equal((await runBounded(t, ['init'], env)).code, 0);
  });

  test('a command that works on a database makes none', async (t) => {
    const dataDir = join(temporaryFolder(t), 'data');
    const result = await runBounded(t, ['key', 'list'], { ARTSEAL_DATA_DIR: dataDir });
    assertOneLine(result, failed, /no database in .*: run artseal init or start artseal serve/);
    assert.throws(() => readdirSync(dataDir), { code: 'ENOENT' });
  });
});

/** Digests of the files of a folder, by name, without what SQLite clears up when a lock is taken again. */
const digestsIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readableNames(folder)
      .filter((name) => name !== 'serving.lock-journal')
      .map((name) => [name, hash('sha256', readFileSync(join(folder, name)))]),
  );

const lostOne =
  /artseal\.db is missing, but artseal\.db-wal is there: it was moved or removed\. Put it back; or use an empty folder\.\n$/;

describe('a database that was moved away from beside its log', { concurrency: 2, timeout: 300_000 }, () => {
  for (const [kind, settings] of [
    ['sandbox', () => ({})],
    ['production', production],
  ] as const) {
    test(`${kind}: nothing is made in its place, and it is whole when it is back`, async (t) => {
      const env = { ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data'), ...settings(t) };
      const dataDir = env.ARTSEAL_DATA_DIR;
      const [database, away] = [join(dataDir, 'artseal.db'), `${dataDir}.away`];
      assert.equal((await runBounded(t, ['init'], env)).code, 0);
      const service = await serveWatched(t, env);
      const issued = ['key', 'create', '--name', 'Gallery One', '--tier', 'TRIAL'];
      assert.equal((await runBounded(t, issued, env)).code, 0);
      renameSync(database, away);
      for (const words of [['init'], ['serve']]) {
        assertOneLine(await runBounded(t, words, env), failed, /another artseal serves/);
      }
      assert.equal(await service.stop('SIGKILL'), null);
      const before = digestsIn(dataDir);
      for (const words of [['init'], ['serve'], ['key', 'list'], ['platform', 'list'], ['escrow', 'list']]) {
        assertOneLine(await runBounded(t, words, env), failed, lostOne);
      }
      assert.deepEqual(digestsIn(dataDir), before);
      renameSync(away, database);
      assert.match((await runBounded(t, ['key', 'list'], env)).stdout, /Gallery One/);
    });
  }
});
