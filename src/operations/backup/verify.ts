import { createHash } from 'node:crypto';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ownMasterKeyName } from '../../config/config.ts';
import { isSignedBy } from '../../evidence/log/agreement.ts';
import { sealingKeyName } from '../../keys/key-ring.ts';
import { fileErrorText } from '../../lib/file-errors.ts';
import { freeBytes, megabytes, privateMode } from '../../store/sqlite/durable-files.ts';
import { databaseName } from '../../store/sqlite/location.ts';
import { faultsInLog } from '../../store/sqlite/log-check.ts';
import { checkpointsOf, damagesIn, factsOf, sealedSecretsOf, tooNewIn } from '../../store/sqlite/snapshot.ts';
import {
  BackupError,
  checksumsName,
  checksumsOf,
  isDatabase,
  type Manifest,
  manifestBytesMax,
  manifestChecksum,
  manifestName,
  memberNames,
  type Progress,
  parseManifest,
} from './manifest.ts';
import { listTar, readMember, TarError, type TarMember } from './tar.ts';

/** A backup whose files are where its manifest says; their contents are not checked yet. */
export interface OpenBackup {
  readonly manifest: Manifest;
  /** With the files of the manifest, in their order. */
  readonly members: readonly TarMember[];
}

/**
 * Opens a backup. Throws BackupError if the file is no backup, is cut off, has other files than a backup has, or if any
 * byte outside the contents of its files has changed.
 */
export async function openBackup(file: string): Promise<OpenBackup> {
  try {
    const [first, checksums, ...members] = listTar(file);
    if (first?.name !== manifestName || first.bytes > manifestBytesMax)
      throw new TarError('is no backup of artseal');
    const text = await contentOf(file, first);
    if (checksums?.name !== checksumsName || checksums.bytes > manifestBytesMax) throw disagreeing();
    const sums = await contentOf(file, checksums);
    // The manifest is read only if it is what was written.
    if (!sums.toString().startsWith(manifestChecksum(text))) throw disagreeing();
    const manifest = parseManifest(text.toString('utf8'));
    const { files, takenAt, holdsMasterKeys } = manifest;
    if (!sums.equals(checksumsOf(text, files))) throw disagreeing();
    const takenAtS = Math.floor(Date.parse(takenAt) / 1000);
    // The names are a closed list, so none of them leads out of the folder that they are unpacked into.
    const isAsManifested =
      members.length === files.length &&
      files.every(
        ({ name, bytes }, place) => name === members[place]?.name && bytes === members[place].bytes,
      ) &&
      files.every(({ name }) => memberNames.includes(name)) &&
      new Set(files.map(({ name }) => name)).size === files.length &&
      files.some(({ name }) => name === databaseName) &&
      files.some(({ name }) => name === ownMasterKeyName) === holdsMasterKeys &&
      [first, checksums, ...members].every(({ mtimeS }) => mtimeS === takenAtS);
    if (!isAsManifested) throw new TarError('holds something else than its manifest says');
    return { manifest, members };
  } catch (error) {
    const why = fileErrorText(error) ?? `${file} ${error instanceof Error ? error.message : error}`;
    throw new BackupError(`${why}.`, { cause: error });
  }
}

const disagreeing = () => new TarError(`is damaged: its ${manifestName} and ${checksumsName} do not agree`);

async function contentOf(file: string, member: TarMember): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(readMember(file, member)));
}

/**
 * Checks every byte of a backup: checksums, the databases by SQLite's own check, counts, the evidence hash of every filing,
 * the evidence log with every record that it commits to, and the signatures of its checkpoints. Meanwhile the backup is
 * unpacked into a new folder, whose path begins with `into` or with the folder for temporary files. Throws BackupError if
 * it cannot be opened or if there is no room. Returns its manifest, and one line a fault.
 */
export async function verifyBackup(file: string, progress: Progress, into?: string) {
  const backup = await openBackup(file);
  const prefix = into ?? join(tmpdir(), 'artseal-verify-');
  refuseWithoutRoom(backup, dirname(prefix), into === undefined);
  const folder = mkdtempSync(prefix);
  try {
    return { manifest: backup.manifest, faults: await faultsOf(file, backup, folder, progress) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Unpacks a backup into an empty folder and checks it. Returns one line a fault. */
export async function faultsOf(
  file: string,
  backup: OpenBackup,
  folder: string,
  progress: Progress,
): Promise<readonly string[]> {
  const changed = await unpack(file, backup, folder, progress);
  if (changed.length > 0)
    return changed.map((name) => `${name} is not what was backed up: its SHA-256 differs`);
  const faults: string[] = [];
  for (const { name } of backup.manifest.files)
    if (isDatabase(name)) faults.push(...(await checkDatabase(folder, name, backup.manifest, progress)));
  return faults;
}

function refuseWithoutRoom({ members }: OpenBackup, folder: string, isTemporary: boolean): void {
  const needed = members.reduce((sum, { bytes }) => sum + bytes, 0);
  const free = freeBytes(folder);
  if (free >= needed) return;
  const otherwise = isTemporary ? ', or set TMPDIR to a folder on another disk' : '';
  throw new BackupError(
    `verifying needs ${megabytes(needed)} free in ${folder}, and ${megabytes(free)} are: make room${otherwise}.`,
  );
}

/** Unpacks a backup into an empty folder. Returns the files whose content differs from the manifest. */
async function unpack(
  file: string,
  { manifest, members }: OpenBackup,
  folder: string,
  progress: Progress,
): Promise<readonly string[]> {
  const total = members.reduce((sum, { bytes }) => sum + bytes, 0);
  const changed: string[] = [];
  let done = 0;
  for (const [place, member] of members.entries()) {
    const sha256 = createHash('sha256');
    const into = createWriteStream(join(folder, member.name), { flags: 'wx', mode: privateMode });
    await pipeline(
      readMember(file, member),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          sha256.update(chunk);
          done += chunk.length;
          progress('unpacking', done, total);
          yield chunk;
        }
      },
      into,
    );
    if (sha256.digest('hex') !== manifest.files[place]?.sha256) changed.push(member.name);
  }
  return changed;
}

async function checkDatabase(
  folder: string,
  name: string,
  manifest: Manifest,
  progress: Progress,
): Promise<readonly string[]> {
  progress(`checking ${name}`, 0, 0);
  const file = join(folder, name);
  const damages = damagesIn(file, 'FULL').map((damage) => `${name} is damaged: ${damage}`);
  if (damages.length > 0 || name !== databaseName) return damages;
  const why = tooNewIn(file, name);
  if (why !== undefined) return [why];
  const facts = factsOf(file);
  const keys = [...new Set(sealedSecretsOf(file).map(sealingKeyName))].sort();
  const isAsManifested =
    JSON.stringify([facts, keys]) === JSON.stringify([manifest.database, manifest.masterKeys]);
  const { notes, vkeys } = checkpointsOf(file);
  const unsigned = notes.filter(({ note }) => !isSignedBy(note, vkeys));
  return [
    ...(isAsManifested ? [] : [`${name} holds something else than its manifest says`]),
    ...(await faultsInLog(file)),
    ...unsigned.map(
      ({ size }) => `the kept checkpoint of ${size} leaves is not signed by a key of the evidence log`,
    ),
  ];
}
