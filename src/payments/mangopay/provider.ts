import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import type { Violation } from '../../domain/violation.ts';
import {
  type Access,
  type NotificationSubject,
  type PaymentInstruction,
  type PaymentOrder,
  type PaymentProvider,
  ProviderFailure,
  type Terms,
} from '../provider.ts';
import type { MangopaySettings } from './client.ts';
import { createMangopayClient, type MangopayApi, type MangopayClient, type Posted } from './client.ts';
import { ordersOfDispute, paymentOf, whyDisputed } from './disputes.ts';
import { createLedgers, keyOf, type Ledgers } from './ledgers.ts';
import { readHook } from './notification.ts';
import { sellerFault } from './seller.ts';
import { declinedBy, holdOf, type OrderLedger, snapshotOf, type Transfer } from './snapshot.ts';

/** Amounts travel as JSON numbers. */
const amountMax = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * Escrow at Mangopay, which really holds: FREEZE moves the amount from the buyer's wallet into one of the order's own, which
 * belongs to the escrow user. RELEASE moves it on to the seller's wallet, REFUND and CANCEL refund the first transfer, whose id
 * is the reference of the PaymentSnapshot. Nothing lapses.
 *
 * One hold: the transfer is made under one idempotency key, which is derived from the holdId. Mangopay knows a key for 24
 * hours, answers a second request with 409, whatever became of the first, and tells then what that was answered. An order
 * that is older is looked for before it is frozen.
 *
 * One way out: the wallet of the order has the amount once and cannot go below nothing. Whatever is sent twice, or crosses, a
 * RELEASE and a REFUND as well, is carried out once, and the rest fails for want of money. So these need no key that lasts.
 *
 * VOID is kept in two ways. A CANCEL uses the key of the hold up, by a transfer under it that can move nothing or else moves
 * the money where a CANCEL wants it: from the order's wallet to the buyer's. After that Mangopay turns away a FREEZE that is
 * still on its way. And it writes into the Tag of the wallet that it is closed, which is what a FREEZE looks at that is given
 * once the key is forgotten. A transfer that failed closes the wallet as well.
 *
 * A transfer that waits for the buyer cannot be called off. It fails by itself ten minutes after it was made; until then CANCEL
 * and REFUND have no answer.
 */
export function createMangopayProvider(settings: MangopaySettings, nowMs: () => number): PaymentProvider {
  const client = createMangopayClient(settings, nowMs);
  const ledgers = createLedgers(settings.escrowUser, nowMs);
  const carryOut = createInstructions(ledgers, settings.escrowUser, nowMs);
  return {
    notificationMethod: 'GET',
    checkAccess: (signal) => checkAccess(client, settings.escrowUser, signal),
    check,
    instruct: (instruction, signal) =>
      client.call(signal, (api) => carryOut[instruction.kind](api, instruction)),
    lookUp: (order, signal) =>
      client.call(signal, async (api) => {
        const ledger = await ledgers.find(api, order);
        return ledger === undefined ? { status: 'ABSENT' } : paymentOf(api, ledger, order);
      }),
    readNotification: (sent) => readHook(sent, settings.hookSecret),
    subjectOf: (resource, signal) => client.call(signal, (api) => subjectOf(api, resource)),
    close: async () => client.close(),
  };
}

function check({ amount }: Terms): readonly Violation[] {
  return amount > amountMax ? [{ field: 'amount', rule: `must be at most ${amountMax}` }] : [];
}

/** Reads the escrow user, who has to be there and able to receive money. */
async function checkAccess(client: MangopayClient, escrowUser: string, signal: AbortSignal): Promise<Access> {
  try {
    return await client.call(signal, async (api) => {
      const user = await api.find<{ UserCategory?: string }>(`/users/${escrowUser}`);
      const setting = 'the user of ARTSEAL_MANGOPAY_ESCROW_USER';
      if (user === undefined) return { kind: 'REJECTED', why: `${setting} does not exist` };
      return user.UserCategory === 'PAYER'
        ? { kind: 'REJECTED', why: `${setting} is a PAYER, who cannot receive money` }
        : { kind: 'ACCEPTED' };
    });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const isRejected = error instanceof ProviderFailure && error.kind === 'CREDENTIALS_REJECTED';
    return { kind: isRejected ? 'REJECTED' : 'UNREACHABLE', why };
  }
}

/**
 * The orders that a resource of a hook is about. A refund has nothing of an order itself, where somebody else made it, but the
 * transfer that it is of has the hold in its Tag.
 */
