import { createHash, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../domain/reason.ts';
import {
  type Access,
  type Notification,
  type NotificationSubject,
  type PaymentProvider,
  ProviderFailure,
  type SentNotification,
} from '../provider.ts';
import {
  createMangopayClient,
  type MangopayApi,
  type MangopayClient,
  type MangopaySettings,
} from './client.ts';
import { ordersOfDispute, paymentOf } from './disputes.ts';
import { carryOut } from './instructions.ts';
import { findLedger } from './ledgers.ts';
import type { Transfer } from './snapshot.ts';

/**
 * Escrow at Mangopay, which really holds the money. FREEZE moves the amount from the buyer's wallet into a wallet of the order,
 * which belongs to the escrow user. RELEASE moves it on to the seller's wallet. REFUND and CANCEL refund the first transfer,
 * whose id is the reference of the PaymentSnapshot. Nothing lapses.
 *
 * One hold: the transfer has one idempotency key, which is derived from the holdId. Mangopay knows a key for 24 hours. It
 * responds to a second request with 409 and then shows the first response. An older order is looked up before its FREEZE.
 *
 * One way out: the order's wallet holds the amount once and cannot go below zero. If a RELEASE or a REFUND is sent twice, or
 * both cross, one is carried out and the rest fails for lack of money. So these need no lasting key.
 *
 * VOID is kept in two ways. CANCEL uses the hold key up with a transfer from the order's wallet to the buyer's, which can move
 * nothing or else what a late hold brought; Mangopay then rejects a FREEZE that arrives later. And CANCEL marks the wallet
 * as closed in its Tag, which a FREEZE reads after the key is forgotten. A failed transfer closes the wallet too.
 *
 * A transfer that waits for the buyer cannot be cancelled. It fails by itself ten minutes after it was made; until then CANCEL
 * and REFUND get no response.
 */
export function createMangopayProvider(settings: MangopaySettings, nowMs: () => number): PaymentProvider {
  const client = createMangopayClient(settings, nowMs);
  const { escrowUser } = settings;
  return {
    notificationMethod: 'GET',
    checkAccess: (signal) => checkAccess(client, escrowUser, signal),
    // Mangopay takes any amount that is a safe integer, as all amounts of orders are.
    check: () => [],
    instruct: (order, signal) =>
      client.call(signal, (api) => carryOut[order.kind]({ api, order, escrowUser, nowMs })),
    lookUp: (order, signal) =>
      client.call(signal, async (api) => {
        const ledger = await findLedger({ api, order, escrowUser, nowMs });
        return ledger === undefined ? { status: 'ABSENT' } : paymentOf(api, ledger, order);
      }),
    readNotification: (sent) => readHook(sent, settings.hookSecret),
    subjectOf: (resource, signal) => client.call(signal, (api) => subjectOf(api, resource)),
    close: async () => client.close(),
  };
}

/** Reads the escrow user, who must exist and be able to receive money. */
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
    if (!(error instanceof ProviderFailure) || error.kind !== 'CREDENTIALS_REJECTED') throw error;
    return { kind: 'REJECTED', why: error.message };
  }
}

/**
 * Finds the orders of a resource in a hook. A refund that somebody else made does not name an order, but the Tag of its
 * transfer names the hold.
 */
async function subjectOf(api: MangopayApi, resource: string): Promise<NotificationSubject | undefined> {
  const disputeId = /^\/disputes\/(.+)$/.exec(resource)?.[1];
  if (disputeId !== undefined) return ordersOfDispute(api, disputeId);
  const refund = await api.find<{ InitialTransactionId?: string }>(resource);
  const initialId = refund?.InitialTransactionId;
  const initial = initialId === undefined ? undefined : await api.find<Transfer>(`/transfers/${initialId}`);
  return initial?.Tag ? { holdId: initial.Tag } : undefined;
}

/** The form of ids at Mangopay. */
const idPattern = /^[A-Za-z0-9_-]{1,128}$/;
const eventPattern = /^[A-Z0-9_]{1,64}$/;

/**
 * Reads a hook. Mangopay does not sign hooks: the secret in the URL proves them. It repeats them for long with their old date,
 * so none is too old. It does not number them: kind, resource and time identify an event. Throws SIGNATURE_INVALID,
 * INVALID_JSON.
 */
function readHook({ query }: SentNotification, secret: string): Notification {
  // Mangopay does not document how it extends a URL that has a query. Ids and secrets contain no question mark.
  const params = new URLSearchParams(query.replaceAll('?', '&'));
  const [given = '', ...more] = params.getAll('secret');
  if (more.length > 0 || !isSame(given, secret)) {
    throw new ApiError('SIGNATURE_INVALID', 'The query must have the secret of the hooks.');
  }
  const eventType = one(params, 'EventType', eventPattern);
  // Mangopay spells it like this.
  const id = one(params, 'RessourceId', idPattern);
  const date = one(params, 'Date', /^\d{1,12}$/);
  return { eventId: `${eventType} ${id} ${date}`, about: aboutOf(eventType, id) };
}

function aboutOf(eventType: string, id: string): Notification['about'] {
  if (eventType.startsWith('TRANSFER_NORMAL_')) return { reference: id };
  if (eventType.startsWith('TRANSFER_REFUND_')) return { resource: `/refunds/${id}` };
  const isDispute = eventType.startsWith('DISPUTE_') && !eventType.startsWith('DISPUTE_DOCUMENT_');
  return isDispute ? { resource: `/disputes/${id}` } : undefined;
}

function one(params: URLSearchParams, name: string, pattern: RegExp): string {
  const [value = '', ...more] = params.getAll(name);
  if (more.length > 0 || !pattern.test(value)) {
    throw new ApiError('INVALID_JSON', `The notification has no ${name} of the known form.`);
  }
  return value;
}

/** Compares in constant time, whatever the lengths. */
function isSame(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
