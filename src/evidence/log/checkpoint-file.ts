import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../lib/replace-file.ts';

/** The file of a data folder that has the newest checkpoint, which is kept outside of the database. */
export const checkpointFileName = 'log-checkpoint';

/** Where it is. */
export function checkpointFile(dataDir: string): string {
  return join(dataDir, checkpointFileName);
}

/** Nobody else has to read it, although what it says is public. */
const mode = 0o600;

/** More bytes than any note has. */
const bytesMax = 1_000_000;

/** The newest checkpoint as it is kept beside the database. */
export interface CheckpointFile {
  readonly path: string;
  /** What is there; undefined if there is no file. */
  read(): Promise<WrittenNote | undefined>;
  /** Puts a note in the place of the one before; it is on disk when this resolves. */
  write(note: string): Promise<void>;
}

/** A note that was written. */
export interface WrittenNote {
  readonly note: string;
  /** Unix milliseconds. */
  readonly writtenAtMs: number;
}

/** Keeps it in a data folder. */
export function createCheckpointFile(dataDir: string): CheckpointFile {
  const path = checkpointFile(dataDir);
  return {
    path,
    read: async () => {
      try {
        const { mtimeMs, size } = await stat(path);
        // What is too long to be a note is not read, and what is no UTF-8 becomes U+FFFD, which no signature fits.
        const note = size > bytesMax ? '' : await readFile(path, 'utf8');
        return { note, writtenAtMs: mtimeMs };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    write: (note) => replaceFile(path, note, mode),
  };
}
