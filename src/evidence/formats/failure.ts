/**
 * Why something does not verify:
 * - MALFORMED: it does not have the form that it claims to have. Nothing else was checked.
 * - HASH_MISMATCH: the record is not the one that the leaf commits to.
 * - NOT_INCLUDED: the leaf is not in the tree of the checkpoint at the index of the proof.
 * - BAD_SIGNATURE: no given key signed the checkpoint, or a signature of a given key is not valid.
 * - FORKED: two checkpoints of the log contradict each other, or the log contradicts itself, a witness or a time stamp.
 */
export type FailureKind = 'MALFORMED' | 'HASH_MISMATCH' | 'NOT_INCLUDED' | 'BAD_SIGNATURE' | 'FORKED';

/** Something does not verify. The message is for a reader who knows neither trees nor hashes. */
export class VerificationFailure extends Error {
  override name = 'VerificationFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** A failure of kind MALFORMED. */
export const malformed = (what: string) => new VerificationFailure('MALFORMED', what);

/** A failure of kind HASH_MISMATCH: a record and its leaf, or a leaf and its tile, do not belong together. */
export const mismatch = (what: string) => new VerificationFailure('HASH_MISMATCH', what);

/** A failure of kind BAD_SIGNATURE. */
export const badSignature = (what: string) => new VerificationFailure('BAD_SIGNATURE', what);

/** A failure of kind FORKED. */
export const forked = (what: string) => new VerificationFailure('FORKED', what);
