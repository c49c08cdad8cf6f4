/** Where a leaf is in a published tree. */
export interface LeafProof {
  /** From 0. */
  readonly index: number;
  /** The hashes that lead from the leaf to the root: its sibling first, a child of the root last. */
  readonly path: readonly Uint8Array[];
  /** The signed checkpoint of that tree. */
  readonly note: string;
}

/** The text of a proof, as C2SP tlog-proof has it. */
export function proofText({ index, path, note }: LeafProof): string {
  const hashes = path.map((hash) => `${Buffer.from(hash).toString('base64')}\n`);
  return `c2sp.org/tlog-proof@v1\nindex ${index}\n${hashes.join('')}\n${note}`;
}
