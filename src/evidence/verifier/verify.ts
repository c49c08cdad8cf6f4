import { type Bundle, readBundle, type TimeStamp } from './bundle.ts';
import { type Checkpoint, logSignersOf } from './checkpoint.ts';
import { attestationsOf, type Cosignature, cosignaturesOf, type WitnessPolicy } from './cosignature.ts';
import { checkDated, instant } from './dating.ts';
import { hex, isSame, utf8 } from './encoding.ts';
import { type FailureKind, mismatch, VerificationFailure } from './failure.ts';
import { leafBytes, type RecordLeaf } from './leaf.ts';
import type { VerifierKey } from './note.ts';
import { compareWithPin, type PinComparison } from './pin.ts';
import type { EvidenceRecord } from './record.ts';
import { isIncluded, leafHash, sha256Of } from './tree.ts';

/** What a bundle is checked against. */
export interface Trust {
  /** The keys of the log, got from elsewhere than the bundle. */
  readonly keys: readonly VerifierKey[];
  /** The newest checkpoint that was seen before. */
  readonly pin?: Checkpoint | undefined;
  /** Witnesses whose cosignatures are verified; others are ignored. */
  readonly witnesses?: WitnessPolicy | undefined;
}

/** What a bundle proves. */
export interface Proven {
  readonly record: EvidenceRecord;
  /** 64 hex digits. */
  readonly hash: string;
  /** When the record was taken into the log, by the log's own word: Unix seconds. */
  readonly timeS: number;
  /** The place of the leaf in the log, from 0. */
  readonly index: number;
  readonly checkpoint: Checkpoint;
  /** The given keys that signed the checkpoint. */
  readonly signers: readonly VerifierKey[];
  /** How the checkpoint stands to the pin, if there is one. */
  readonly pin: PinComparison | undefined;
  /** What given witnesses said of the checkpoint. */
  readonly cosignatures: readonly Cosignature[];
  /** The time stamp of the bundle, whose checkpoint covers the leaf and is signed; the token itself is not checked here. */
  readonly timeStamp: TimeStamp | undefined;
}

/** What the verifier says: what is proven, or what is wrong. */
export type Verdict =
  | { readonly isProven: true; readonly proven: Proven }
  | { readonly isProven: false; readonly kind: FailureKind; readonly what: string };

/**
 * Checks a bundle, offline. In this order, and the first thing that is wrong is the verdict: its form and that of all parts
 * and the canonical JSON of record and leaf (MALFORMED); that the record has the hash, that the leaf commits to it, and that
 * both say the same number, sequence and time (HASH_MISMATCH); that the leaf is in the tree (NOT_INCLUDED); that a given key
 * signed the tree, and as many witnesses as required cosigned it (BAD_SIGNATURE); that the tree contradicts neither that of
 * the time stamp nor the pin, and no cosignature is earlier than the leaf that it covers (FORKED). Throws nothing.
 */
export function verifyBundle(text: string, trust: Trust): Verdict {
  return verdictOf(() => prove(readBundle(text), trust));
}

/** The verdict of a check that throws VerificationFailure where something is wrong; other errors are thrown on. */
export function verdictOf(check: () => Proven): Verdict {
  try {
    return { isProven: true, proven: check() };
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    return { isProven: false, kind: error.kind, what: error.message };
  }
}

/** What a bundle that was read proves. Throws VerificationFailure. */
export function prove(bundle: Bundle, { keys, pin, witnesses }: Trust): Proven {
  const { record, proof, timeStamp } = bundle;
  const leaf = matchingLeaf(bundle);
  checkIncluded(bundle, proof, 'the checkpoint');
  if (timeStamp !== undefined) checkIncluded(bundle, timeStamp.proof, 'the checkpoint of the time stamp');
  const signers = logSignersOf(proof.checkpoint, keys, 'the checkpoint');
  if (timeStamp !== undefined) checkStamped(timeStamp.proof.checkpoint, proof.checkpoint, keys);
  const cosignatures = witnesses ? cosignaturesOf(proof.checkpoint, witnesses, 'the checkpoint') : [];
  checkDated('the leaf', leaf.timeS, attestationsOf(cosignatures));
  return {
    record,
    hash: hex(bundle.hash),
    timeS: leaf.timeS,
    index: proof.index,
    checkpoint: proof.checkpoint,
    signers,
    cosignatures,
    pin: pin && compareWithPin(pin, proof.checkpoint),
    timeStamp,
  };
}

