import assert from 'node:assert/strict';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  BackupError,
  checksumsOf,
  type Manifest,
  parseManifest,
} from '../../../src/operations/backup/manifest.ts';
import { takeBackup } from '../../../src/operations/backup/take.ts';
import { type TarSource, writeTar } from '../../../src/operations/backup/tar.ts';
import { openBackup, verifyBackup } from '../../../src/operations/backup/verify.ts';
import { faultsInLog } from '../../../src/store/sqlite/log-check.ts';
import { furtherSchema, upgradeFurther } from '../../store/further-migration.ts';
import { openRaw } from '../../store/raw-database.ts';
import { forgeIn } from '../../support/forging.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addSandboxFiles,
  backedUp,
  newRegistry,
  noon,
  openRegistryIn,
  restored,
  unwatched,
} from './folder.ts';

/** The faults of a backup, or why it cannot be opened. */
async function faultsOf(file: string): Promise<readonly string[]> {
  try {
    return (await verifyBackup(file, unwatched)).faults;
  } catch (error) {
    assert.ok(error instanceof BackupError, String(error));
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

test('a backup is sound and describes its contents', async (t) => {
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

/** How many bytes are tried: every seventh, so that each header and each line of the manifest has several. */
const byteStep = 7;

test('a backup is not opened if a byte outside the contents of its files has changed', async (t) => {
  const file = await makeBackup(t);
  const { members } = await openBackup(file);
  const bytes = readFileSync(file);
  const isOfFile = (place: number) =>
    members.some(({ offset, bytes: length }) => place >= offset && place < offset + length);
  const places = [...bytes.keys()].filter((place) => place % byteStep === 0 && !isOfFile(place));
  assert.ok(places.length > 600);
  const archive = openSync(file, 'r+');
  t.after(() => closeSync(archive));
  const put = (byte: number, place: number) => writeSync(archive, Buffer.of(byte), 0, 1, place);
  for (const place of places) {
    const byte = bytes.readUInt8(place);
    put(byte ^ 0x10, place);
    await assert.rejects(openBackup(file), BackupError, `byte ${place}`);
    put(byte, place);
  }
  await openBackup(file);
});

test('a changed byte of a file is found', async (t) => {
  const file = await makeBackup(t);
  const { members } = await openBackup(file);
  assert.equal(members.length, 3);
  for (const { name, offset, bytes } of members) {
    for (const place of [0, Math.floor(bytes / 2), bytes - 1]) {
      const faults = await faultsOf(withByteChanged(t, file, offset + place));
      assert.deepEqual(faults, [`${name} is not what was backed up: its SHA-256 differs`]);
    }
  }
});

test('a backup is rejected if it is cut off anywhere, or has bytes after its end', async (t) => {
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

/** The files in a backup, with their contents. */
async function sourcesOf(file: string): Promise<readonly TarSource[]> {
  const bytes = readFileSync(file);
  const { members } = await openBackup(file);
  return members.map(({ name, offset, bytes: length }) => ({
    name,
    from: bytes.subarray(offset, offset + length),
  }));
}

/** An archive of a manifest, its checksums and these files. */
async function packed(
  t: TestContext,
  manifest: object | null,
  sources: readonly TarSource[],
  checksums = (text: Buffer) => checksumsOf(text, (manifest as Manifest).files),
): Promise<string> {
  const text = Buffer.from(JSON.stringify(manifest, undefined, 2));
  const target = join(temporaryFolder(t), 'packed.tar');
  const head = [
    { name: 'manifest.json', from: text },
    { name: 'SHA256SUMS', from: checksums(text) },
  ];
  await writeTar(target, [...head, ...sources], noon.atMs / 1000, unwatched);
  return target;
}

test('a backup is rejected if its manifest and checksums do not agree, or if it has another format', async (t) => {
  const file = await makeBackup(t);
  const { manifest } = await openBackup(file);
  const sources = await sourcesOf(file);
  await openBackup(await packed(t, manifest, sources));
  for (const checksums of ['', checksumsOf(Buffer.from('another'), manifest.files)]) {
    const changed = await packed(t, manifest, sources, () => Buffer.from(checksums));
    await assert.rejects(openBackup(changed), /its manifest\.json and SHA256SUMS do not agree/);
  }
  const newer = await packed(t, { ...manifest, formatVersion: 3 }, sources);
  await assert.rejects(openBackup(newer), /has the backup format 3; this artseal reads format 2/);
});

test('a manifest is rejected if it contradicts the archive', async (t) => {
  const file = await makeBackup(t);
  const { manifest } = await openBackup(file);
  const sources = await sourcesOf(file);
  const { files } = manifest;
  for (const over of [
    { takenAt: '2026-11-21T12:00:01.000Z' },
    { holdsMasterKeys: false },
    { files: files.slice(0, -1) },
  ]) {
    const changed = await packed(t, { ...manifest, ...over }, sources);
    await assert.rejects(openBackup(changed), /something else than its manifest says/, JSON.stringify(over));
  }
  const otherKeys = await packed(t, { ...manifest, masterKeys: ['another'] }, sources);
  assert.match(
    (await faultsOf(otherKeys)).join(),
    /^artseal\.db holds something else than its manifest says$/,
  );
});

test('a made-up manifest with the right checksum is rejected in plain words', async (t) => {
  const file = await makeBackup(t);
  const { manifest } = await openBackup(file);
  const { database, files } = manifest;
  const sources = await sourcesOf(file);
  for (const wrong of [
    null,
    [],
    ...Object.keys(manifest).map((name) => ({ ...manifest, [name]: undefined })),
    ...Object.keys(manifest).map((name) => ({ ...manifest, [name]: {} })),
    ...Object.keys(database).map((name) => ({ ...manifest, database: { ...database, [name]: undefined } })),
    ...['name', 'bytes', 'sha256'].map((name) => ({
      ...manifest,
      files: files.map((each) => ({ ...each, [name]: null })),
    })),
    { ...manifest, database: { ...database, numberGaps: [null] } },
  ]) {
    const changed = await packed(t, wrong, sources, (text) => checksumsOf(text, files));
    const message = /\.tar (has a damaged manifest|is no backup of artseal|has the backup format .*)\.?$/;
    await assert.rejects(openBackup(changed), { name: 'BackupError', message }, JSON.stringify(wrong));
  }
  assert.throws(() => parseManifest('{'), { message: 'has a damaged manifest' });
});

/** A backup of these files, with a manifest that names these or other files. */
async function forged(t: TestContext, file: string, names: readonly string[], manifestNames = names) {
  const { manifest } = await openBackup(file);
  const [database] = await sourcesOf(file);
  assert.ok(database);
  const files = manifestNames.map((name) => ({ ...manifest.files[0], name }));
  const sources = names.map((name) => ({ ...database, name }));
  const holdsMasterKeys = manifestNames.includes('master-key');
  return packed(t, { ...manifest, holdsMasterKeys, files }, sources);
}

test('a backup with any other file name is rejected, so that no file leaves the folder', async (t) => {
  const file = await makeBackup(t);
  for (const [names, manifestNames] of [
    [['artseal.db', '../../escaped']],
    [['artseal.db', '/tmp/escaped']],
    [['artseal.db', 'restore.partial/../../escaped']],
    [['artseal.db', 'artseal.db-wal']],
    [['artseal.db', 'artseal.lock']],
    [['artseal.db', 'artseal.db']],
    [['simulated-provider.db']],
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
    await assert.rejects(restored(t, forgery, { into }), BackupError, names.join());
    assert.deepEqual(existsSync(into) ? readdirSync(into) : [], []);
    assert.deepEqual(
      readdirSync(dirname(into)).filter((name) => name !== 'into'),
      [],
    );
  }
  await restored(t, await forged(t, file, ['artseal.db']));
});

test('links and folders in an archive are rejected', async (t) => {
  const file = await makeBackup(t);
  const [database] = (await openBackup(file)).members;
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
  const raw = openRaw(t, original.dataDir);
  raw.unsafeMode();
  raw.exec(`PRAGMA writable_schema = ON; DROP TRIGGER filing_never_changes; ${sql}`);
  return backedUp(t, original.dataDir);
}

test('a file that is no regular file is not opened: to open a pipe could wait for ever', async () => {
  await assert.rejects(openBackup('/dev/null'), { message: '/dev/null is no regular file.' });
});

test('a filing that differs from its evidence hash is named', async (t) => {
  const backup = await tampered(t, "UPDATE filing SET author = 'somebody else'");
  assert.deepEqual(await faultsOf(backup), ['AS-2026-000001 is not what its evidence hash was made of']);
  await assert.rejects(restored(t, backup), /AS-2026-000001 is not what its evidence hash was made of/);
});

/** Changes of a row of leaves that were appended together, and the fault that names each. */
const wrongRows: Readonly<Record<string, readonly [sql: string, faults: readonly string[]]>> = {
  'a leaf that was changed': [
    `UPDATE log_leaf SET data = replace(data, 'AS-2026-000003', 'AS-2026-000999')`,
    ['leaf 3 of the evidence log (AS-2026-000999) is not what its hashes were made of'],
  ],
  'a hash that was changed': [
    `UPDATE log_leaf SET hashes = CAST(substr(hashes, 1, length(hashes) - 32) || zeroblob(32) AS blob)`,
    [
      'the leaves 8 to 9 of the evidence log (AS-2026-000008 to AS-2026-000009) are not what their hashes were made of',
    ],
  ],
  'a leaf too many': [
    "UPDATE log_leaf SET data = data || char(10) || '{}'",
    ['the leaves 0 to 9 of the evidence log are not what was written'],
  ],
  'a hash too few': [
    'UPDATE log_leaf SET hashes = substr(hashes, 1, length(hashes) - 32)',
    [
      'the leaves 8 to 9 of the evidence log (AS-2026-000008 to AS-2026-000009) are not what their hashes were made of',
    ],
  ],
  'rows over each other': [
    `INSERT INTO log_leaf SELECT 10, '{}', zeroblob(32), 9 FROM log_leaf`,
    ['leaf 10 of the evidence log is not there'],
  ],
};

/** A copy of the database of a data folder, changed without its triggers. */
function changedCopy(t: TestContext, dataDir: string, sql: string): string {
  const database = join(temporaryFolder(t), 'artseal.db');
  copyFileSync(join(dataDir, 'artseal.db'), database);
  forgeIn(database, (client) => client.exec(sql));
  return database;
}

test('a fault in a row of leaves is named by its leaf', async (t) => {
  const dataDir = temporaryFolder(t);
  const { file, store } = await openRegistryIn(t, dataDir);
  await Promise.all(Array.from({ length: 9 }, () => file()));
  await store.close();
  for (const [what, [sql, faults]] of Object.entries(wrongRows)) {
    const database = changedCopy(t, dataDir, sql);
    // The hashes of later leaves include it, so these are named as well.
    assert.deepEqual((await faultsInLog(database)).slice(0, 1), faults, what);
  }
});

test('records that name the leaves of others are faults, however many there are', async (t) => {
  const dataDir = temporaryFolder(t);
  const { file, store } = await openRegistryIn(t, dataDir);
  await Promise.all(Array.from({ length: 250 }, () => file()));
  await store.close();
  for (const [position, count] of [
    [2, 40],
    [2, 99],
    [2, 250],
    [1, 250],
  ] as const) {
    const database = changedCopy(
      t,
      dataDir,
      `INSERT INTO provenance_record SELECT filing_no, ${position}, 'TRANSFER', '2026-11-21', filed_at_s, salt, leaf_index
      FROM filing ORDER BY id LIMIT ${count}`,
    );
    const faults = await faultsInLog(database);
    assert.equal(faults.length, Math.min(count, 100));
    for (const fault of faults) assert.match(fault, /has no leaf in the evidence log$/);
  }
});

test('an index that disagrees with its table is found', async (t) => {
  const backup = await tampered(
    t,
    "UPDATE sqlite_schema SET sql = replace(sql, '(`filing_no`)', '(`hash`)') WHERE name = 'filing_filing_no_unique'",
  );
  assert.match((await faultsOf(backup)).join(), /artseal\.db is damaged: .*filing_filing_no_unique/);
});

test('a backup of a later version is sound, unless it needs that version', async (t) => {
  const { dataDir, store } = await newRegistry(t);
  await store.close();
  upgradeFurther(dataDir);
  assert.deepEqual(await faultsOf(await backedUp(t, dataDir)), []);
  openRaw(t, dataDir).exec(`UPDATE oldest_version SET schema = ${furtherSchema}, version = '1.3.0'`);
  const faults = await faultsOf(await backedUp(t, dataDir));
  assert.match(faults.join(), /^artseal\.db needs artseal 1\.3\.0 or later/);
});

test('no backup is taken of a damaged database', async (t) => {
  const { dataDir, file, store } = await newRegistry(t);
  await file();
  await store.close();
  const database = join(dataDir, 'artseal.db');
  const bytes = readFileSync(database);
  bytes.fill(0xff, 3 * 4_096, 8 * 4_096);
  writeFileSync(database, bytes);
  const folder = temporaryFolder(t);
  const target = join(folder, 'backup.tar');
  const order = { dataDir, target, nowMs: noon.atMs, progress: unwatched };
  await assert.rejects(takeBackup(order), /artseal\.db is damaged: .*keep the backups from before/);
  assert.deepEqual(readdirSync(folder), []);
});

test('no backup is taken if its file exists, its folder is missing, or the disk is too full', async (t) => {
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

test('a backup that is cancelled leaves no file', async (t) => {
  const { dataDir } = await newRegistry(t);
  for (const until of ['copying', 'checking', 'packing']) {
    const folder = temporaryFolder(t);
    const progress = (step: string) => {
      if (step.startsWith(until)) throw new Error('cancelled');
    };
    const order = { dataDir, target: join(folder, 'backup.tar'), nowMs: noon.atMs, progress };
    await assert.rejects(takeBackup(order), /cancelled/);
    assert.deepEqual(readdirSync(folder), []);
  }
});
