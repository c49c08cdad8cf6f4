/** Where a PaymentIntent is, as PaymentSnapshot.reference says it. */
export interface IntentPlace {
  /**
   * The seller's connected account; undefined of a PaymentIntent on the platform's own account, as orders had before
   * they were charged directly on the seller's.
   */
  readonly account: string | undefined;
  readonly intentId: string;
}

/** `acct_…/pi_…`, or `pi_…` on the platform's own account. */
export function referenceOf({ account, intentId }: IntentPlace): string {
  return account === undefined ? intentId : `${account}/${intentId}`;
}

/** Reads what `referenceOf` wrote. */
export function placeOf(reference: string): IntentPlace {
  const slash = reference.indexOf('/');
  if (slash < 0) return { account: undefined, intentId: reference };
  return { account: reference.slice(0, slash), intentId: reference.slice(slash + 1) };
}
