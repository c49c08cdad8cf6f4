import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { ownMasterKeyName } from '../../config/config.ts';
import { sealingKeyName } from '../../keys/key-ring.ts';
import { syncFolder } from '../../lib/replace-file.ts';
import { buildInfo } from '../../packaging/build-info.ts';
import { databaseBytes, freeBytes, megabytes, syncFile } from '../../store/sqlite/durable-files.ts';
import { databaseName } from '../../store/sqlite/location.ts';
import { copyDatabase, damagesIn, factsOf, sealedSecretsOf } from '../../store/sqlite/snapshot.ts';
import { isDamage } from '../../store/sqlite/sqlite-errors.ts';
import {
  type BackedUpFile,
  BackupError,
  checksumsName,
  checksumsOf,
  formatVersion,
  isDatabase,
  type Manifest,
  manifestName,
  memberNames,
  type Progress,
} from './manifest.ts';
import { type TarSource, writeTar } from './tar.ts';

/** Which data folder is backed up, and to which file. */
export interface BackupOrder {
  readonly dataDir: string;
  /** A file that does not exist yet. */
  readonly target: string;
  readonly nowMs: number;
  readonly progress: Progress;
  /** Free bytes on the disk of a folder; by default those that the system reports. */
  readonly freeBytesOf?: (folder: string) => number;
}

/** Follows the name of a backup in the name of the folder of its unfinished files. */
export const partialMark = '.partial-';

/** For a moment the copy exists twice: as a file and in the archive. */
const roomFactor = 2;
const roomBesides = 1_048_576;

/**
 * Takes a backup of a data folder, which a server may use meanwhile. The file appears when it is complete and on disk. Throws
 * BackupError if the file exists, the disk has no room, or the database is damaged.
 */
export async function takeBackup(order: BackupOrder): Promise<Manifest> {
  const target = resolve(order.target);
  const folder = dirname(target);
  const names = memberNames.filter((name) => existsSync(join(order.dataDir, name)));
  if (!names.includes(databaseName))
    throw new BackupError(`there is no database in ${resolve(order.dataDir)}.`);
  refuseTaken(target);
  if (!existsSync(folder)) throw new BackupError(`there is no folder ${folder}: make it first.`);
  const bytes = names.reduce((sum, name) => sum + databaseBytes(join(order.dataDir, name)), 0);
  refuseWithoutRoom(folder, bytes, (order.freeBytesOf ?? freeBytes)(folder));
  const partial = mkdtempSync(`${target}${partialMark}`);
  try {
    const sources = await copyMembers(order, names, partial, bytes);
    const manifest = await describe(order, sources, join(partial, databaseName));
    const archive = join(partial, basename(target));
    await pack(order, archive, manifest, sources, bytes);
    refuseTaken(target);
    renameSync(archive, target);
    syncFolder(folder);
    return manifest;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function refuseTaken(target: string): void {
  if (existsSync(target)) throw new BackupError(`${target} is there already: name another file.`);
}

function refuseWithoutRoom(folder: string, bytes: number, free: number): void {
  const needed = bytes * roomFactor + roomBesides;
  if (free >= needed) return;
  throw new BackupError(
    `a backup in ${folder} needs ${megabytes(needed)} free for a moment, and ${megabytes(free)} are: ` +
      'make room or name a file on another disk.',
  );
}

/** Copies the databases, and reads the other files of a sandbox. */
async function copyMembers(
  { dataDir, progress }: BackupOrder,
  names: readonly string[],
  partial: string,
  bytes: number,
): Promise<readonly TarSource[]> {
  const sources: TarSource[] = [];
  for (const name of names) {
    const from = join(dataDir, name);
    const copy = join(partial, name);
    if (isDatabase(name)) {
      await copyDatabase(from, copy, (done) => progress(`copying ${name}`, done, bytes)).catch((error) => {
        throw isDamage(error) ? damaged(from, error.message) : error;
      });
      syncFile(copy);
    }
    sources.push({ name, from: isDatabase(name) ? copy : readFileSync(from) });
  }
  return sources;
}

function damaged(database: string, how: string): BackupError {
  return new BackupError(
    `${resolve(database)} is damaged: ${how}. Nothing was made; keep the backups from before.`,
  );
}

/** The manifest. A backup of a production has only its database. */
async function describe(
  { dataDir, nowMs, progress }: BackupOrder,
  sources: readonly TarSource[],
  copy: string,
): Promise<Manifest> {
  progress('checking', 0, 0);
  const [damage] = damagesIn(copy, 'QUICK');
  if (damage !== undefined) throw damaged(join(dataDir, databaseName), damage);
  const database = factsOf(copy);
  const isSandbox = database.environment === 'sandbox';
  const kept = sources.filter(({ name }) => isSandbox || name === databaseName);
  const files: BackedUpFile[] = [];
  for (const source of kept) files.push(await describeFile(source));
  return {
    format: 'artseal-backup',
    formatVersion,
    takenAt: new Date(nowMs).toISOString(),
    artseal: [buildInfo.version, buildInfo.commit].join(' ').trim(),
    database,
    masterKeys: [...new Set(sealedSecretsOf(copy).map(sealingKeyName))].sort(),
    holdsMasterKeys: files.some(({ name }) => name === ownMasterKeyName),
    files,
  };
}

async function describeFile({ name, from }: TarSource): Promise<BackedUpFile> {
  const sha256 = createHash('sha256');
  let bytes = 0;
  for await (const chunk of typeof from === 'string' ? createReadStream(from) : [from]) {
    sha256.update(chunk);
    bytes += chunk.length;
  }
  return { name, bytes, sha256: sha256.digest('hex') };
}

async function pack(
  { nowMs, progress }: BackupOrder,
  archive: string,
  manifest: Manifest,
  sources: readonly TarSource[],
  bytes: number,
): Promise<void> {
  const text = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`);
  const members = [
    { name: manifestName, from: text },
    { name: checksumsName, from: checksumsOf(text, manifest.files) },
    ...sources.filter(({ name }) => manifest.files.some((file) => file.name === name)),
  ];
  let packed = 0;
  await writeTar(archive, members, Math.floor(nowMs / 1000), (more) => {
    packed += more;
    progress('packing', packed, bytes);
  });
}
