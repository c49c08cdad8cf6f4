/**
 * Why something does not verify:
 * - MALFORMED: it is not of the form that it claims to be, so nothing else was looked at.
 * - HASH_MISMATCH: the record is not the one that the leaf commits to.
 * - NOT_INCLUDED: the leaf is not in the tree of the checkpoint, where the proof says it is.
 * - BAD_SIGNATURE: no key that was given signed the checkpoint, or a signature of one of them does not verify.
 * - FORKED: two checkpoints of the log contradict each other, or the log contradicts itself or what others attest to.
 */
export type FailureKind = 'MALFORMED' | 'HASH_MISMATCH' | 'NOT_INCLUDED' | 'BAD_SIGNATURE' | 'FORKED';

/** Something does not verify. The message says what, in words for a person who knows neither trees nor hashes. */
export class VerificationFailure extends Error {
  override name = 'VerificationFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, what: string) {
    super(what);
    this.kind = kind;
  }
}

/** The failure of what is not of the form that it claims to be. */
export function malformed(what: string): VerificationFailure {
  return new VerificationFailure('MALFORMED', what);
}

/** The failure of what does not belong together: a record and its leaf, a leaf and its tile. */
export function mismatch(what: string): VerificationFailure {
  return new VerificationFailure('HASH_MISMATCH', what);
}
