import { base64, readDecimal } from './encoding.ts';
import { badSignature, malformed } from './failure.ts';
import { type Note, readNote, signatureTypes, signersOf, type VerifierKey } from './note.ts';
import { readHash, type Tree } from './tree.ts';

/** A signed tree head of a log (c2sp.org/tlog-checkpoint). Its signatures are not verified. */
export interface Checkpoint extends Tree, Note {
  /** The name of the log. */
  readonly origin: string;
  /** Lines of its text after the first three, which have no meaning here. */
  readonly extensions: readonly string[];
}

/** Reads a checkpoint. Throws VerificationFailure MALFORMED; `what` names the checkpoint in the message. */
export function readCheckpoint(noteText: string, what: string): Checkpoint {
  const note = readNote(noteText, what);
  const [origin = '', size = '', root = '', ...extensions] = note.text.slice(0, -1).split('\n');
  if (origin === '' || extensions.includes('')) {
    throw malformed(`${what} is not a checkpoint: name of the log, number of leaves, hash`);
  }
  return {
    ...note,
    origin,
    size: readDecimal(size, `the number of leaves of ${what}`),
    root: readHash(root, `the hash of ${what}`),
    extensions,
  };
}

/** Writes the text of a checkpoint, which is then signed. */
export function checkpointText({ origin, size, root }: Pick<Checkpoint, 'origin' | 'size' | 'root'>): string {
  return `${origin}\n${size}\n${base64(root)}\n`;
}

/** Finds the given keys of the log that signed a checkpoint. Throws VerificationFailure BAD_SIGNATURE if there is none. */
export function logSignersOf(
  checkpoint: Checkpoint,
  keys: readonly VerifierKey[],
  what: string,
): readonly VerifierKey[] {
  const own = keys.filter(({ name, type }) => name === checkpoint.origin && type === signatureTypes.ed25519);
  if (own.length > 0) return signersOf(checkpoint, own, what);
  const others = Array.from(new Set(keys.map(({ name }) => name))).join(', ');
  throw badSignature(
    `${what} is of the log ${checkpoint.origin}, and the given keys are of ${others || 'none'}`,
  );
}
