import type { DatabaseFacts } from '../store/sqlite/snapshot.ts';

/** The first file of a backup: what is in it and what it was taken from. */
export interface Manifest {
  readonly format: 'artseal-backup';
  readonly formatVersion: 1;
  /** RFC 3339 in UTC. */
  readonly takenAt: string;
  /** Version and commit of the program that made it. */
  readonly artseal: string;
  readonly database: DatabaseFacts;
  /** Names of the master keys that the API secrets are sealed under. */
  readonly masterKeys: readonly string[];
  /** Whether they are in the backup, which those of a production never are. */
  readonly holdsMasterKeys: boolean;
  /** All files behind this one, in their order. */
  readonly files: readonly BackedUpFile[];
}

/** A file of the data folder in a backup. */
export interface BackedUpFile {
  readonly name: string;
  readonly bytes: number;
  /** Of the content, lower-case hex. */
  readonly sha256: string;
}

/** As it is called in the archive. */
export const manifestName = 'manifest.json';
/** Bytes of a manifest, at most. */
export const manifestBytesMax = 1_048_576;

/** Reads the text of a manifest. Throws Error with what is wrong, worded to follow the name of the backup. */
export function parseManifest(text: string): Manifest {
  const read: unknown = attempt(() => JSON.parse(text));
  const { format, formatVersion, files, takenAt, database, masterKeys } = (read ?? {}) as Partial<Manifest>;
  if (format !== 'artseal-backup') throw new Error('is no backup of artseal');
  if (formatVersion !== 1) throw new Error(`was made by a newer artseal (format ${formatVersion})`);
  const isSound =
    Array.isArray(files) &&
    files.every(isFile) &&
    Array.isArray(masterKeys) &&
    typeof database === 'object' &&
    Number.isFinite(Date.parse(String(takenAt)));
  if (!isSound) throw new Error('has a damaged manifest');
  return read as Manifest;
}

function isFile(file: Partial<BackedUpFile> | null): boolean {
  return (
    typeof file?.name === 'string' &&
    Number.isSafeInteger(file.bytes) &&
    /^[0-9a-f]{64}$/.test(String(file.sha256))
  );
}

function attempt(parse: () => unknown): unknown {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
