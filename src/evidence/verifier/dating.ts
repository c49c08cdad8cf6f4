import { forked } from '../formats/failure.ts';

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
