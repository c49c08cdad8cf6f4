import type { Declined } from '../../domain/payment.ts';
import type { PaymentOrder } from '../provider.ts';
import { declinedFor, type MangopayApi, OwnerHasToAuthenticate } from './client.ts';

/** What is read of a wallet that is to be paid into. */
interface PayableWallet {
  readonly Owners: readonly string[];
  readonly Currency: string;
}

/** What is wrong with the wallet that a seller is to be paid into. */
export interface SellerFault {
  readonly declined: Declined;
  /** Whether it is only that Mangopay does not show the wallet before its owner has authenticated. */
  readonly isHidden: boolean;
}

/**
 * Reads the wallet that a seller is to be paid into: it has to be there, be the registered user's, and be in the currency of
 * the order. Undefined if all of that is so.
 */
export async function sellerFault(
  api: MangopayApi,
  { currency }: PaymentOrder,
  { user, wallet }: { readonly user: string; readonly wallet: string },
): Promise<SellerFault | undefined> {
  const fault = (what: string, isHidden = false): SellerFault => {
    const words = `The seller's wallet ${wallet} ${what}.`;
    return { declined: declinedFor('seller_wallet', words, words), isHidden };
  };
  try {
    const found = await api.find<PayableWallet>(`/wallets/${wallet}`);
    if (found === undefined) return fault('does not exist');
    if (!found.Owners.includes(user)) return fault(`is not a wallet of the user ${user}`);
    if (found.Currency !== currency) return fault(`is in ${found.Currency}, and the order in ${currency}`);
    return undefined;
  } catch (error) {
    if (!(error instanceof OwnerHasToAuthenticate)) throw error;
    return fault('cannot be checked: its owner has to authenticate at Mangopay first', true);
  }
}
