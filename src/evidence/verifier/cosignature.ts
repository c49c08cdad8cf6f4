import type { Checkpoint } from '../formats/checkpoint.ts';
import { readCosignature } from '../formats/cosignature.ts';
import { hex } from '../formats/encoding.ts';
import { badSignature } from '../formats/failure.ts';
import { isOf, signatureTypes, type VerifierKey } from '../formats/note.ts';
import type { Attestation } from './dating.ts';

/** The trusted witnesses, and how many of them have to have cosigned. */
export interface WitnessPolicy {
  /** Keys of witnesses, from another source than the bundle. Keys of other types are ignored. */
  readonly keys: readonly VerifierKey[];
  readonly required: number;
}

/** The statement of a witness that it saw the log up to this checkpoint, and nothing that contradicts it. */
export interface Cosignature {
  readonly witness: VerifierKey;
  /** The time that the witness states, Unix seconds. */
  readonly timeS: number;
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
        found.set(publicKey, { witness, timeS });
    }
  }
  if (found.size >= required) return [...found.values()];
  const names = [...found.values()].map(({ witness }) => witness.name).join(', ') || 'none';
  throw badSignature(
    `${what} is cosigned by ${found.size} of the given witnesses (${names}), and ${required} are required`,
  );
}

/** Returns when the tree existed, according to cosignatures. */
export function attestationsOf(cosignatures: readonly Cosignature[]): readonly Attestation[] {
  return cosignatures.map(({ witness, timeS }) => ({ by: `the cosignature of ${witness.name}`, timeS }));
}
