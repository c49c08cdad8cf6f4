import { existsSync } from 'node:fs';
import {
  type Checkpoint,
  logSignersOf,
  readCheckpoint,
  readUtf8,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { replaceFileSync } from '../lib/replace-file.ts';
import { readBounded } from './files.ts';

/** The most bytes of a pin file: a checkpoint has some hundred. */
const pinBytesMax = 512 * 1024;

/**
 * The newest checkpoint of a log that was seen before, of a file that has its note; undefined if there is no file. Throws
 * Error for a file that is no such thing: a log is not to be accused for a file that was damaged here.
 */
export async function readPin(file: string, keys: readonly VerifierKey[]): Promise<Checkpoint | undefined> {
  if (!existsSync(file)) return undefined;
  const bytes = await readBounded(file, pinBytesMax);
  try {
    const pin = readCheckpoint(readUtf8(bytes, 'it'), 'it');
    // A pin of another log is that log's word, which its own keys would show.
    if (keys.some(({ name }) => name === pin.origin)) logSignersOf(pin, keys, 'it');
    return pin;
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new Error(
      `the pin file ${file} cannot be used, since ${error.message}: give the --key that it was signed with, or begin a new file`,
    );
  }
}

/** Puts a checkpoint in the place of the pin, or in a new file. */
export function writePin(file: string, { noteText }: Checkpoint): void {
  replaceFileSync(file, noteText);
}