/** The leaf, which is that of the record. */
function matchingLeaf({ recordText, record, hash, salt, leaf }: Bundle): RecordLeaf {
  if (!isSame(sha256Of(utf8(recordText)), hash))
    throw mismatch('the record does not have the hash beside it');
  if (leaf.kind === 'ACT') throw mismatch('the leaf is of an act of the log, not of a record');
  if (!isSame(sha256Of(salt, hash), leaf.commitment)) {
    throw mismatch('the leaf commits to another record: what was recorded is not what is shown here');
  }
  for (const name of ['kind', 'number', 'sequence'] as const) {
    if (leaf[name] !== record[name]) {
      throw mismatch(`the ${name} of the record is ${record[name]}, that of its leaf ${leaf[name]}`);
    }
  }
  if (record.timeS !== undefined && record.timeS !== leaf.timeS) {
    throw mismatch(
      `the record says that it was filed at ${instant(record.timeS)}, its leaf ${instant(leaf.timeS)}`,
    );
  }
  if (record.dayS !== undefined && record.dayS - zoneMaxS > leaf.timeS) {
    throw mismatch(
      `the record is dated ${dayOf(record.dayS)}, and its leaf is of ${instant(leaf.timeS)}, before that day`,
    );
  }
  return leaf;
}

function checkIncluded({ leafText, proof: { index } }: Bundle, proof: Bundle['proof'], what: string): void {
  const { path, checkpoint } = proof;
  const leaf = leafHash(leafBytes(leafText));
  if (proof.index === index && isIncluded(leaf, index, checkpoint.size, path, checkpoint.root)) return;
  throw new VerificationFailure(
    'NOT_INCLUDED',
    `the record is not in the log: the proof does not lead from it, as leaf ${proof.index}, to ${what} of ${checkpoint.size} leaves`,
  );
}

/**
 * Checks that what was stamped is a checkpoint of the same log, that no signature of a given key under it is forged, and that
 * it is the same tree if it has the same size. It need not bear a signature of a given key: the key of that time may have been
 * retired, and the authority's word alone proves that the leaf was there.
 */
function checkStamped(
  stamped: Checkpoint,
  { origin, size, root }: Checkpoint,
  keys: readonly VerifierKey[],
): void {
  const what = 'the checkpoint of the time stamp';
  if (stamped.origin !== origin)
    throw new VerificationFailure('BAD_SIGNATURE', `${what} is of another log, ${stamped.origin}`);
  const known = stamped.note.signatures.some(({ keyName, keyId }) =>
    keys.some(({ name, id }) => name === keyName && id === keyId),
  );
  if (known) logSignersOf(stamped, keys, what);
  if (stamped.size !== size || isSame(stamped.root, root)) return;
  throw known
    ? new VerificationFailure('FORKED', `the log signed two different trees of ${size} leaves: both are here`)
    : new VerificationFailure(
        'BAD_SIGNATURE',
        `${what} is another tree of ${size} leaves than the checkpoint, and no given key signed it`,
      );
}

/** How far the earliest time zone is ahead of UTC: a day begins there first. */
const zoneMaxS = 14 * 3600;

/** A record may be logged late where a clock was wrong; from then on it is worth a question. */
const lateS = 2 * 86_400;

/** What a good bundle leaves to be asked: a record that is dated long before it was logged. Undefined if there is nothing. */
export function doubtOf({ record, timeS }: Pick<Proven, 'record' | 'timeS'>): string | undefined {
  if (record.dayS === undefined || timeS - record.dayS <= lateS) return undefined;
  return `the record is dated ${dayOf(record.dayS)}, and was logged ${instant(timeS)}: that it is from before is proven by nothing`;
}

const dayOf = (s: number): string => new Date(s * 1000).toISOString().slice(0, 10);
