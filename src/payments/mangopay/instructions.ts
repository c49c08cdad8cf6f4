import type { PaymentSnapshot } from '../../domain/payment.ts';
import { type PaymentInstruction, type PaymentOrder, ProviderFailure } from '../provider.ts';
import type { MangopayApi } from './client.ts';
import { paymentOf, whyDisputed } from './disputes.ts';
import type { Ledgers } from './ledgers.ts';
import { sellerFault } from './seller.ts';
import type { OrderLedger } from './snapshot.ts';
import { createTransfers } from './transfers.ts';

type CarryOut = (api: MangopayApi, order: PaymentInstruction) => Promise<PaymentSnapshot>;

/** Returns how each kind of instruction is carried out. */
export function createInstructions(
  ledgers: Ledgers,
  escrowUser: string,
  nowMs: () => number,
): Record<PaymentInstruction['kind'], CarryOut> {
  const { underHoldKey, moveOut, giveBack } = createTransfers(ledgers, nowMs);

  /** Gives back what is held. A transfer that waits for the buyer cannot be cancelled and can still become a hold. */
  async function returned(api: MangopayApi, order: PaymentInstruction, ledger: OrderLedger) {
    const payment = await paymentOf(api, ledger, order);
    if (payment.status === 'HELD' && payment.amount !== 0n) return giveBack(api, order, ledger, payment);
    if (payment.status !== 'AWAITING_BUYER') return payment;
    const message = `Mangopay: ${payment.reference} waits for the buyer, ten minutes at most, and cannot be cancelled before`;
    throw new ProviderFailure('FAILED', message);
  }

  /** Gives back what is held, or prevents any hold. */
  async function cancel(
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
  ): Promise<PaymentSnapshot> {
    const payment = await returned(api, order, ledger);
    if (payment.status !== 'ABSENT') return payment;
    const { walletId } = ledger;
    const { wallet: to } = partyOf(order, 'buyer');
    const transfer = transferOf(order, { user: escrowUser, wallet: walletId, to });
    const { status } = await underHoldKey(api, order, ledger, transfer);
    if (status === 'ABSENT') await ledgers.close(api, order, walletId);
    if (status === 'ABSENT' || status === 'VOID') return { status: 'VOID' };
    // The FREEZE came first.
    return returned(api, order, await ledgers.again(api, ledger));
  }

  return {
    FREEZE: async (api, order) => {
      const { user, wallet } = partyOf(order, 'buyer');
      const ledger = await ledgers.open(api, order);
      if ('declined' in ledger) return { status: 'VOID', declined: ledger.declined };
      const payment = await paymentOf(api, ledger, order);
      if (payment.status !== 'ABSENT') return payment;
      const fault = await sellerFault(api, order, partyOf(order, 'seller'));
      if (fault !== undefined) {
        // An earlier FREEZE may still arrive.
        const cancelled = await cancel(api, order, ledger);
        return cancelled.status === 'VOID' ? { ...cancelled, declined: fault.declined } : cancelled;
      }
      const transfer = transferOf(order, { user, wallet, to: ledger.walletId });
      const held = await underHoldKey(api, order, ledger, transfer);
      if (held.status !== 'ABSENT') return held;
      throw new ProviderFailure('FAILED', 'Mangopay: the transfer ended in a fault of its own');
    },
    RELEASE: async (api, order) => {
      const ledger = await ledgers.find(api, order);
      if (ledger === undefined) return { status: 'ABSENT' };
      const payment = await paymentOf(api, ledger, order);
      // Another amount needs review first.
      if (payment.status !== 'HELD' || payment.amount !== order.amount) return payment;
      const seller = partyOf(order, 'seller');
      const fault = await sellerFault(api, order, seller);
      // A wallet that is hidden now was visible before the hold was made.
      const why = fault?.isHidden === false ? fault.declined : await whyDisputed(api, ledger);
      // Mangopay rejects a transfer of 0, which uses the key up: an earlier RELEASE that arrives later pays nobody.
      const amount = why === undefined ? order.amount : 0n;
      const way = { user: escrowUser, wallet: ledger.walletId, to: seller.wallet };
      const moved = await moveOut(api, order, ledger, transferOf({ ...order, amount }, way));
      return why !== undefined && moved.status === 'HELD' ? { ...moved, declined: why } : moved;
    },
    REFUND: async (api, order) => {
      const ledger = await ledgers.find(api, order);
      return ledger === undefined ? { status: 'ABSENT' } : returned(api, order, ledger);
    },
    CANCEL: async (api, order) => {
      const ledger = await ledgers.open(api, order);
      // Without a wallet, no FREEZE can move money into one.
      return 'declined' in ledger ? { status: 'VOID' } : cancel(api, order, ledger);
    },
  };
}

/** A transfer of the amount of an order from the wallet of a user to another wallet. */
const transferOf = (
  order: PaymentOrder,
  { user, wallet, to }: { readonly user: string; readonly wallet: string; readonly to: string },
) => ({
  AuthorId: user,
  DebitedFunds: { Currency: order.currency, Amount: Number(order.amount) },
  Fees: { Currency: order.currency, Amount: 0 },
  DebitedWalletId: wallet,
  CreditedWalletId: to,
  Tag: order.holdId,
  ScaContext: 'USER_PRESENT',
});

function partyOf(order: PaymentOrder, role: 'buyer' | 'seller'): { user: string; wallet: string } {
  const { user, wallet } = order[role] ?? {};
  if (user === undefined || wallet === undefined)
    throw new Error(`The ${role} of the order is not registered.`);
  return { user, wallet };
}
