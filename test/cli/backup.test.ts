import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { runArtseal } from '../../src/cli/artseal.ts';
import {
  addFurtherMigration,
  further,
  furtherSchema,
  makeEarlierDatabase,
  presentSchema,
} from '../store/further-migration.ts';
import { artsealWith, runHere } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { eventually } from '../support/eventually.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a backup of a production has only its database, and the command names the master key to keep', async (t) => {
  const dataDir = temporaryFolder(t);
  const masterKeyFile = join(temporaryFolder(t), 'master-key');
  writeFileSync(masterKeyFile, `k7:${'7'.repeat(64)}\n`, { mode: 0o600 });
  const env = {
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY_FILE: masterKeyFile,
  };
  await artsealWith(env).text('init');
  await artsealWith(env).text('key create --name Gallery --tier TRIAL');
  writeFileSync(join(dataDir, 'master-key'), `k7:${'7'.repeat(64)}\n`, { mode: 0o600 });
  const target = join(temporaryFolder(t), 'b.tar');
  const taken = await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).text(`backup ${target}`);
  assert.match(
    taken,
    /THE MASTER KEY IS NOT IN IT\. Only these decrypt its secrets; keep them elsewhere: k7/,
  );
  assert.ok(!readFileSync(target).includes('7'.repeat(64)));
  const into = join(temporaryFolder(t), 'restored');
  const restored = await artsealWith({}).text(`restore ${target} --into ${into}`);
  assert.match(restored, /serve needs the master keys k7, which are not in a backup/);
  assert.deepEqual(readdirSync(into), ['artseal.db']);
  const other = join(temporaryFolder(t), 'other');
  const shown = await artsealWith({}).json(`restore ${target} --into ${relative(process.cwd(), other)}`);
  assert.deepEqual([shown.into, shown.isLogPublished], [other, false]);
  const { file, filings, orders, masterKeys, holdsMasterKeys } = shown.backup;
  assert.deepEqual([file, filings, orders, masterKeys, holdsMasterKeys], [target, 0, 0, ['k7'], false]);
  const [skipped] = shown.skipped;
  assert.deepEqual([skipped.kind, skipped.after, skipped.through > 0], ['FILING', 0, true]);
});

for (const connection of connections) {
  test(`over ${connection}: a backup is taken, rotated and verified`, async (t) => {
    const folder = temporaryFolder(t);
    const isRemote = connection === 'a remote server';
    const scheduled = { ARTSEAL_BACKUP_DIR: folder, ARTSEAL_BACKUP_EVERY: '20d', ARTSEAL_BACKUP_KEEP: '1' };
    const artseal = await commandsOver(t, connection, { env: isRemote ? scheduled : {} });
    const place = (name: string) => (isRemote ? name : relative(process.cwd(), join(folder, name)));

    const [line = ''] = await eventually('the turn of this backup', 60_000, () =>
      artseal.lines(`backup ${place('b.tar')}`).catch((error) => {
        // The server takes a backup at its start.
        if (!/RATE_LIMITED/.test(error.message)) throw error;
        return false as const;
      }),
    );
    assert.ok(line.startsWith(`${join(folder, 'b.tar')}: sandbox, CNY, taken 2`), line);
    const { backup, faults } = await artseal.json(`backup verify ${place('b.tar')}`);
    assert.deepEqual([backup.file, backup.environment, faults], [join(folder, 'b.tar'), 'sandbox', []]);
    assert.match(await artseal.text(`backup verify ${place('b.tar')}`), /^sound: /m);
    await artseal.errors(
      1,
      `backup ${place('b.tar')}`,
      /^artseal: (?:BACKUP_FAILED: )?\S+b\.tar is there already: name another file\.$/,
    );
    const rotate = `backup rotate --into ${isRemote ? '.' : folder} --keep 1`;
    const { isNew, file } = await artseal.json(rotate);
    assert.deepEqual([isNew, dirname(file)], [true, folder]);
    assert.deepEqual(await artseal.lines(`${rotate} --if-older-than 24h`), [
      `not taken: the last one is young enough: ${file}`,
    ]);

    const bytes = readFileSync(join(folder, 'b.tar'));
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1);
    writeFileSync(join(folder, 'changed.tar'), bytes);
    await artseal.errors(
      1,
      `backup verify ${place('changed.tar')}`,
      /^artseal: \S+changed\.tar: artseal\.db is not what was backed up: its SHA-256 differs$/,
    );
    const [first = '', ...others] = await artseal.lines(`backup ${place('c.tar')} --progress --json`);
    assert.equal(JSON.parse(first).progress.step, 'copying artseal.db');
    assert.equal(JSON.parse(others.at(-1) ?? '').file, join(folder, 'c.tar'));
  });
}

