import { existsSync } from 'node:fs';
import {
  type Checkpoint,
  type FailureKind,
  logSignersOf,
  readCheckpoint,
  readUtf8,
  readVerifierKey,
  VerificationFailure,
  type VerifierKey,
} from '../evidence/verifier/index.ts';
import { replaceFileSync } from '../lib/replace-file.ts';
import { type Terminal, UsageError } from './command.ts';
import { readBounded } from './files.ts';

/** Why evidence or a log does not verify, or that the log is older than `--max-age`. */
export interface Failure {
  readonly kind: FailureKind | 'TOO_OLD';
  readonly message: string;
}

/** Exit codes of failures. */
const verdictCodes: Readonly<Record<Failure['kind'], number>> = {
  MALFORMED: 3,
  HASH_MISMATCH: 4,
  NOT_INCLUDED: 5,
  BAD_SIGNATURE: 6,
  FORKED: 7,
  TOO_OLD: 8,
};

/** The exit codes in the help. */
export const verdictCodesHelp = [
  'Exit codes: 0 verified, 1 could not be checked, 2 the command line is wrong, 3 malformed, 4 the record is not what was',
  'logged, 5 not in the log, 6 no valid signature of a given key, 7 the log contradicts itself, others or the pin.',
];

/** Prints a failure. Returns the exit code. */
export function reportFailure({ kind, message }: Failure, isJson: boolean, terminal: Terminal): number {
  if (isJson) terminal.print(JSON.stringify({ verified: false, kind, what: message }));
  else terminal.printError(`NOT VERIFIED (${kind}): ${message}`);
  return verdictCodes[kind];
}

/** Reads the verifier keys of a flag. A value may have several, a line each, as `artseal evidence vkey` prints. Throws UsageError. */
export function readKeys(values: readonly string[], flag = '--key'): readonly VerifierKey[] {
  const vkeys = values.flatMap((value) => value.trim().split(/\s+/));
  return vkeys.map((vkey) => {
    try {
      return readVerifierKey(vkey);
    } catch (error) {
      if (!(error instanceof VerificationFailure)) throw error;
      throw new UsageError(`cannot use ${flag} ${vkey}: ${error.message}`);
    }
  });
}

/** Formats Unix seconds as RFC 3339 in UTC. */
export function instant(s: number): string {
  return new Date(s * 1000).toISOString().replace('.000Z', 'Z');
}

/** The most bytes of a pin file: a checkpoint has some hundred. */
const pinBytesMax = 512 * 1024;

/**
 * Reads the newest checkpoint of a log that was seen before; undefined if the file does not exist. Throws Error, not a
 * VerificationFailure, for an invalid file: the log is not to blame for a file damaged here.
 */
export async function readPin(file: string, keys: readonly VerifierKey[]): Promise<Checkpoint | undefined> {
  if (!existsSync(file)) return undefined;
  const bytes = await readBounded(file, pinBytesMax);
  try {
    const pin = readCheckpoint(readUtf8(bytes, 'it'), 'it');
    // The given keys cannot check the pin of another log.
    if (keys.some(({ name }) => name === pin.origin)) logSignersOf(pin, keys, 'it');
    return pin;
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    throw new Error(
      `cannot use the pin file ${file}: ${error.message}: give the --key that signed it, or begin a new file`,
    );
  }
}

/** Creates or replaces the pin. */
export function writePin(file: string, { noteText }: Checkpoint): void {
  replaceFileSync(file, noteText);
}
