import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import { type PaymentInstruction, type PaymentOrder, ProviderFailure } from '../provider.ts';
import { declinedFor, type MangopayApi, OwnerHasToAuthenticate } from './client.ts';
import { paymentOf, whyDisputed } from './disputes.ts';
import { closeWallet, findLedger, keyOf, type OrderCall, openLedger, readAgain } from './ledgers.ts';
import { declinedBy, holdOf, type OrderLedger, snapshotOf, type Transfer } from './snapshot.ts';

type InstructionCall = OrderCall<PaymentInstruction>;

/** How each kind of instruction is carried out. Resolves to the status after it. */
export const carryOut: Readonly<
  Record<PaymentInstruction['kind'], (call: InstructionCall) => Promise<PaymentSnapshot>>
> = {
  FREEZE: async (call) => {
    const { api, order } = call;
    const { user, wallet } = partyOf(order, 'buyer');
    const ledger = await openLedger(call);
    if ('declined' in ledger) return { status: 'VOID', declined: ledger.declined };
    const payment = await paymentOf(api, ledger, order);
    if (payment.status !== 'ABSENT') return payment;
    const fault = await sellerFault(api, order, partyOf(order, 'seller'));
    if (fault !== undefined) {
      // An earlier FREEZE may still arrive.
      const cancelled = await cancel(call, ledger);
      return cancelled.status === 'VOID' ? { ...cancelled, declined: fault.declined } : cancelled;
    }
    const held = await underHoldKey(call, ledger, transferOf(order, { user, wallet, to: ledger.walletId }));
    if (held.status !== 'ABSENT') return held;
    throw new ProviderFailure('FAILED', 'Mangopay: the transfer ended in a fault of its own');
  },
  RELEASE: async (call) => {
    const { api, order, escrowUser } = call;
    const ledger = await findLedger(call);
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
    const moved = await moveOut(call, ledger, '/transfers', transferOf({ ...order, amount }, way));
    return why !== undefined && moved.status === 'HELD' ? { ...moved, declined: why } : moved;
  },
  REFUND: async (call) => {
    const ledger = await findLedger(call);
    return ledger === undefined ? { status: 'ABSENT' } : giveBack(call, ledger);
  },
  CANCEL: async (call) => {
    const ledger = await openLedger(call);
    // Without a wallet, no FREEZE can move money into one.
    return 'declined' in ledger ? { status: 'VOID' } : cancel(call, ledger);
  },
};

/** Gives back what is held, or prevents any hold. */
async function cancel(call: InstructionCall, ledger: OrderLedger): Promise<PaymentSnapshot> {
  const { api, order, escrowUser } = call;
  const payment = await giveBack(call, ledger);
  if (payment.status !== 'ABSENT') return payment;
  const { walletId } = ledger;
  const { wallet: to } = partyOf(order, 'buyer');
  const transfer = transferOf(order, { user: escrowUser, wallet: walletId, to });
  const { status } = await underHoldKey(call, ledger, transfer);
  if (status === 'ABSENT') await closeWallet(call, walletId);
  if (status === 'ABSENT' || status === 'VOID') return { status: 'VOID' };
  // The FREEZE came first.
  return giveBack(call, await readAgain(api, ledger));
}

/**
 * Refunds what is held. Returns the status after it, and why it was declined if it is still HELD. A transfer that waits for
 * the buyer cannot be cancelled and can still become a hold.
 */
async function giveBack(call: InstructionCall, ledger: OrderLedger): Promise<PaymentSnapshot> {
  const { api, order } = call;
  const held = await paymentOf(api, ledger, order);
  if (held.status === 'AWAITING_BUYER') {
    const message = `Mangopay: ${held.reference} waits for the buyer, ten minutes at most, and cannot be cancelled before`;
    throw new ProviderFailure('FAILED', message);
  }
  if (held.status !== 'HELD' || held.amount === 0n) return held;
  const hold = holdOf(ledger);
  const funds = { Currency: hold?.DebitedFunds.Currency, Amount: Number(held.amount) };
  const refund = {
    AuthorId: hold?.AuthorId,
    DebitedFunds: funds,
    Fees: { ...funds, Amount: 0 },
    Tag: order.holdId,
  };
  return moveOut(call, ledger, `/transfers/${hold?.Id}/refunds`, refund);
}

/**
 * Sends the only transfer under the hold key of an order, which makes the hold or prevents one. Returns the status after the
 * first use of the key. ABSENT means that an error at Mangopay used it up, and no hold is visible.
 */