async function subjectOf(api: MangopayApi, resource: string): Promise<NotificationSubject | undefined> {
  const disputeId = /^\/disputes\/(.+)$/.exec(resource)?.[1];
  if (disputeId !== undefined) return ordersOfDispute(api, disputeId);
  const refund = await api.find<{ InitialTransactionId?: string }>(resource);
  const initialId = refund?.InitialTransactionId;
  const initial = initialId === undefined ? undefined : await api.find<Transfer>(`/transfers/${initialId}`);
  return initial?.Tag ? { holdId: initial.Tag } : undefined;
}

function createInstructions(ledgers: Ledgers, escrowUser: string, nowMs: () => number) {
  /** Moves the amount of an order from one wallet to another. */
  const transferOf = (order: PaymentOrder, from: { user: string; wallet: string }, to: string) => ({
    AuthorId: from.user,
    DebitedFunds: { Currency: order.currency, Amount: Number(order.amount) },
    Fees: { Currency: order.currency, Amount: 0 },
    DebitedWalletId: from.wallet,
    CreditedWalletId: to,
    Tag: order.holdId,
    ScaContext: 'USER_PRESENT',
  });

  /**
   * Sends the one transfer that there is under the key of the hold, be it to make the hold or to see to it that there is
   * none; what then came of the key, whoever used it first. ABSENT: it is used up, by a fault of Mangopay's, and nothing is seen
   * of a hold.
   */
  async function underHoldKey(
    api: MangopayApi,
    order: PaymentOrder,
    ledger: OrderLedger,
    transfer: object,
  ): Promise<PaymentSnapshot> {
    const { walletId } = ledger;
    const sent = await api.post<Transfer>('/transfers', transfer, keyOf('hold', order.holdId));
    if (sent.kind === 'LOST') return snapshotOf(await ledgers.again(api, ledger), order);
    if (sent.kind === 'REFUSED') {
      await ledgers.close(api, order, walletId);
      return { status: 'VOID', declined: sent.apiError };
    }
    const made = sent.isStored ? await api.get<Transfer>(`/transfers/${sent.resource.Id}`) : sent.resource;
    if (made.Status === 'FAILED') await ledgers.close(api, order, walletId);
    // Back to the buyer, it is what used the key up.
    if (made.DebitedWalletId !== walletId)
      return snapshotOf({ walletId, isClosed: false, transfers: [made] }, order);
    return made.Status === 'FAILED'
      ? { status: 'VOID' }
      : snapshotOf(await ledgers.again(api, ledger, made), order);
  }

  /** What of a ledger is held, moved on by `send`; why that was declined, where it still is held. */
  async function moveOn(
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
    send: (key: string) => Promise<Posted<Transfer>>,
  ): Promise<PaymentSnapshot> {
    const { instructionId } = order;
    let sent = await send(keyOf('instruction', instructionId));
    // The key is used up by a fault of Mangopay's, and the money is still there: it can leave but once.
    if (sent.kind === 'LOST') sent = await send(keyOf(`instruction at ${nowMs()}`, instructionId));
    if (sent.kind === 'LOST') throw new ProviderFailure('FAILED', 'Mangopay: a fault of its own, twice');
    if (sent.kind === 'REFUSED') return declined(api, order, ledger, sent.apiError);
    const made = sent.isStored ? await currentOf(api, sent.resource) : sent.resource;
    if (made.Status === 'CREATED') {
      throw new ProviderFailure('FAILED', `Mangopay: ${made.Id} is not carried out yet${whyWaiting(made)}`);
    }
    if (made.Status === 'FAILED') return declined(api, order, ledger, declinedBy(made));
    return snapshotOf(await ledgers.again(api, ledger, made), order);
  }

  const declined = async (api: MangopayApi, order: PaymentOrder, ledger: OrderLedger, why: Declined) => {
    const payment = snapshotOf(await ledgers.again(api, ledger), order);
    // What was found in the wallet explains more than the error that follows from it.
    return payment.status === 'HELD' ? { declined: why, ...payment } : payment;
  };

  const giveBack = (
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
    held: PaymentSnapshot,
  ) => {
    const hold = holdOf(ledger);
    const funds = { Currency: hold?.DebitedFunds.Currency, Amount: Number(held.amount) };
    const refund = {
      AuthorId: hold?.AuthorId,
      DebitedFunds: funds,
      Fees: { ...funds, Amount: 0 },
      Tag: order.holdId,
    };
    return moveOn(api, order, ledger, (key) =>
      api.post<Transfer>(`/transfers/${hold?.Id}/refunds`, refund, key),
    );
  };

  /** Gives back what is held. What waits for the buyer can still come to be, and cannot be called off. */
  const returned = async (api: MangopayApi, order: PaymentInstruction, ledger: OrderLedger) => {
    const payment = await paymentOf(api, ledger, order);
    if (payment.status === 'HELD' && payment.amount !== 0n) return giveBack(api, order, ledger, payment);
    if (payment.status !== 'AWAITING_BUYER') return payment;
    throw new ProviderFailure(
      'FAILED',
      `Mangopay: ${payment.reference} waits for the buyer, ten minutes at most, and cannot be called off before`,
    );
  };

  /** Gives back what is held, or else sees to it that nothing ever is. */
  async function cancel(
    api: MangopayApi,
    order: PaymentInstruction,
    ledger: OrderLedger,
  ): Promise<PaymentSnapshot> {
    const payment = await returned(api, order, ledger);
    if (payment.status !== 'ABSENT') return payment;
    const { walletId } = ledger;
    const nothing = transferOf(order, { user: escrowUser, wallet: walletId }, partyOf(order, 'buyer').wallet);
    const { status } = await underHoldKey(api, order, ledger, nothing);
    if (status === 'ABSENT') await ledgers.close(api, order, walletId);
    if (status === 'ABSENT' || status === 'VOID') return { status: 'VOID' };
    // The FREEZE was there first.
    return returned(api, order, await ledgers.again(api, ledger));
  }

  type Carry = (api: MangopayApi, order: PaymentInstruction) => Promise<PaymentSnapshot>;
  return {
    FREEZE: async (api, order) => {
      const { user, wallet } = partyOf(order, 'buyer');
      const ledger = await ledgers.open(api, order);
      if ('apiError' in ledger) return { status: 'VOID', declined: ledger.apiError };
      const payment = await paymentOf(api, ledger, order);
      if (payment.status !== 'ABSENT') return payment;
      const fault = await sellerFault(api, order, partyOf(order, 'seller'));
      if (fault !== undefined) {
        // An earlier FREEZE may be on its way.
        const cancelled = await cancel(api, order, ledger);
        return cancelled.status === 'VOID' ? { ...cancelled, declined: fault.declined } : cancelled;
      }
      const { walletId } = ledger;
      const held = await underHoldKey(api, order, ledger, transferOf(order, { user, wallet }, walletId));
      if (held.status !== 'ABSENT') return held;
      throw new ProviderFailure('FAILED', 'Mangopay: the transfer ended in a fault of its own');
    },
    RELEASE: async (api, order) => {
      const ledger = await ledgers.find(api, order);
      if (ledger === undefined) return { status: 'ABSENT' };
      const payment = await paymentOf(api, ledger, order);
      // Where it is not what was agreed, a person has to look first.
      if (payment.status !== 'HELD' || payment.amount !== order.amount) return payment;
      const seller = partyOf(order, 'seller');
      const fault = await sellerFault(api, order, seller);
      // A wallet that is hidden now was seen before the hold was made.
      const why = fault?.isHidden === false ? fault.declined : await whyDisputed(api, ledger);
      const from = { user: escrowUser, wallet: ledger.walletId };
      // A transfer of nothing is refused and uses the key up: an earlier RELEASE that is on its way pays nobody.
      const amount = why === undefined ? order.amount : 0n;
      const transfer = transferOf({ ...order, amount }, from, seller.wallet);
      const moved = await moveOn(api, order, ledger, (key) => api.post('/transfers', transfer, key));
      return why !== undefined && moved.status === 'HELD' ? { ...moved, declined: why } : moved;
    },
    REFUND: async (api, order) => {
      const ledger = await ledgers.find(api, order);
      return ledger === undefined ? { status: 'ABSENT' } : returned(api, order, ledger);
    },
    CANCEL: async (api, order) => {
      const ledger = await ledgers.open(api, order);
      // Without a wallet there is nothing that a FREEZE could move money into.
      if ('apiError' in ledger) return { status: 'VOID' };
      return cancel(api, order, ledger);
    },
  } satisfies Record<PaymentInstruction['kind'], Carry>;
}

/** A transfer that was stored, as it is now; a refund is looked up among those. */
function currentOf(api: MangopayApi, { Id, Nature }: Transfer): Promise<Transfer> {
  return api.get<Transfer>(Nature === 'REFUND' ? `/refunds/${Id}` : `/transfers/${Id}`);
}

const whyWaiting = ({ PendingUserAction }: Transfer) =>
  PendingUserAction
    ? ': the user of ARTSEAL_MANGOPAY_ESCROW_USER is to authenticate, who has to be of the category PLATFORM'
    : '';

function partyOf(order: PaymentOrder, role: 'buyer' | 'seller'): { user: string; wallet: string } {
  const { user, wallet } = order[role] ?? {};
  if (user === undefined || wallet === undefined)
    throw new Error(`The ${role} of the order is not registered.`);
  return { user, wallet };
}
