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

/** Bytes of a pin file at most: a checkpoint has some hundred. */
const pinBytesMax = 512 * 1024;

/**
 * Reads the pin, the newest checkpoint seen before; undefined if there is no file. Throws an Error, not a VerificationFailure,
 * if the file cannot be used: a file that was damaged here proves nothing against the log.
 */
export async function readPin(file: string, keys: readonly VerifierKey[]): Promise<Checkpoint | undefined> {
  if (!existsSync(file)) return undefined;
  const bytes = await readBounded(file, pinBytesMax);
  try {
    const pin = readCheckpoint(readUtf8(bytes, 'it'), 'it');
    // The keys of another log are not given.
    if (keys.some(({ name }) => name === pin.origin)) logSignersOf(pin, keys, 'it');
    return pin;
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new Error(
      `the pin file ${file} cannot be used, since ${error.message}: give the --key that signed it, or use a new file`,
    );
  }
}

/** Replaces the pin. */
export function writePin(file: string, { note }: Checkpoint): void {
  replaceFileSync(file, note);
}
