import { createHash } from 'node:crypto';

/** RFC 6962, section 2.1, as it is written: MTH of leaves, each by its data; shares nothing with what is tested. */

const sha256 = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};

/** The hash of a leaf. */
export const naiveLeaf = (data: string | Uint8Array): Buffer => sha256(Uint8Array.of(0), data);

/** The hash of a node. */
export const naiveNode = (left: Uint8Array, right: Uint8Array): Buffer =>
  sha256(Uint8Array.of(1), left, right);

/** The root over hashes of leaves, or of complete subtrees of one size. */
export function naiveRoot(hashes: readonly Buffer[]): Buffer {
  const [only] = hashes;
  if (only === undefined) return sha256();
  if (hashes.length === 1) return only;
  let split = 1;
  while (split * 2 < hashes.length) split *= 2;
  return naiveNode(naiveRoot(hashes.slice(0, split)), naiveRoot(hashes.slice(split)));
}

/** The root that an inclusion proof leads to (RFC 9162, section 2.1.3.2); undefined if it is none for that place. */
export function naiveRootOfProof(
  index: number,
  size: number,
  leaf: Buffer,
  path: readonly Buffer[],
): Buffer | undefined {
  let [fn, sn, root] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (sn === 0) return undefined;
    if (fn % 2 === 1 || fn === sn) {
      root = naiveNode(sibling, root);
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else root = naiveNode(root, sibling);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 ? root : undefined;
}
