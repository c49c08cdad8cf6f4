import { existsSync, readFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type AuditState,
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

/** The version of the format. A state of another version is ignored. */
const formatVersion = 6;

/** Bytes of an uncompressed state at most: enough for decades of filings. */
const stateBytesMax = 512 * 1024 * 1024;

/** Returns the name of the file beside a pin that holds the state of the audit. */
export function stateFileOf(pinFile: string): string {
  return `${pinFile}.audit`;
}

/** Reads the state of an audit; undefined if there is none that can be used. */
export function readState(file: string): AuditState | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const bytes = gunzipSync(readFileSync(file), { maxOutputLength: stateBytesMax });
    const { version, state } = deserialize(bytes);
    return version === formatVersion ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the state of an audit. The checksum of gzip finds damage; it does not protect against intent: auditors own their state. */
export function writeState(file: string, state: AuditState): void {
  replaceFileSync(file, gzipSync(serialize({ version: formatVersion, state }), { level: 1 }));
}
