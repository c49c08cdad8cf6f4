import type { Declined } from '../../domain/payment.ts';
import type { PaymentOrder } from '../provider.ts';
import { declinedFor, type MangopayApi } from './client.ts';
import { OwnerHasToAuthenticate } from './http.ts';

/** The members of a seller's wallet that are read. */
interface PayableWallet {
  readonly Owners: readonly string[];
  readonly Currency: string;
}

/** Why a seller's wallet cannot be paid into. */
export interface SellerFault {
  readonly declined: Declined;
  /** Whether Mangopay only does not show the wallet before its owner has authenticated. */
  readonly isHidden: boolean;
}

/**
 * Reads the seller's wallet. It must exist, belong to the registered user, and have the currency of the order. Returns
 * undefined if it does.
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
