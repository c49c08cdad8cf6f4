import { badSignature } from '../formats/failure.ts';
import { printable, readAuthorities, type Stamped, verifyToken } from '../formats/time-stamp.ts';
import type { TimeStamp } from './read-bundle.ts';

export { readAuthorities, type Stamped };

/**
 * Verifies the time stamp of a bundle against trusted certificates: RFC 3161. It does not check that the leaf is in the
 * stamped checkpoint; `prove` does. Throws VerificationFailure BAD_SIGNATURE.
 */
export async function verifyTimeStamp(
  { proof, token }: TimeStamp,
  authorities: ReturnType<typeof readAuthorities>,
): Promise<Stamped> {
  try {
    return await verifyToken(token, proof.checkpoint.text, authorities);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badSignature(`the time stamp is not valid: ${printable(why)}`);
  }
}
