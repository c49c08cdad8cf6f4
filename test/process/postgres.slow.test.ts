import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { freeAddress } from '../support/free-address.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { productionSettings } from '../support/production.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, runCommand, serveWatched } from '../support/watched-command.ts';

const skip = skipUnlessPostgres();
const timeout = 300_000;

interface Settings extends Record<string, string> {
  readonly ARTSEAL_DATA_DIR: string;
  readonly ARTSEAL_DATABASE_URL: string;
}

/** The settings of a sandbox in an empty folder. */
const settingsFor = (t: TestContext, url: string): Settings => ({
  ...{ ARTSEAL_DATA_DIR: join(temporaryFolder(t), 'data'), ARTSEAL_DATABASE_URL: url },
});

/** The API key of the sandbox's platform. */
const platformOf = ({ ARTSEAL_DATA_DIR: dataDir }: Settings) =>
  JSON.parse(readFileSync(join(dataDir, 'sandbox-credentials.json'), 'utf8'));

test('serve makes its tables in an empty database, and finds them again', { skip, timeout }, async (t) => {
  const env = settingsFor(t, await createDatabase(t));
  const dataDir = env.ARTSEAL_DATA_DIR;
  const service = await serveWatched(t, env);
  const platform = platformOf(env);
  const { status, json } = await fileArtwork(service, platform);
  const { filingNo } = json;
  assert.deepEqual([status, /^AS-\d{4}-000001$/.test(filingNo)], [200, true]);
  assert.ok(!existsSync(join(dataDir, 'artseal.db')));
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);

  await t.test('check finds no fault while it serves, and commands reach it', async () => {
    const check = await runCommand(['check'], env);
    assert.equal(check.code, 0, check.stdout);
    assert.match(check.stdout, /^ok +database +postgres:.*PostgreSQL \d+/m);
    assert.match(check.stdout, /^ok +serving +the process \d+ serves this folder/m);
    const keys = await runCommand(['key', 'list'], env);
    assert.match(keys.stdout, /sandbox-platform/);
  });

  await t.test('the server takes no backups', async () => {
    const withoutUrl = { ARTSEAL_DATA_DIR: dataDir };
    const backup = await runCommand(['backup', join(dataDir, 'b.tar')], withoutUrl);
    assertOneLine(backup, 1, /BACKUP_FAILED: PostgreSQL has backups of its own: use pg_basebackup/);
    assertOneLine(
      await runCommand(['backup', './b.tar'], env),
      2,
      /ARTSEAL_DATABASE_URL is set.*pg_basebackup/,
    );
    assert.ok(!existsSync(join(dataDir, 'b.tar')));
  });

  await t.test('a second server in the folder, or on the database, does not start', async (t) => {
    const { ARTSEAL_DATABASE_URL: url } = settingsFor(t, await createDatabase(t));
    const inFolder = await runBounded(t, ['serve'], { ...env, ARTSEAL_DATABASE_URL: url });
    assertOneLine(inFolder, 1, /another artseal uses .*data, a server or a command/);
    const onDatabase = await runBounded(t, ['serve'], {
      ...settingsFor(t, env.ARTSEAL_DATABASE_URL),
      ARTSEAL_MASTER_KEY_FILE: join(dataDir, 'master-key'),
    });
    assertOneLine(onDatabase, 2, /ARTSEAL_PAYMENT_PROVIDER must not be simulated/);
  });

  assert.equal(await service.stop(), 0);
  const again = await serveWatched(t, env);
  const found = await send(again.publicUrl, platform, {
    method: 'GET',
    target: `/api/v1/filing/${filingNo}`,
  });
  assert.deepEqual([found.status, found.json.filingNo], [200, filingNo]);
  const next = await fileArtwork(again, platform);
  assert.match(next.json.filingNo, /^AS-\d{4}-000002$/);
  assert.equal(await again.stop(), 0);
  assert.equal((await runCommand(['check'], env)).code, 0);
  assert.ok(!readdirSync(dataDir).includes('serving.json'));
});

test('a server that was killed starts again, also with other settings', {
  skip,
  timeout,
}, async (t) => {
  const env = settingsFor(t, await createDatabase(t));
  const service = await serveWatched(t, env);
  const killed = service.end();
  service.child.kill('SIGKILL');
  await killed;
  await serveWatched(t, { ...env, ARTSEAL_TIME_ZONE: 'Asia/Shanghai' });
});

test('a database that cannot be used ends the start with a line that says why', {
  skip,
  timeout,
}, async (t) => {
  const nowhere = await freeAddress();
  assertOneLine(
    await runBounded(t, ['serve'], settingsFor(t, `postgres://postgres@${nowhere}/artseal`)),
    1,
    new RegExp(`cannot connect to the database.*${nowhere} refused the connection: check`),
  );
  const withPassword = settingsFor(t, 'postgres://postgres:sesame@localhost/artseal');
  const rejected = await runBounded(t, ['serve'], withPassword);
  assertOneLine(rejected, 2, /ARTSEAL_DATABASE_URL must not contain a password.*_PASSWORD_FILE/);
  assert.ok(!existsSync(withPassword.ARTSEAL_DATA_DIR));
  assert.ok(!`${rejected.stdout}${rejected.stderr}`.includes('sesame'));
});

test('a production starts on the tables that init makes', { skip, timeout }, async (t) => {
  const env = {
    ...settingsFor(t, await createDatabase(t)),
    ...productionSettings(t),
  };
  assertOneLine(await runBounded(t, ['serve'], env), 1, /there is no folder .*data/);
  const made = await runCommand(['init'], env);
  assert.match(made.stdout, /^created the tables in postgres:.*: production, EUR$/m);
  assert.doesNotMatch(made.stdout, /before artseal serve/);
  const service = await serveWatched(t, env);
  assert.equal(await service.stop(), 0);
});
