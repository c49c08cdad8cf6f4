import {
  type Checkpoint,
  isOf,
  readCosignature,
  signatureTypes,
  type VerifierKey,
} from '../formats/checkpoint.ts';
import { hex, isSame } from '../formats/encoding.ts';
import { badSignature, forked } from '../formats/failure.ts';
import { type PublishedLog, rootsFromTiles } from './published-log.ts';

/** What others say about a log: its witnesses and time-stamping authorities, and who saw an earlier checkpoint. */

/** Seconds that the clocks of a log, a witness and an authority may differ. A registry rejects what differs more. */
export const clockToleranceS = 300;

/** Formats Unix seconds in RFC 3339. */
export const instant = (s: number): string => new Date(s * 1000).toISOString().replace('.000', '');

/** The statement of a witness or an authority that a tree existed at a time, Unix seconds. */
export interface Attestation {
  /** Such as `the cosignature of witness.example`. */
  readonly by: string;
  readonly timeS: number;
}

/** Throws VerificationFailure FORKED if a leaf is dated later than an attestation that covers it. */
export function checkDated(leaf: string, leafTimeS: number, attestations: readonly Attestation[]): void {
  const earlier = attestations.find(({ timeS }) => leafTimeS > timeS + clockToleranceS);
  if (earlier === undefined) return;
  throw forked(
    `${leaf} is dated ${instant(leafTimeS)}, after ${earlier.by} that covers it, of ${instant(earlier.timeS)}: the date is wrong`,
  );
}

/** The trusted witnesses, and how many of them have to have cosigned. */
export interface WitnessPolicy {
  /** Keys of witnesses, from another source than the bundle. Keys of other types are ignored. */
  readonly keys: readonly VerifierKey[];
  readonly required: number;
}

/** The statement of a witness that it saw the log up to this checkpoint, and nothing that contradicts it. */
export interface Cosignature extends Attestation {
  readonly witness: VerifierKey;
}

/**
 * Verifies the cosignatures of the given witnesses under a checkpoint, and returns the earliest of each. Others are ignored. A
 * public key counts as one witness, whatever names it has. Throws VerificationFailure BAD_SIGNATURE if they are fewer than
 * required, or one is not valid.
 */
export function cosignaturesOf(
  { text, signatures }: Checkpoint,
  { keys, required }: WitnessPolicy,
  what: string,
): readonly Cosignature[] {
  const found = new Map<string, Cosignature>();
  const witnesses = keys.filter(({ type }) => type === signatureTypes.cosignature);
  for (const line of signatures) {
    for (const witness of witnesses.filter((key) => isOf(line, key))) {
      const timeS = readCosignature(line.signature, text, witness);
      if (timeS === undefined)
        throw badSignature(`${what} has a cosignature of ${witness.name} (${witness.id}) that is not valid`);
      const publicKey = hex(witness.publicKey);
      if (timeS < (found.get(publicKey)?.timeS ?? Number.POSITIVE_INFINITY))
        found.set(publicKey, { witness, by: `the cosignature of ${witness.name}`, timeS });
    }
  }
  if (found.size >= required) return [...found.values()];
  const names = [...found.values()].map(({ witness }) => witness.name).join(', ') || 'none';
  throw badSignature(
    `${what} is cosigned by ${found.size} of the given witnesses (${names}), and ${required} are required`,
  );
}

/**
 * Compares a checkpoint with one seen before, which `what` names: both are of one log, and trees of one size have one root.
 * Returns whether they are the same tree; if their sizes differ, only the log can prove that one continues the other. Throws
 * VerificationFailure FORKED.
 */
export function isSameTree(pin: Checkpoint, checkpoint: Checkpoint, what = 'the pin'): boolean {
  if (pin.origin !== checkpoint.origin) {
    throw forked(
      `${what} is of the log ${pin.origin}, this checkpoint of ${checkpoint.origin}: it is another log, or the log was forked. ` +
        'Ask its operator why it was forked, and keep a separate pin for the new log',
    );
  }
  if (checkpoint.size !== pin.size) return false;
  if (isSame(checkpoint.root, pin.root)) return true;
  throw forked(`the log showed two different trees of ${pin.size} leaves: this one, and the one of ${what}`);
}

/**
 * Throws VerificationFailure FORKED if the newest checkpoint of a log is of another log than one seen before, of a smaller
 * tree, or of another tree of the same size. Returns whether the sizes are equal.
 */
export function checkNotBehind(seen: Checkpoint, newest: Checkpoint, what = 'the pin'): boolean {
  const isCompared = isSameTree(seen, newest, what);
  if (isCompared || newest.size > seen.size) return isCompared;
  throw forked(
    `the log has ${newest.size} leaves, and had ${seen.size} in the checkpoint of ${what}: it went back, or this is an old copy of it`,
  );
}

/**
 * Verifies with the tiles of a log that the tree of its newest checkpoint begins with one seen before. Throws
 * VerificationFailure FORKED, and the errors of the log.
 */
export async function checkContinued(
  log: PublishedLog,
  newest: Checkpoint,
  seen: Checkpoint,
  what: string,
): Promise<void> {
  if (checkNotBehind(seen, newest, what)) return;
  const roots = await rootsFromTiles(log, seen.size, newest.size);
  if (isSame(roots.older, seen.root) && isSame(roots.newer, newest.root)) return;
  throw forked(
    `the tree of ${newest.size} leaves does not begin with the one of ${seen.size} of ${what}: the log was rewritten, or shows different people different logs`,
  );
}
