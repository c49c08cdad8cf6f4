import { createHash } from 'node:crypto';
import { ownMasterKeyName } from '../../config/config.ts';
import { providers } from '../../config/payment-providers.ts';
import { sandboxCredentialsName } from '../../config/sandbox-credentials.ts';
import { databaseName } from '../../store/sqlite/location.ts';
import type { DatabaseFacts } from '../../store/sqlite/snapshot.ts';

/** A backup cannot be taken, trusted or restored; the message is for the operator. */
export class BackupError extends Error {
  override name = 'BackupError';
}

/** What to use in place of backups of Artseal if the database is on PostgreSQL. */
export const postgresBackups =
  'PostgreSQL has backups of its own: use pg_basebackup with WAL archiving, or the managed backups of its provider';

/** How many faults one message names; `artseal backup verify` names all. */
const namedMax = 3;

/** The first of many faults, and how many there are. */
export function firstOf(faults: readonly string[]): string {
  const more = faults.length > namedMax ? ` (${faults.length} faults)` : '';
  return `${faults.slice(0, namedMax).join('; ')}${more}`;
}

/** Receives the progress of a step, in bytes. It throws to end the work. */
export type Progress = (step: string, done: number, total: number) => void;

/**
 * The files of a data folder that a backup contains, in the order in which they are copied. The state of a simulated
 * provider follows the database, since a provider may know more than the registry and never less. A production has only
 * the database.
 */
export const memberNames: readonly string[] = [
  databaseName,
  ...providers.flatMap(({ ownFiles }) => ownFiles),
  sandboxCredentialsName,
  ownMasterKeyName,
];

/** Whether a file of the data folder is an SQLite database, which is copied by SQLite. */
export const isDatabase = (name: string): boolean => name.endsWith('.db');

/** The first file of a backup: what is in it and what it was taken from. */
export interface Manifest {
  readonly format: 'artseal-backup';
  readonly formatVersion: typeof formatVersion;
  /** RFC 3339 in UTC. */
  readonly takenAt: string;
  /** Version and commit of the program that made it. */
  readonly artseal: string;
  readonly database: DatabaseFacts;
  /** Names of the master keys that the API secrets are encrypted with. */
  readonly masterKeys: readonly string[];
  /** Whether they are in the backup, which those of a production never are. */
  readonly holdsMasterKeys: boolean;
  /** All files of the data folder in the archive, in their order. */
  readonly files: readonly BackedUpFile[];
}

/** A file of the data folder in a backup. */
export interface BackedUpFile {
  readonly name: string;
  readonly bytes: number;
  /** Of the content, lower-case hex. */
  readonly sha256: string;
}

/** The format of the archive: the manifest, the checksums, then the files. */
export const formatVersion = 2;
/** The name of the manifest in the archive. */
export const manifestName = 'manifest.json';
/** The name of the checksums, which follow the manifest in the archive. */
export const checksumsName = 'SHA256SUMS';
/** Largest size of a manifest, in bytes. */
export const manifestBytesMax = 1_048_576;

/** A line of the checksums, in the format of `sha256sum -c`. */
const checksumLine = (sha256: string, name: string): string => `${sha256}  ${name}\n`;

/** The first line of the checksums, that of the manifest itself. */
export const manifestChecksum = (manifest: Uint8Array): string =>
  checksumLine(createHash('sha256').update(manifest).digest('hex'), manifestName);

/** The checksums of the bytes of a manifest and of its files. */
export function checksumsOf(manifest: Uint8Array, files: readonly BackedUpFile[]): Buffer {
  const lines = files.map(({ name, sha256 }) => checksumLine(sha256, name));
  return Buffer.from([manifestChecksum(manifest), ...lines].join(''));
}

/** Reads the text of a manifest whose checksum is right. Throws Error if it is wrong; the message follows the name of the backup. */
export function parseManifest(text: string): Manifest {
  const read = parsed(text);
  if (!isRecord(read)) throw new Error('has a damaged manifest');
  if (read.format !== sample.format) throw new Error('is no backup of artseal');
  if (read.formatVersion !== formatVersion)
    throw new Error(
      `has the backup format ${read.formatVersion}; this artseal reads format ${formatVersion}`,
    );
  if (!isLike(sample, read)) throw new Error('has a damaged manifest');
  return read;
}

/** A value for each member of a manifest. What the members say is compared with the archive and its database. */
const sample: Manifest = {
  ...{ format: 'artseal-backup', formatVersion, takenAt: '', artseal: '', holdsMasterKeys: false },
  masterKeys: [''],
  files: [{ name: '', bytes: 0, sha256: '' }],
  database: {
    ...{ schema: 0, environment: '', currency: '', provider: null, filings: 0, orders: 0 },
    ...{ lastFilings: {}, escrowIds: {} },
    numberGaps: [{ kind: 'FILING', year: 0, after: 0, through: 0, restoredAtS: 0 }],
  },
};

/** Whether a value has the members of a sample with their types. A list has one sample for all items; null stands for any value. */
function isLike<Shape>(sample: Shape, value: unknown): value is Shape {
  if (sample === null) return value !== undefined;
  if (Array.isArray(sample)) return Array.isArray(value) && value.every((item) => isLike(sample[0], item));
  if (typeof sample !== 'object') return typeof value === typeof sample;
  return isRecord(value) && Object.entries(sample).every(([name, each]) => isLike(each, value[name]));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
