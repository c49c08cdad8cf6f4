import { VerificationFailure } from './failure.ts';

/**
 * How many seconds the clocks of a log, a witness and an authority may be apart. A registry takes no cosignature and no time
 * stamp that is further from its own clock.
 */
export const clockToleranceS = 300;

/** Unix seconds in RFC 3339. */
export const instant = (s: number): string => new Date(s * 1000).toISOString().replace('.000', '');

/** Somebody else's word that a tree was there: who says so, and at what time at the latest, Unix seconds. */
export interface Attestation {
  /** Such as `the cosignature of witness.example`. */
  readonly by: string;
  readonly timeS: number;
}

/** Throws VerificationFailure FORKED if a leaf is dated after an attestation that covers it, by more than clocks may differ. */
export function checkDated(leaf: string, leafTimeS: number, attestations: readonly Attestation[]): void {
  const earlier = attestations.find(({ timeS }) => leafTimeS > timeS + clockToleranceS);
  if (earlier === undefined) return;
  throw new VerificationFailure(
    'FORKED',
    `${leaf} is dated ${instant(leafTimeS)}, after ${earlier.by} that covers it, of ${instant(earlier.timeS)}: the date is wrong`,
  );
}
