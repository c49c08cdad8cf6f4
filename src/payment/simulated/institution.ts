import type { Institution, Verdict } from '../institution.ts';

/** Ids that begin so are declined. */
export const declinedPrefix = 'sim-decline';
/** Instructions for ids that begin so are never answered. */
export const silentPrefix = 'sim-silent';

/**
 * An institution for sandboxes: it moves no money and confirms at once, except that it declines to freeze for a
 * buyerId, or to release to a sellerId, that begins with `sim-decline`, and never answers for one that begins
 * with `sim-silent`.
 */
export function createSimulatedInstitution(): Institution {
  return {
    freeze: ({ buyerId }) => verdictFor(buyerId),
    release: ({ sellerId }) => verdictFor(sellerId),
  };
}

function verdictFor(partyId: string): Promise<Verdict> {
  if (partyId.startsWith(silentPrefix)) return new Promise(() => {});
  return Promise.resolve(partyId.startsWith(declinedPrefix) ? 'DECLINED' : 'CONFIRMED');
}
