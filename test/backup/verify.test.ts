import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { openBackup } from '../../src/backup/open.ts';
import { BackupRefused } from '../../src/backup/refused.ts';
import { takeBackup } from '../../src/backup/take.ts';
import { listTar, writeTar } from '../../src/backup/tar.ts';
import { verifyBackup } from '../../src/backup/verify.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addSandboxFiles, backedUp, newRegistry, noon, restored, unwatched } from './folder.ts';

/** What is wrong with a backup: the lines, or why it cannot be opened. */
async function faultsOf(file: string): Promise<readonly string[]> {
  try {
    return (await verifyBackup(file, unwatched)).faults;
  } catch (error) {
    assert.ok(error instanceof BackupRefused, String(error));
    return [error.message];
  }
}

/** The backup of a sandbox with filings. */
async function makeBackup(t: TestContext): Promise<string> {
  const original = await newRegistry(t);
  addSandboxFiles(original.dataDir);
  await original.file();
  await original.file();
  return backedUp(t, original.dataDir);
}

/** A copy of a backup with one byte changed. */
function withByteChanged(t: TestContext, file: string, offset: number): string {
  const copy = join(temporaryFolder(t), 'changed.tar');
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 0x10, offset);
  writeFileSync(copy, bytes);
  return copy;
}

test('a backup is sound and tells what it holds', async (t) => {
  const { manifest, faults } = await verifyBackup(await makeBackup(t), unwatched);
  assert.deepEqual(faults, []);
  assert.deepEqual(
    manifest.files.map(({ name }) => name),
    ['artseal.db', 'sandbox-credentials.json', 'master-key'],
  );
  assert.partialDeepStrictEqual(manifest.database, {
    environment: 'sandbox',
    currency: 'CNY',
    filings: 2,
    lastFilings: { 2026: 'AS-2026-000002' },
    orders: 0,
  });
  assert.equal(manifest.takenAt, '2026-11-21T12:00:00.000Z');
});

test('a byte that changed is found, in whichever part of a backup it is', async (t) => {
  const file = await makeBackup(t);
  const members = listTar(file);
  assert.equal(members.length, 4);
  for (const { name, offset, bytes } of members) {
    for (const [part, place] of [
      ['its header', offset - 512],
      ['its size', offset - 512 + 134],
      ['its beginning', offset],
      ['its middle', offset + Math.floor(bytes / 2)],
      ['its end', offset + bytes - 1],
    ] as const) {
      const faults = await faultsOf(withByteChanged(t, file, place));
      assert.notDeepEqual(faults, [], `${name}, ${part}`);
    }
  }
});

test('a backup that is cut off anywhere, or goes on behind its end, is refused', async (t) => {
  const file = await makeBackup(t);
  const whole = readFileSync(file).length;
  for (const bytes of [0, 100, 512, 2_000, whole - 1_024, whole - 512, whole - 1]) {
    const cut = join(temporaryFolder(t), 'cut.tar');
    copyFileSync(file, cut);
    truncateSync(cut, bytes);
    assert.notDeepEqual(await faultsOf(cut), [], `${bytes} bytes`);
  }
  appendFileSync(file, 'x');
  assert.match((await faultsOf(file)).join(), /does not end where it should/);
});

/** A backup of these files, with a manifest that fits them but for what `over` says. */
async function forged(t: TestContext, file: string, names: readonly string[], manifestNames = names) {
  const { manifest, members } = await openBackup(file);
  const [database] = members;
  assert.ok(database);
  const from = readFileSync(file).subarray(database.offset, database.offset + database.bytes);
  const files = manifestNames.map((name) => ({ ...manifest.files[0], name }));
  const text = Buffer.from(JSON.stringify({ ...manifest, files }));
  const target = join(temporaryFolder(t), 'forged.tar');
  await writeTar(
    target,
    [{ name: 'manifest.json', from: text }, ...names.map((name) => ({ name, from }))],
    0,
    unwatched,
  );
  return target;
}

test('files with other names than those of a backup are refused, so that none gets out of the folder', async (t) => {
  const file = await makeBackup(t);
  for (const [names, manifestNames] of [
    [['artseal.db', '../escaped']],
    [['artseal.db', '/tmp/escaped']],
    [['artseal.db', 'restore.partial/../../escaped']],
    [['artseal.db', 'artseal.db-wal']],
    [['artseal.db', 'serving.lock']],
    [['artseal.db', 'artseal.db']],
    [['simulated-institution.db']],
    [['artseal.db', 'master-key'], ['artseal.db']],
    [['artseal.db'], ['artseal.db', 'master-key']],
    [
      ['master-key', 'artseal.db'],
      ['artseal.db', 'master-key'],
    ],
    [[]],
  ] as const) {
    const forgery = await forged(t, file, names, manifestNames);
    const into = join(temporaryFolder(t), 'into');
    await assert.rejects(restored(t, forgery, { into }), BackupRefused, names.join());
    assert.deepEqual(existsSync(into) ? readdirSync(into) : [], []);
    assert.deepEqual(
      readdirSync(dirname(into)).filter((name) => name !== 'into'),
      [],
    );
  }
  await restored(t, await forged(t, file, ['artseal.db']));
});

