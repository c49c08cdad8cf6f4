import { sha256 as portableSha256 } from '@noble/hashes/sha2.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { isSame, readBase64 } from './encoding.ts';
import { malformed } from './failure.ts';

/**
 * Merkle trees (RFC 6962, section 2.1) and the verification of inclusion proofs (RFC 9162, section 2.1.3.2). Sizes and indexes
 * go up to 2^53-1, so the code divides by two instead of shifting. Tiles: c2sp.org/tlog-tiles.
 */

/** Bytes of a hash. */
export const hashBytes = 32;

/** Hashes of a proof at most: the levels of the largest tree. */
export const proofHashesMax = 63;

/** Hashes of a full tile, and leaves of a full entry bundle. */
export const tileWidth = 256;

/** Bytes of a leaf at most: entry bundles write its length in two bytes. */
export const leafBytesMax = 0xffff;

/** What the code of browsers may know of Node. */
interface Platform {
  readonly process?: {
    getBuiltinModule?(name: 'node:crypto'): { hash(name: 'sha256', data: Uint8Array, as: 'latin1'): string };
  };
}

/** The hash function of Node, undefined in browsers. It takes a quarter of the time, and an audit hashes each leaf and node. */
const hashOfNode = (globalThis as Platform).process?.getBuiltinModule?.('node:crypto').hash;

function sha256(data: Uint8Array): Uint8Array {
  if (hashOfNode === undefined) return portableSha256(data);
  // By way of a text: Node takes longer to make a buffer.
  const text = hashOfNode('sha256', data, 'latin1');
  const hash = new Uint8Array(hashBytes);
  for (let at = 0; at < hashBytes; at += 1) hash[at] = text.charCodeAt(at);
  return hash;
}

/** Returns the SHA-256 of the concatenated parts. */
export function sha256Of(...parts: readonly Uint8Array[]): Uint8Array {
  return sha256(concatBytes(...parts));
}

/** The root of the empty tree. */
export const emptyRoot: Uint8Array = sha256Of();

/** Hashes a leaf, after a byte 0. */
export function leafHash(data: Uint8Array): Uint8Array {
  return hashAfter(0, data, nothing);
}

/** Hashes an inner node, after a byte 1. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return hashAfter(1, left, right);
}

const nothing = new Uint8Array();

/** What is hashed next. A buffer for each leaf and node would take as long as its hash. */
const hashed = new Uint8Array(1 + leafBytesMax);

function hashAfter(prefix: number, left: Uint8Array, right: Uint8Array): Uint8Array {
  const length = 1 + left.length + right.length;
  const bytes = length > hashed.length ? new Uint8Array(length) : hashed.subarray(0, length);
  bytes[0] = prefix;
  bytes.set(left, 1);
  bytes.set(right, 1 + left.length);
  return sha256(bytes);
}

const isOdd = (number: number): boolean => number % 2 === 1;
const half = (number: number): number => Math.floor(number / 2);

/** Verifies an inclusion proof: whether `path` leads from the leaf hash at `index` to the root. */
export function isIncluded(
  leaf: Uint8Array,
  index: number,
  size: number,
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (index >= size) return false;
  let [node, last, hash] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      hash = nodeHash(sibling, hash);
      while (!isOdd(node) && node > 0) [node, last] = [half(node), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && isSame(hash, root);
}

/** A tree head. */
export interface Tree {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Reads a hash in base64. Throws VerificationFailure MALFORMED; `what` names the hash in the message. */
export function readHash(text: string, what: string): Uint8Array {
  const bytes = readBase64(text, what);
  if (bytes.length !== hashBytes) throw malformed(`${what} has to have ${hashBytes} bytes`);
  return bytes;
}

/** Writes the index of a tile: 1234067 is x001/x234/067. */
export function placePath(place: number): string {
  const digits = String(place);
  return digits.padStart(Math.ceil(digits.length / 3) * 3, '0').replaceAll(/...(?!$)/g, 'x$&/');
}
