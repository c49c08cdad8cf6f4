import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { madeUpOriginStart } from '../../domain/leaf.ts';
import { replaceFile } from '../../lib/replace-file.ts';
import type { LogNames } from '../../store/log-commands.ts';
import type { Store } from '../../store/store.ts';
import { type Checkpoint, readCheckpoint } from '../formats/checkpoint.ts';
import { VerificationFailure } from '../formats/failure.ts';

/** A published checkpoint (C2SP tlog-checkpoint). `note` is the signed note, with cosignatures. */
export type PublishedCheckpoint = Pick<Checkpoint, 'origin' | 'size' | 'root' | 'note'>;

/** Reads a checkpoint without verifying it; undefined if the text is not a checkpoint. */
export function tryReadCheckpoint(note: string): Checkpoint | undefined {
  try {
    return readCheckpoint(note, 'it');
  } catch (error) {
    if (error instanceof VerificationFailure) return undefined;
    throw error;
  }
}

/** Returns the note of a checkpoint with only the signatures of its log. */
export function withoutCosignatures({ origin, note }: PublishedCheckpoint): string {
  const signaturesAt = note.lastIndexOf('\n\n') + 2;
  const lines = note.slice(signaturesAt).split(/(?<=\n)/);
  return note.slice(0, signaturesAt) + lines.filter((line) => line.startsWith(`— ${origin} `)).join('');
}

/** The name of the file in the data folder that holds the newest checkpoint, outside of the database. */
export const checkpointFileName = 'log-checkpoint';

/** The content is public, but no other user needs it. */
const mode = 0o600;

/** See `createCheckpointFile`. */
export type CheckpointFile = ReturnType<typeof createCheckpointFile>;

/** The content of the file. */
export interface WrittenNote {
  readonly note: string;
  /** Unix milliseconds. */
  readonly writtenAtMs: number;
}

/** Opens the checkpoint file of a data folder, which holds the newest checkpoint. */
export function createCheckpointFile(dataDir: string) {
  const path = join(dataDir, checkpointFileName);
  return {
    path,
    /** Returns undefined if there is no file. */
    read: async (): Promise<WrittenNote | undefined> => {
      try {
        // Invalid UTF-8 becomes U+FFFD, which no signature covers.
        return { note: await readFile(path, 'utf8'), writtenAtMs: (await stat(path)).mtimeMs };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    /** Replaces the note. Resolves when it is durable. */
    write: (note: string): Promise<void> => replaceFile(path, note, mode),
  };
}

/** Makes the name of a log without a setting: unique to the deployment, and never a host name. */
export function madeUpOrigin({ keyFor }: Pick<Store, 'keyFor'>): string {
  return `${madeUpOriginStart}${Buffer.from(keyFor('log origin')).toString('hex').slice(0, 16)}`;
}

/** Says how the origin has to be set in production: to the name of the log if it has one. */
export function requiredOrigin({ names, origin }: LogNames): string {
  if (origin === undefined)
    return 'must be set in production, to a name of yours such as log.example.com/artseal: the evidence log keeps it for ever';
  const base = names.find((name) => isNamedAfter(origin, name.origin))?.origin ?? origin;
  return `must be set to ${base} in production: the evidence log has that name`;
}

/** Whether a name is `base`, or that of a fork of it: `base/2`, `base/3` and so on. */
export function isNamedAfter(origin: string, base: string): boolean {
  return origin === base || forkOf(origin, base) !== undefined;
}

/** Returns the name of the next fork: `base/2`, then `base/3`; `base` itself if no log has it. */
export function nextFork(base: string, taken: readonly string[]): string {
  const numbers = taken.map((origin) => (origin === base ? 1 : (forkOf(origin, base) ?? 0)));
  const last = Math.max(0, ...numbers);
  return last === 0 ? base : `${base}/${last + 1}`;
}

/** The number of the fork that a name stands for. */
function forkOf(origin: string, base: string): number | undefined {
  const suffix = origin.startsWith(`${base}/`) ? origin.slice(base.length + 1) : '';
  return /^[1-9][0-9]{0,5}$/.test(suffix) ? Number(suffix) : undefined;
}
