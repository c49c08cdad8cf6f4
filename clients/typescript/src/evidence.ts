import {
  instant,
  readVerifierKey,
  VerificationFailure,
  verifyBundle,
} from '../../../src/evidence/verifier/index.ts';

/** What a bundle proves. */
export interface ProvenRecord {
  /** `FILING` or `TRANSFER`. */
  readonly kind: string;
  readonly filingNo: string;
  /** 1 for the filing, 2 for the first transfer, and so on. */
  readonly sequence: number;
  /** The evidence hash, lower-case hex; undefined if the bundle hides a member that it covers. */
  readonly hash: string | undefined;
  /** When the log says that it added the record, RFC 3339. */
  readonly loggedAt: string;
  /** The members of the record, without hidden ones. */
  readonly record: Readonly<Record<string, unknown>>;
  /** The names of the members that the bundle hides. */
  readonly hidden: readonly string[];
}

/** The error of evidence that does not verify. */
export class EvidenceError extends Error {
  override readonly name = 'EvidenceError';
  /** The first check that failed. */
  readonly kind: 'MALFORMED' | 'HASH_MISMATCH' | 'NOT_INCLUDED' | 'BAD_SIGNATURE' | 'FORKED';

  constructor(kind: EvidenceError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/**
 * Verifies an evidence bundle offline, against verifier keys from another source than the bundle. Throws `EvidenceError`. For
 * time stamps, witnesses and a comparison with the published log, use `artseal verify`.
 */
export function verifyEvidence(bundle: string, verifierKeys: string | readonly string[]): ProvenRecord {
  const verdict = verifyBundle(bundle, { keys: [verifierKeys].flat().map(readKey) });
  if (!verdict.isProven) throw new EvidenceError(verdict.kind, verdict.what);
  const { record, hash, timeS } = verdict.proven;
  return {
    ...{ kind: record.kind, filingNo: record.number, sequence: record.sequence },
    ...{ hash, loggedAt: instant(timeS), record: Object.fromEntries(record.members), hidden: record.hidden },
  };
}

function readKey(vkey: string) {
  try {
    return readVerifierKey(vkey.trim());
  } catch (error) {
    if (error instanceof VerificationFailure) throw new EvidenceError(error.kind, error.message);
    throw error;
  }
}
