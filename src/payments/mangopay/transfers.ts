import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import { type PaymentInstruction, type PaymentOrder, ProviderFailure } from '../provider.ts';
import type { MangopayApi, Posted } from './client.ts';
import { keyOf, type Ledgers } from './ledgers.ts';
import { declinedBy, holdOf, type OrderLedger, snapshotOf, type Transfer } from './snapshot.ts';

/** Moves the money of orders between wallets. */
export interface Transfers {
  /**
   * Sends the only transfer under the hold key of an order, which makes the hold or prevents one. Returns the status after the
   * first use of the key. ABSENT means that an error at Mangopay used it up, and no hold is visible.
   */
  underHoldKey(
    api: MangopayApi,
    order: PaymentOrder,
    ledger: OrderLedger,
    transfer: object,
  ): Promise<PaymentSnapshot>;
  /** Sends a transfer out of the order's wallet. Returns the status after it, and why it was declined if it is still HELD. */
  moveOut(
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
    transfer: object,
  ): Promise<PaymentSnapshot>;
  /** Refunds what is held. Returns like `moveOut`. */
  giveBack(
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
    held: PaymentSnapshot,
  ): Promise<PaymentSnapshot>;
}

export function createTransfers(ledgers: Ledgers, nowMs: () => number): Transfers {
  /** Posts under the key of an instruction, and under another key if an error at Mangopay used that up. */
  async function postOut(
    api: MangopayApi,
    path: string,
    body: object,
    order: PaymentInstruction,
    ledger: OrderLedger,
  ): Promise<PaymentSnapshot> {
    const { instructionId } = order;
    const post = (thing: string): Promise<Posted<Transfer>> =>
      api.post(path, body, keyOf(thing, instructionId));
    let sent = await post('instruction');
    // The money is still in the wallet, which it can leave only once.
    if (sent.kind === 'LOST') sent = await post(`instruction at ${nowMs()}`);
    if (sent.kind === 'LOST') throw new ProviderFailure('FAILED', 'Mangopay: a fault of its own, twice');
    if (sent.kind === 'REJECTED') return declined(api, order, ledger, sent.declined);
    const made = sent.isStored ? await currentOf(api, sent.resource) : sent.resource;
    if (made.Status === 'CREATED') {
      throw new ProviderFailure('FAILED', `Mangopay: ${made.Id} is not carried out yet${whyWaiting(made)}`);
    }
    if (made.Status === 'FAILED') return declined(api, order, ledger, declinedBy(made));
    return snapshotOf(await ledgers.again(api, ledger, made), order);
  }

  async function declined(api: MangopayApi, order: PaymentOrder, ledger: OrderLedger, why: Declined) {
    const payment = snapshotOf(await ledgers.again(api, ledger), order);
    // What was found in the wallet explains more than the error that follows from it.
    return payment.status === 'HELD' ? { declined: why, ...payment } : payment;
  }

  return {
    underHoldKey: async (api, order, ledger, transfer) => {
      const { walletId } = ledger;
      const sent = await api.post<Transfer>('/transfers', transfer, keyOf('hold', order.holdId));
      if (sent.kind === 'LOST') return snapshotOf(await ledgers.again(api, ledger), order);
      if (sent.kind === 'REJECTED') {
        await ledgers.close(api, order, walletId);
        return { status: 'VOID', declined: sent.declined };
      }
      const made = sent.isStored ? await api.get<Transfer>(`/transfers/${sent.resource.Id}`) : sent.resource;
      if (made.Status === 'FAILED') await ledgers.close(api, order, walletId);
      // A transfer back to the buyer used the key up.
      if (made.DebitedWalletId !== walletId)
        return snapshotOf({ walletId, isClosed: false, transfers: [made] }, order);
      if (made.Status === 'FAILED') return { status: 'VOID' };
      return snapshotOf(await ledgers.again(api, ledger, made), order);
    },
    moveOut: (api, order, ledger, transfer) => postOut(api, '/transfers', transfer, order, ledger),
    giveBack: (api, order, ledger, held) => {
      const hold = holdOf(ledger);
      const funds = { Currency: hold?.DebitedFunds.Currency, Amount: Number(held.amount) };
      const refund = {
        AuthorId: hold?.AuthorId,
        DebitedFunds: funds,
        Fees: { ...funds, Amount: 0 },
        Tag: order.holdId,
      };
      return postOut(api, `/transfers/${hold?.Id}/refunds`, refund, order, ledger);
    },
  };
}

/** Reads a stored transfer again. A refund has a path of its own. */
function currentOf(api: MangopayApi, { Id, Nature }: Transfer): Promise<Transfer> {
  return api.get<Transfer>(Nature === 'REFUND' ? `/refunds/${Id}` : `/transfers/${Id}`);
}

const whyWaiting = ({ PendingUserAction }: Transfer) =>
  PendingUserAction
    ? ': the user of ARTSEAL_MANGOPAY_ESCROW_USER is to authenticate, who has to be of the category PLATFORM'
    : '';