async function underHoldKey(
  call: InstructionCall,
  ledger: OrderLedger,
  transfer: object,
): Promise<PaymentSnapshot> {
  const { api, order } = call;
  const { walletId } = ledger;
  const sent = await api.post<Transfer>('/transfers', transfer, keyOf('hold', order.holdId));
  if (sent.kind === 'LOST') return snapshotOf(await readAgain(api, ledger), order);
  if (sent.kind === 'REJECTED') {
    await closeWallet(call, walletId);
    return { status: 'VOID', declined: sent.declined };
  }
  const made = sent.isStored ? await api.get<Transfer>(`/transfers/${sent.resource.Id}`) : sent.resource;
  if (made.Status === 'FAILED') await closeWallet(call, walletId);
  // A transfer back to the buyer used the key up.
  if (made.DebitedWalletId !== walletId)
    return snapshotOf({ walletId, isClosed: false, transfers: [made] }, order);
  if (made.Status === 'FAILED') return { status: 'VOID' };
  return snapshotOf(await readAgain(api, ledger, made), order);
}

/**
 * Posts what moves money out of the order's wallet, under the key of the instruction, and under another key if an error at
 * Mangopay used that up. Returns the status after it, and why it was declined if it is still HELD.
 */
async function moveOut(
  { api, order, nowMs }: InstructionCall,
  ledger: OrderLedger,
  path: string,
  body: object,
): Promise<PaymentSnapshot> {
  const post = (thing: string) => api.post<Transfer>(path, body, keyOf(thing, order.instructionId));
  const declined = async (why: Declined): Promise<PaymentSnapshot> => {
    const payment = snapshotOf(await readAgain(api, ledger), order);
    // What was found in the wallet explains more than the error that follows from it.
    return payment.status === 'HELD' ? { declined: why, ...payment } : payment;
  };
  let sent = await post('instruction');
  // The money is still in the wallet, which it can leave only once.
  if (sent.kind === 'LOST') sent = await post(`instruction at ${nowMs()}`);
  if (sent.kind === 'LOST') throw new ProviderFailure('FAILED', 'Mangopay: a fault of its own, twice');
  if (sent.kind === 'REJECTED') return declined(sent.declined);
  const made = sent.isStored ? await currentOf(api, sent.resource) : sent.resource;
  if (made.Status === 'CREATED') {
    throw new ProviderFailure('FAILED', `Mangopay: ${made.Id} is not carried out yet${whyWaiting(made)}`);
  }
  if (made.Status === 'FAILED') return declined(declinedBy(made));
  return snapshotOf(await readAgain(api, ledger, made), order);
}

/** Reads a stored transfer again. A refund has a path of its own. */
function currentOf(api: MangopayApi, { Id, Nature }: Transfer): Promise<Transfer> {
  return api.get<Transfer>(Nature === 'REFUND' ? `/refunds/${Id}` : `/transfers/${Id}`);
}

const whyWaiting = ({ PendingUserAction }: Transfer) =>
  PendingUserAction
    ? ': the user of ARTSEAL_MANGOPAY_ESCROW_USER is to authenticate, who has to be of the category PLATFORM'
    : '';

/** Why a seller's wallet cannot be paid into. */
interface SellerFault {
  readonly declined: Declined;
  /** Whether Mangopay only does not show the wallet before its owner has authenticated. */
  readonly isHidden: boolean;
}

/**
 * Reads the seller's wallet. It must exist, belong to the registered user, and have the currency of the order. Returns
 * undefined if it does.
 */
async function sellerFault(
  api: MangopayApi,
  { currency }: PaymentOrder,
  { user, wallet }: Party,
): Promise<SellerFault | undefined> {
  const fault = (what: string, isHidden = false): SellerFault => {
    const words = `The seller's wallet ${wallet} ${what}.`;
    return { declined: declinedFor('seller_wallet', words, words), isHidden };
  };
  try {
    const found = await api.find<{ Owners: readonly string[]; Currency: string }>(`/wallets/${wallet}`);
    if (found === undefined) return fault('does not exist');
    if (!found.Owners.includes(user)) return fault(`is not a wallet of the user ${user}`);
    if (found.Currency !== currency) return fault(`is in ${found.Currency}, and the order in ${currency}`);
    return undefined;
  } catch (error) {
    if (!(error instanceof OwnerHasToAuthenticate)) throw error;
    return fault('cannot be checked: its owner has to authenticate at Mangopay first', true);
  }
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

/** The ids of a registered party. */
interface Party {
  readonly user: string;
  readonly wallet: string;
}

function partyOf(order: PaymentOrder, role: 'buyer' | 'seller'): Party {
  const { user, wallet } = order[role] ?? {};
  if (user === undefined || wallet === undefined)
    throw new Error(`The ${role} of the order is not registered.`);
  return { user, wallet };
}