test('a server that does not respond is reported, and --offline-copy needs none', async (t) => {
  const dataDir = temporaryFolder(t);
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  await artseal.text('init');
  const silent = createServer((socket) => socket.destroy()).listen({ path: join(dataDir, 'admin.sock') });
  t.after(() => silent.close());
  const file = join(temporaryFolder(t), 'b.tar');
  for (const command of [`backup ${file}`, `backup verify ${file}`])
    await artseal.errors(
      1,
      command,
      /^artseal: the server of \S+ does not respond \(.*\): see docs\/operate\/incidents\/server-hangs\.md$/,
    );
  await artseal.text(`backup ${file} --offline-copy`);
  assert.match(await artseal.text(`backup verify ${file} --offline-copy`), /^sound: /m);
  const rotate = `backup rotate --into ${dirname(file)} --keep 1 --offline-copy`;
  assert.match(await artseal.text(rotate), /^taken and verified: /);
  await artseal.errors(2, `${rotate} --url https://a:1`, /takes --url or --offline-copy, not both/);
});

test('under systemd a command writes no backup where only its own process would see it', async (t) => {
  const dataDir = temporaryFolder(t);
  const env = { ARTSEAL_DATA_DIR: dataDir, STATE_DIRECTORY: dataDir };
  await artsealWith(env).text('init');
  const elsewhere = temporaryFolder(t);
  await artsealWith(env).errors(
    1,
    `backup ${join(elsewhere, 'b.tar')}`,
    /^artseal: VALIDATION_FAILED: FILE must be in one of \S+: the service can write nowhere else$/,
  );
  assert.deepEqual(readdirSync(elsewhere), []);
  await artsealWith(env).text(`backup ${join(dataDir, 'b.tar')}`);
});

test('upgrade --check reports the work with exit code 3, and 0 once it is done', async (t) => {
  const { dataDir, copy } = await makeEarlierDatabase(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const upgrade = async (...words: string[]) => {
    const { code, printed } = await runHere(['upgrade', ...words], env);
    return { code, stdout: printed.join('\n') };
  };
  const check = await upgrade('--check');
  assert.equal(check.code, 3);
  for (const part of [`has schema ${presentSchema}`, `to run: ${further.name}`, copy, 'MB needed', 'about'])
    assert.ok(check.stdout.includes(part), `${part}: ${check.stdout}`);
  assert.ok(!existsSync(copy));
  const due = await upgrade('--check', '--json');
  assert.equal(due.code, 3);
  const migrations = [further.name];
  const schemas = { schema: presentSchema, newSchema: furtherSchema };
  const plan = JSON.parse(due.stdout);
  assert.partialDeepStrictEqual(plan, { ...schemas, migrations, copy, faults: [] });
  assert.ok(plan.neededBytes > 0 && plan.freeBytes > 0 && plan.estimatedSeconds > 0);

  const { database } = plan;
  assert.deepEqual(JSON.parse((await upgrade('--json')).stdout), { database, ...schemas, copy });
  const done = await upgrade('--check', '--json');
  assert.equal(done.code, 0);
  const { copy: none, ...nothing } = JSON.parse(done.stdout);
  assert.deepEqual([none, nothing.schema, nothing.migrations], [undefined, furtherSchema, []]);
  assert.match((await upgrade('--check')).stdout, /there is nothing to do$/);
  assert.equal((await upgrade()).stdout, `${database} has schema ${furtherSchema}`);
});

test('a terminal shows the progress of a backup, and clears it afterwards', async (t) => {
  const dataDir = temporaryFolder(t);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  await artsealWith(env).text('init');
  const target = join(temporaryFolder(t), 'b.tar');
  const shown: string[] = [];
  const terminal = {
    env,
    print: () => {},
    printError: () => {},
    showProgress: (text: string) => shown.push(text),
  };
  for (const [words, first] of [
    [['backup', target], /^copying artseal\.db: \d+\.\d MB of \d+\.\d MB$/],
    [['backup', 'verify', target], /^unpacking: \d+\.\d MB of \d+\.\d MB$/],
  ] as const) {
    shown.length = 0;
    assert.equal(await runArtseal([...words], terminal), 0);
    assert.match(shown[0] ?? '', first);
    assert.equal(shown.at(-1), '');
  }
});

test('upgrade --check says that a server uses the database', async (t) => {
  const { dataDir } = await startService(t);
  addFurtherMigration(t);
  const { printed } = await runHere(['upgrade', '--check'], { ARTSEAL_DATA_DIR: dataDir });
  assert.match(printed.join('\n'), /a server or another command uses the database: stop it first/);
});

testEveryConnection('backup');
