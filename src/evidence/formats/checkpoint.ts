import { base64, readDecimal } from './encoding.ts';
import { badSignature, malformed } from './failure.ts';
import { isEd25519, type Note, readNote, signatureTypes, signersOf, type VerifierKey } from './note.ts';
import { proofHashesMax, readHash, type Tree } from './tree.ts';

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

/** Bytes of the time before the signature of a cosignature. */
const timeBytes = 8;

/**
 * Verifies the cosignature of a witness over the text of a checkpoint (c2sp.org/tlog-cosignature, Ed25519). Returns its time
 * in Unix seconds; undefined if the cosignature is not valid.
 */
export function readCosignature(
  signature: Uint8Array,
  text: string,
  { publicKey }: VerifierKey,
): number | undefined {
  const bytes = Uint8Array.from(signature);
  if (bytes.length <= timeBytes) return undefined;
  const timeS = Number(new DataView(bytes.buffer).getBigUint64(0));
  const message = `cosignature/v1\ntime ${timeS}\n${text}`;
  const isValid = Number.isSafeInteger(timeS) && isEd25519(bytes.subarray(timeBytes), message, publicKey);
  return isValid ? timeS : undefined;
}

/** A proof that a leaf is in a tree (c2sp.org/tlog-proof). It is not verified. */
export interface LogProof {
  /** From 0. */
  readonly index: number;
  /** The inclusion path: the sibling of the leaf first. */
  readonly path: readonly Uint8Array[];
  readonly checkpoint: Checkpoint;
}

const proofHeader = 'c2sp.org/tlog-proof@v1';

/** Reads a proof without extra data. Throws VerificationFailure MALFORMED; `what` names the proof in the message. */
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

/** Writes a proof that ends with the note of a checkpoint. */
export function proofText(index: number, path: readonly Uint8Array[], note: string): string {
  return `${proofHeader}\nindex ${index}\n${hashLines(path)}\n${note}`;
}

/** Writes hashes in base64, a line each. */
export const hashLines = (hashes: readonly Uint8Array[]): string =>
  hashes.map((hash) => `${base64(hash)}\n`).join('');
