import { treeHashBytes } from '../../domain/merkle.ts';
import {
  fromBase64,
  isSignedBy,
  NoteMalformed,
  readNote,
  type SigningKey,
  type VerifierKey,
} from './note.ts';
import type { PublishedCheckpoint } from './publication.ts';

/** What a checkpoint says of its log, and nothing else. */
export type TreeHeadText = Pick<PublishedCheckpoint, 'origin' | 'size' | 'root'>;

/** The text of a checkpoint, as C2SP tlog-checkpoint has it: origin, size and root, a line each. */
function checkpointText({ origin, size, root }: TreeHeadText): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
}

/** Signs a tree with each of these keys. */
export function signCheckpoint(tree: TreeHeadText, keys: readonly SigningKey[]): PublishedCheckpoint {
  const text = checkpointText(tree);
  const lines = keys.map((key) => key.sign(text));
  return { ...tree, note: `${text}\n${lines.join('')}` };
}

/** A checkpoint that was read, and whether one of the keys has signed it. */
export interface ReadCheckpoint extends PublishedCheckpoint {
  readonly isSigned: boolean;
}

/**
 * Reads a signed checkpoint. Throws NoteMalformed if it is none, or a signature under the name of one of these keys is not
 * good.
 */
export function readCheckpoint(note: string, keys: readonly VerifierKey[]): ReadCheckpoint {
  const read = readNote(note);
  const [origin = '', sizeText = '', rootText = '', ...extensions] = read.text.slice(0, -1).split('\n');
  const [size, root] = [Number(sizeText), fromBase64(rootText)];
  if (origin === '') throw new NoteMalformed('it names no log');
  if (!/^(0|[1-9][0-9]{0,15})$/.test(sizeText) || !Number.isSafeInteger(size))
    throw new NoteMalformed('its second line is no size of a tree');
  if (root?.length !== treeHashBytes) throw new NoteMalformed('its third line is no hash of a tree');
  if (extensions.includes('')) throw new NoteMalformed('it has an empty line in its text');
  return { origin, size, root, note, isSigned: isSignedBy(read, keys) };
}

/** A checkpoint with the signatures of its own log alone. */
export function withoutCosignatures({ origin, note }: PublishedCheckpoint): string {
  const signaturesAt = note.lastIndexOf('\n\n') + 2;
  const own = note
    .slice(signaturesAt)
    .split(/(?<=\n)/)
    .filter((line) => line.startsWith(`— ${origin} `));
  return `${note.slice(0, signaturesAt)}${own.join('')}`;
}

/** Reads what may be a checkpoint, of whatever log, without a look at its signatures; undefined if it is none. */
export function tryReadCheckpoint(note: string): PublishedCheckpoint | undefined {
  try {
    return readCheckpoint(note, []);
  } catch (error) {
    if (error instanceof NoteMalformed) return undefined;
    throw error;
  }
}
