import { type Checkpoint, readCheckpoint } from '../formats/checkpoint.ts';
import { VerificationFailure } from '../formats/failure.ts';

/** A published checkpoint (C2SP tlog-checkpoint). `note` is the signed note, with cosignatures. */
export type PublishedCheckpoint = Pick<Checkpoint, 'origin' | 'size' | 'root' | 'note'>;

/** What is published of the evidence log. Callers see nothing newer than the current checkpoint. */
export interface Publication {
  /** The newest checkpoint; undefined before the first. */
  current(): PublishedCheckpoint | undefined;
  /** Waits up to `withinMs` milliseconds for a checkpoint that covers a leaf. Resolves to undefined if none comes. */
  covering(leafIndex: number, withinMs: number): Promise<PublishedCheckpoint | undefined>;
  /** The verifier keys that sign now, the newest first. */
  verifierKeys(): readonly string[];
}

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
