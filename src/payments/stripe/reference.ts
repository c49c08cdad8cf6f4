/** Where a PaymentIntent is. */
export interface IntentPlace {
  /** The seller's connected account. */
  readonly account: string;
  readonly intentId: string;
}

/** Returns `acct_…/pi_…`, which becomes PaymentSnapshot.reference. */
export function referenceOf({ account, intentId }: IntentPlace): string {
  return `${account}/${intentId}`;
}

/** Reads what `referenceOf` wrote. */
export function placeOf(reference: string): IntentPlace {
  const [account = '', intentId = ''] = reference.split('/');
  return { account, intentId };
}
