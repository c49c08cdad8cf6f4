import {
  type Checkpoint,
  isOf,
  type LogProof,
  logSignersOf,
  type VerifierKey,
} from '../formats/checkpoint.ts';
import { hex, isSame, utf8 } from '../formats/encoding.ts';
import { badSignature, type FailureKind, forked, mismatch, VerificationFailure } from '../formats/failure.ts';
import { isIncluded, leafHash, sha256Of } from '../formats/tree.ts';
import { type Bundle, readBundle } from './read-bundle.ts';
import { type EvidenceRecord, hashedMembers, type RecordLeaf } from './record.ts';
import { checkDated, cosignaturesOf, instant, isSameTree, type WitnessPolicy } from './seen.ts';

/** What the verifier trusts. */
export interface Trust {
  /** The keys of the log, from another source than the bundle. */
  readonly keys: readonly VerifierKey[];
  /** The newest checkpoint seen before. */
  readonly pin?: Checkpoint | undefined;
  /** Cosignatures of other witnesses are ignored. */
  readonly witnesses?: WitnessPolicy | undefined;
}

/** What a bundle proves. */
export type Proven = ReturnType<typeof prove>;

/** What a bundle proves, or why it proves nothing. */
type Verdict =
  | { readonly isProven: true; readonly proven: Proven }
  | { readonly isProven: false; readonly kind: FailureKind; readonly what: string };

/**
 * Verifies a bundle offline. The first check that fails is the verdict:
 * 1. MALFORMED: every part has its form; record and leaf are canonical JSON.
 * 2. HASH_MISMATCH: the record has the hash and the digests of the disclosed members, the leaf commits to it, and both have the
 *    same number, sequence and time.
 * 3. NOT_INCLUDED: the leaf is in the tree.
 * 4. BAD_SIGNATURE: a given key signed the tree, and enough witnesses cosigned it.
 * 5. FORKED: the tree contradicts neither the time stamp nor the pin, and no cosignature is earlier than the leaf.
 */
export function verifyBundle(text: string, trust: Trust): Verdict {
  try {
    return { isProven: true, proven: prove(readBundle(text), trust) };
  } catch (error) {
    if (!(error instanceof VerificationFailure)) throw error;
    return { isProven: false, kind: error.kind, what: error.message };
  }
}

/** Verifies a bundle that was read. Throws VerificationFailure. */
export function prove(bundle: Bundle, { keys, pin, witnesses }: Trust) {
  const { record, proof, timeStamp } = bundle;
  const leaf = matchingLeaf(bundle);
  checkIncluded(bundle, proof, 'the checkpoint');
  if (timeStamp !== undefined) checkIncluded(bundle, timeStamp.proof, 'the checkpoint of the time stamp');
  const signers = logSignersOf(proof.checkpoint, keys, 'the checkpoint');
  if (timeStamp !== undefined) checkStamped(timeStamp.proof.checkpoint, proof.checkpoint, keys);
  const cosignatures = witnesses ? cosignaturesOf(proof.checkpoint, witnesses, 'the checkpoint') : [];
  checkDated('the leaf', leaf.timeS, cosignatures);
  return {
    record,
    /** The hash of the record, which is the evidence hash of a filing; undefined if a member that it covers is hidden. */
    hash: bundle.hash && hex(bundle.hash),
    /** When the log says that it added the record, Unix seconds. */
    timeS: leaf.timeS,
    index: proof.index,
    checkpoint: proof.checkpoint,
    /** The given keys that signed the checkpoint. */
    signers,
    /** Those of given witnesses. */
    cosignatures,
    /** Whether it is the tree of the pin; undefined if none was given. */
    isOfPin: pin && isSameTree(pin, proof.checkpoint),
    /** The time stamp of the bundle. Its checkpoint was verified, its token was not. */
    timeStamp,
  };
}

/** Returns the leaf. Throws VerificationFailure if it is not the leaf of the record. */
function matchingLeaf(bundle: Bundle): RecordLeaf {
  const { record, leaf } = bundle;
  const commitment = commitmentOf(bundle);
  if (leaf.kind === 'LOG_EVENT') throw mismatch('the leaf is a log event, not a record');
  if (hex(commitment) !== leaf.commitment) {
    throw mismatch('the leaf commits to another record than the one in the bundle');
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

/** What the leaf of a record has to commit to. Throws VerificationFailure if the bundle contradicts itself. */
function commitmentOf({ recordText, record, hash, salt, disclosed = [] }: Bundle): Uint8Array {
  for (const { name, digest, ...member } of disclosed)
    if (!isSame(sha256Of(utf8(member.salt + member.value)), digest))
      throw mismatch(`the ${name} in the bundle is not the one in the record`);
  const digest = sha256Of(utf8(recordText));
  const hashed = salt === undefined ? hash && evidenceHashOf(record) : digest;
  if (hash !== undefined && hashed !== undefined && !isSame(hashed, hash))
    throw mismatch('the record does not have the hash of the bundle');
  return salt === undefined || hash === undefined ? digest : sha256Of(salt, hash);
}

/** The evidence hash of a filing whose members are all disclosed. */
function evidenceHashOf({ members }: EvidenceRecord): Uint8Array {
  const names = [...hashedMembers, 'filingNo', 'timestamp'].sort();
  return sha256Of(utf8(JSON.stringify(Object.fromEntries(names.map((name) => [name, members.get(name)])))));
}

function checkIncluded({ leafText, proof: { index } }: Bundle, proof: LogProof, what: string): void {
  const { path, checkpoint } = proof;
  const leaf = leafHash(utf8(leafText));
  if (proof.index === index && isIncluded(leaf, index, checkpoint.size, path, checkpoint.root)) return;
  throw new VerificationFailure(
    'NOT_INCLUDED',
    `the record is not in the log: the proof does not lead from it, as leaf ${proof.index}, to ${what} of ${checkpoint.size} leaves`,
  );
}

/**
 * Checks that the stamped checkpoint is of the same log and the same tree at the same size, and that no signature of a given
 * key under it is forged. It needs no signature of a given key: the key may have been retired, and the time stamp alone
 * proves that the leaf existed.
 */
function checkStamped(
  stamped: Checkpoint,
  { origin, size, root }: Checkpoint,
  keys: readonly VerifierKey[],
): void {
  const what = 'the checkpoint of the time stamp';
  if (stamped.origin !== origin) throw badSignature(`${what} is of another log, ${stamped.origin}`);
  const known = stamped.signatures.some((line) => keys.some((key) => isOf(line, key)));
  if (known) logSignersOf(stamped, keys, what);
  if (stamped.size !== size || isSame(stamped.root, root)) return;
  throw known
    ? forked(`the log signed two different trees of ${size} leaves: both are in the bundle`)
    : badSignature(
        `${what} is another tree of ${size} leaves than the checkpoint, and no given key signed it`,
      );
}

/** The offset of the easternmost time zone, seconds. */
const zoneMaxS = 14 * 3600;

/** How long after its date a record may be logged without a doubt, seconds. */
const lateS = 2 * 86_400;

/** Points out that a record is dated long before it was logged; undefined otherwise. */
export function doubtOf({ record, timeS }: Pick<Proven, 'record' | 'timeS'>): string | undefined {
  if (record.dayS === undefined || timeS - record.dayS <= lateS) return undefined;
  return `the record is dated ${dayOf(record.dayS)}, and was logged ${instant(timeS)}: nothing proves that it is older`;
}

const dayOf = (s: number): string => new Date(s * 1000).toISOString().slice(0, 10);
