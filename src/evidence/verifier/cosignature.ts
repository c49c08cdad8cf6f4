import type { Checkpoint } from './checkpoint.ts';
import type { Attestation } from './dating.ts';
import { hex } from './encoding.ts';
import { VerificationFailure } from './failure.ts';
import { isEd25519, signatureTypes, type VerifierKey } from './note.ts';

/** Which witnesses are known, and how many of them are asked for. */
export interface WitnessPolicy {
  /** Keys of witnesses, got from elsewhere than the bundle; those of another kind are passed over. */
  readonly keys: readonly VerifierKey[];
  readonly required: number;
}

/** That a witness had seen the log up to this checkpoint, and nothing that contradicts it. */
export interface Cosignature {
  readonly witness: VerifierKey;
  /** When, by the word of the witness: Unix seconds. */
  readonly timeS: number;
}

/** Bytes of the time before the signature. */
const timeBytes = 8;

/**
 * The cosignatures of known witnesses under a checkpoint (c2sp.org/tlog-cosignature, Ed25519), the earliest of each; those of
 * others are ignored. A public key is one witness, whatever names it is given under. Throws VerificationFailure BAD_SIGNATURE if there are fewer than required, or one does not verify.
 */
export function cosignaturesOf(
  { note }: Checkpoint,
  { keys, required }: WitnessPolicy,
  what: string,
): readonly Cosignature[] {
  const found = new Map<string, Cosignature>();
  for (const { keyName, keyId, signature } of note.signatures) {
    for (const witness of keys) {
      const { name, id, type, publicKey } = witness;
      if (type !== signatureTypes.cosignature || name !== keyName || id !== keyId) continue;
      const timeS = readCosignature(signature, note.text, witness, what);
      const known = found.get(hex(publicKey));
      if (known === undefined || timeS < known.timeS) found.set(hex(publicKey), { witness, timeS });
    }
  }
  if (found.size < required) {
    const names = [...found.values()].map(({ witness }) => witness.name).join(', ') || 'none';
    throw new VerificationFailure(
      'BAD_SIGNATURE',
      `${what} is cosigned by ${found.size} of the given witnesses (${names}), and ${required} are required`,
    );
  }
  return [...found.values()];
}

/** What cosignatures say of when the tree was there. */
export function attestationsOf(cosignatures: readonly Cosignature[]): readonly Attestation[] {
  return cosignatures.map(({ witness, timeS }) => ({ by: `the cosignature of ${witness.name}`, timeS }));
}

/** The time of a cosignature that verifies, Unix seconds. */
function readCosignature(signature: Uint8Array, text: string, witness: VerifierKey, what: string): number {
  const bytes = Uint8Array.from(signature);
  const time = bytes.length > timeBytes ? new DataView(bytes.buffer).getBigUint64(0) : 0n;
  const message = `cosignature/v1\ntime ${time}\n${text}`;
  if (Number.isSafeInteger(Number(time)) && isEd25519(bytes.subarray(timeBytes), message, witness.publicKey))
    return Number(time);
  throw new VerificationFailure(
    'BAD_SIGNATURE',
    `${what} bears a cosignature of ${witness.name} (${witness.id}) that is not valid`,
  );
}
