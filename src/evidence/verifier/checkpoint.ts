import { readBase64, readDecimal } from './encoding.ts';
import { malformed, VerificationFailure } from './failure.ts';
import { type Note, readNote, signatureTypes, signersOf, type VerifierKey } from './note.ts';
import { hashBytes, proofHashesMax, type Tree } from './tree.ts';

/** What a log says of itself: how many leaves it has and the root of their tree (c2sp.org/tlog-checkpoint). Not checked yet. */
export interface Checkpoint extends Tree {
  /** The name of the log. */
  readonly origin: string;
  /** All of it, as it was handed over. */
  readonly noteText: string;
  readonly note: Note;
  /** Lines of its text after the first three, which mean nothing here. */
  readonly extensions: readonly string[];
}

/** Reads a checkpoint; throws VerificationFailure MALFORMED that names it by `what`. */
export function readCheckpoint(noteText: string, what: string): Checkpoint {
  const note = readNote(noteText, what);
  const [origin = '', size = '', root = '', ...extensions] = note.text.slice(0, -1).split('\n');
  if (origin === '' || extensions.includes('')) {
    throw malformed(`${what} is not a checkpoint: name of the log, number of leaves, hash`);
  }
  return {
    origin,
    size: readDecimal(size, `the number of leaves of ${what}`),
    root: readHash(root, `the hash of ${what}`),
    noteText,
    note,
    extensions,
  };
}

/**
 * The keys of those given that signed a checkpoint, all of which are of the log that it names: at least one. Throws
 * VerificationFailure BAD_SIGNATURE.
 */
export function logSignersOf(
  checkpoint: Checkpoint,
  keys: readonly VerifierKey[],
  what: string,
): readonly VerifierKey[] {
  const own = keys.filter(({ name, type }) => name === checkpoint.origin && type === signatureTypes.ed25519);
  if (own.length === 0) {
    const others = Array.from(new Set(keys.map(({ name }) => name))).join(', ');
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      `${what} is of the log ${checkpoint.origin}, and the keys that were given are of ${others || 'none'}`,
    );
  }
  return signersOf(checkpoint.note, own, what);
}

/** A proof that a leaf is in a tree (c2sp.org/tlog-proof). Not checked yet. */
export interface LogProof {
  readonly index: number;
  readonly path: readonly Uint8Array[];
  readonly checkpoint: Checkpoint;
}

const proofHeader = 'c2sp.org/tlog-proof@v1';

/** Reads such a proof, which has no extra data; throws VerificationFailure MALFORMED that names it by `what`. */
export function readLogProof(text: string, what: string): LogProof {
  const end = text.indexOf('\n\n');
  const [header, indexLine = '', ...hashes] = text.slice(0, Math.max(end, 0)).split('\n');
  if (header !== proofHeader) throw malformed(`${what} does not begin with the line ${proofHeader}`);
  if (!indexLine.startsWith('index '))
    throw malformed(`the second line of ${what} is not the index of the leaf`);
  if (hashes.length > proofHashesMax) throw malformed(`${what} has more than ${proofHashesMax} hashes`);
  return {
    index: readDecimal(indexLine.slice('index '.length), `the index of ${what}`),
    path: hashes.map((line) => readHash(line, `a hash of ${what}`)),
    checkpoint: readCheckpoint(text.slice(end + 2), `the checkpoint of ${what}`),
  };
}

function readHash(text: string, what: string): Uint8Array {
  const bytes = readBase64(text, what);
  if (bytes.length !== hashBytes) throw malformed(`${what} has to have ${hashBytes} bytes`);
  return bytes;
}
