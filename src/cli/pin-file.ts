import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type Checkpoint,
  logSignersOf,
  readCheckpoint,
  readUtf8,
  VerificationFailure,
  type VerifierKey,
} from '../verifier/index.ts';

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
  replaceFile(file, noteText);
}

/** Puts other content in the place of that of a file, so that after a failure or a crash either the old one is there or the new one. */
export function replaceFile(file: string, content: string | Uint8Array): void {
  const draft = `${file}.${process.pid}.draft`;
  try {
    writeFileSync(draft, content, { flush: true });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  // Windows opens no folder; the new name is on disk when it likes.
  if (process.platform === 'win32') return;
  const folder = openSync(dirname(resolve(file)), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/** The bytes of a file, or of standard input for `-`: what is behind so many is not read, but for one that shows it. */
export async function readBounded(file: string, bytesMax: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > bytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax + 1);
}