test('links and folders in an archive are refused', async (t) => {
  const file = await makeBackup(t);
  const [, database] = listTar(file);
  assert.ok(database);
  for (const type of ['1', '2', '5', 'x', 'g', 'L']) {
    const bytes = readFileSync(file);
    const header = database.offset - 512;
    bytes.write(type, header + 156, 'ascii');
    bytes.write('        ', header + 148, 'ascii');
    const sum = bytes.subarray(header, header + 512).reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, header + 148, 'ascii');
    const changed = join(temporaryFolder(t), 'link.tar');
    writeFileSync(changed, bytes);
    assert.match((await faultsOf(changed)).join(), /damaged or foreign header/);
  }
});

/** A backup whose database was changed before its checksums were made. */
async function tampered(t: TestContext, sql: string): Promise<string> {
  const original = await newRegistry(t);
  await original.file();
  await original.store.close();
  const raw = new Sqlite(join(original.dataDir, 'artseal.db'));
  raw.unsafeMode();
  raw.exec(`PRAGMA writable_schema = ON; DROP TRIGGER filing_never_changes; ${sql}`);
  raw.close();
  return backedUp(t, original.dataDir);
}

test('what is no regular file is refused unopened: to open a pipe would wait for ever', async () => {
  await assert.rejects(openBackup('/dev/null'), { message: '/dev/null is no regular file.' });
});

test('a filing that is not what was hashed is named', async (t) => {
  const backup = await tampered(t, "UPDATE filing SET author = 'somebody else'");
  assert.deepEqual(await faultsOf(backup), ['AS-2026-000001 is not what its evidence hash was made of']);
  await assert.rejects(restored(t, backup), /AS-2026-000001 is not what its evidence hash was made of/);
});

test('an index that does not agree with its table is found', async (t) => {
  const backup = await tampered(
    t,
    "UPDATE sqlite_schema SET sql = replace(sql, '(`filing_no`)', '(`hash`)') WHERE name = 'filing_filing_no_unique'",
  );
  assert.match((await faultsOf(backup)).join(), /artseal\.db is damaged: .*filing_filing_no_unique/);
});

test('a backup of a newer version is refused before it is restored', async (t) => {
  const original = await newRegistry(t);
  await original.store.close();
  const raw = new Sqlite(join(original.dataDir, 'artseal.db'));
  raw.pragma('user_version = 99');
  raw.close();
  assert.match((await faultsOf(await backedUp(t, original.dataDir))).join(), /newer artseal \(schema 99/);
});

test('of a damaged database no backup is made', async (t) => {
  const original = await newRegistry(t);
  await original.file();
  await original.store.close();
  const database = join(original.dataDir, 'artseal.db');
  const bytes = readFileSync(database);
  bytes.fill(0xff, 3 * 4_096, 8 * 4_096);
  writeFileSync(database, bytes);
  const folder = temporaryFolder(t);
  const target = join(folder, 'backup.tar');
  const order = { dataDir: original.dataDir, target, nowMs: noon.atMs, progress: unwatched };
  await assert.rejects(takeBackup(order), /artseal\.db is damaged: .*keep the backups from before/);
  assert.deepEqual(readdirSync(folder), []);
});

test('a backup is refused where its name is taken, its folder missing, or the disk too full', async (t) => {
  const { dataDir } = await newRegistry(t);
  const folder = temporaryFolder(t);
  const target = join(folder, 'backup.tar');
  const order = { dataDir, target, nowMs: noon.atMs, progress: unwatched };
  await assert.rejects(takeBackup({ ...order, freeBytesOf: () => 100_000 }), /needs .* MB free for a moment/);
  await assert.rejects(takeBackup({ ...order, target: join(folder, 'none', 'b') }), /there is no folder/);
  await assert.rejects(takeBackup({ ...order, dataDir: folder }), /there is no database/);
  writeFileSync(target, 'mine');
  await assert.rejects(takeBackup(order), /is there already/);
  assert.equal(readFileSync(target, 'utf8'), 'mine');
  assert.deepEqual(readdirSync(folder), ['backup.tar']);
});

test('work that is given up leaves nothing', async (t) => {
  const { dataDir } = await newRegistry(t);
  for (const until of ['copying', 'checking', 'packing']) {
    const folder = temporaryFolder(t);
    const progress = (step: string) => {
      if (step.startsWith(until)) throw new Error('given up');
    };
    const order = { dataDir, target: join(folder, 'backup.tar'), nowMs: noon.atMs, progress };
    await assert.rejects(takeBackup(order), /given up/);
    assert.deepEqual(readdirSync(folder), []);
  }
});
