import { isEd25519, type VerifierKey } from './note.ts';

/** Bytes of the time before the signature. */
const timeBytes = 8;

/**
 * Verifies the cosignature of a witness over the text of a checkpoint (c2sp.org/tlog-cosignature, Ed25519). Returns its time
 * in Unix seconds; undefined if the cosignature is not valid.
 */
export function readCosignature(
  signature: Uint8Array,
  text: string,
  { publicKey }: VerifierKey,
): number | undefined {
  const bytes = Uint8Array.from(signature);
  if (bytes.length <= timeBytes) return undefined;
  const timeS = Number(new DataView(bytes.buffer).getBigUint64(0));
  const message = `cosignature/v1\ntime ${timeS}\n${text}`;
  const isValid = Number.isSafeInteger(timeS) && isEd25519(bytes.subarray(timeBytes), message, publicKey);
  return isValid ? timeS : undefined;
}
