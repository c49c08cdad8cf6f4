import type { CallerRef } from '../../../src/store/filing-commands.ts';
import { type Command, perform, type Store } from '../../../src/store/store.ts';
import type { DeliveryResult, StoredDelivery, StoredWebhook } from '../../../src/store/webhook-commands.ts';
import { allPages, fileOne, noon } from './fixtures.ts';

/** Names an endpoint in a command of its owner. */
export const nameOf = ({ webhookId, callerId }: StoredWebhook) => ({ webhookId, owner: callerId });

export const findWebhook = (store: Store, webhook: StoredWebhook) =>
  perform(store, { kind: 'FindWebhook', ...nameOf(webhook) });

/** All deliveries to an endpoint, oldest event first. */
export async function deliveriesOf(store: Store, webhook: StoredWebhook, status?: StoredDelivery['status']) {
  const pages = await allPages(
    (page) => perform(store, { kind: 'ListDeliveries', ...nameOf(webhook), status, page }),
    3,
  );
  return pages.flat().reverse();
}

/** The deliveries to an endpoint in short: sequence, status, attempts, and when the next one is due. */
export const statusesOf = async (store: Store, webhook: StoredWebhook) =>
  (await deliveriesOf(store, webhook)).map((delivery) => [
    ...[delivery.sequence, delivery.status, delivery.attempts, delivery.nextAttemptAtMs],
  ]);

/** Claims what an endpoint can be sent. */
export const claim = (
  store: Store,
  { id }: StoredWebhook,
  nowMs: number,
  over: Partial<Command<'ClaimDeliveries'>> = {},
) => perform(store, { kind: 'ClaimDeliveries', id, nowMs, limit: 100, underWay: [], ...over });

/** The result of an attempt, by default that the event was delivered at noon. */
export const resultOf = (
  { id }: StoredWebhook,
  sequence: number,
  over: Partial<DeliveryResult> = {},
): DeliveryResult => ({
  ...{ id, sequence, attempts: 1, atMs: noon.atMs, isDelivered: true, httpStatus: 200 },
  ...{ answer: Buffer.from('ok'), error: null, retryAtMs: null, ...over },
});

/** The events of a caller. */
export const eventsOf = async (store: Store, { callerId }: CallerRef) =>
  (await perform(store, { kind: 'ReadEvents', callerId, after: undefined })).events;

/** Files artworks one after the other. */
export async function fileSome(store: Store, by: CallerRef, count: number, at = noon): Promise<void> {
  for (let filed = 0; filed < count; filed += 1) await fileOne(store, by, at);
}
