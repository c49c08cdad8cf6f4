import { type Checkpoint, readCheckpoint } from './checkpoint.ts';
import { base64, readDecimal } from './encoding.ts';
import { malformed } from './failure.ts';
import { proofHashesMax, readHash } from './tree.ts';

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
