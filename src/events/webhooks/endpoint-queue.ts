import type { Clock } from '../../domain/clock.ts';
import { dueHorizonMs } from '../../domain/webhook.ts';
import { createCounts } from '../../lib/concurrency.ts';
import { backoffMs } from '../../lib/timing.ts';
import type { DeliveryResult, DueDelivery, SendingWebhook } from '../../store/webhook-commands.ts';
import type { SendingLimits } from './limits.ts';

/** An endpoint with the deliveries that were claimed for it. Times are those of the monotonic clock, unless noted. */
export interface EndpointQueue {
  readonly id: number;
  readonly callerId: number;
  /** As last read from the store. */
  webhook: SendingWebhook;
  /** Claimed, not started. Changed by `createEndpointQueues` only, which counts them. */
  readonly deliveries: DueDelivery[];
  /** Sequences of all claimed deliveries whose results are not recorded, those of `deliveries` included. */
  readonly claimed: Set<number>;
  /** When the first unclaimed delivery is due, Unix milliseconds; null if none is PENDING. */
  nextDueAtMs: number | null;
  /** Whether the store may have deliveries for it that `nextDueAtMs` does not know of. */
  mayHaveMore: boolean;
  isClaiming: boolean;
  /** Failed attempts in a row. */
  failures: number;
  /** When the next claim may start, and when the next request may. */
  claimAtMs: number;
  sendAtMs: number;
  /** Whether the log last said that it fails, and when. */
  isLoggedFailing: boolean;
  loggedAtMs: number;
  cancelTimer: () => void;
}

/** The queues of all endpoints that are sent to. */
export function createEndpointQueues(backoff: SendingLimits['endpointBackoff']) {
  const queues = new Map<number, EndpointQueue>();
  const byCaller = new Map<number, Set<EndpointQueue>>();
  const lengths = createCounts<number>();
  let length = 0;

  function count({ callerId }: EndpointQueue, by: number): void {
    length += by;
    lengths.add(callerId, by);
  }

  /** Returns deliveries that were not started to the store: the next claim returns them again. */
  function unclaim(queue: EndpointQueue): void {
    const { deliveries, claimed } = queue;
    for (const { event } of deliveries) claimed.delete(event.sequence);
    queue.mayHaveMore ||= deliveries.length > 0;
    count(queue, -deliveries.length);
    deliveries.length = 0;
  }

  function add(webhook: SendingWebhook): EndpointQueue {
    const queue = newQueue(webhook);
    queues.set(queue.id, queue);
    byCaller.set(queue.callerId, (byCaller.get(queue.callerId) ?? new Set()).add(queue));
    return queue;
  }

  return {
    get: (id: number) => queues.get(id),
    /** Those that exist of these ids. */
    some: (ids: readonly number[]) => ids.flatMap((id) => queues.get(id) ?? []),
    all: () => queues.values(),
    ofCaller: (callerId: number): Iterable<EndpointQueue> => byCaller.get(callerId) ?? [],
    /** Adds an endpoint as it was listed, or updates it. */
    put: (webhook: SendingWebhook): EndpointQueue => {
      const queue = queues.get(webhook.id) ?? add(webhook);
      // A changed URL gets a fresh start. So does one that was encrypted again, since its bytes differ.
      if (Buffer.compare(queue.webhook.sealedUrl, webhook.sealedUrl) !== 0) queue.failures = 0;
      queue.webhook = webhook;
      noteDueAt(queue, webhook.nextDueAtMs);
      return queue;
    },
    remove: (queue: EndpointQueue): void => {
      queue.cancelTimer();
      unclaim(queue);
      queues.delete(queue.id);
      const own = byCaller.get(queue.callerId);
      own?.delete(queue);
      if (own?.size === 0) byCaller.delete(queue.callerId);
    },
    /** Adds claimed deliveries. */
    push: (queue: EndpointQueue, deliveries: readonly DueDelivery[]): void => {
      for (const { event } of deliveries) queue.claimed.add(event.sequence);
      queue.deliveries.push(...deliveries);
      count(queue, deliveries.length);
    },
    /** Removes and returns the first delivery. */
    shift: (queue: EndpointQueue): DueDelivery | undefined => {
      const delivery = queue.deliveries.shift();
      if (delivery !== undefined) count(queue, -1);
      return delivery;
    },
    /** Ends the claims of recorded deliveries. Returns the queues that they are of. */
    release: (recorded: readonly DeliveryResult[]): ReadonlySet<EndpointQueue> => {
      const changed = new Set<EndpointQueue>();
      for (const { id, sequence, retryAtMs } of recorded) {
        const queue = queues.get(id);
        if (queue === undefined) continue;
        queue.claimed.delete(sequence);
        noteDueAt(queue, retryAtMs);
        changed.add(queue);
      }
      return changed;
    },
    /** Counts a failed attempt at `nowMs` and delays the next one. */
    pause: (queue: EndpointQueue, nowMs: number): void => {
      // A failing endpoint gets one delivery at a time, beginning with the first.
      if (!isFailing(queue)) unclaim(queue);
      queue.failures += 1;
      queue.sendAtMs = nowMs + backoffMs(queue.failures, backoff);
    },
    /** How many deliveries are claimed and not started, of all endpoints and of one caller. */
    length: () => length,
    lengthOfCaller: lengths.of,
  };
}

function newQueue(webhook: SendingWebhook): EndpointQueue {
  const isFailing = webhook.failingSinceS !== null;
  return {
    ...{ id: webhook.id, callerId: webhook.callerId, webhook, deliveries: [], claimed: new Set() },
    ...{
      nextDueAtMs: webhook.nextDueAtMs,
      mayHaveMore: true,
      isClaiming: false,
      failures: Number(isFailing),
    },
    ...{ claimAtMs: -Infinity, sendAtMs: -Infinity, loggedAtMs: -Infinity },
    ...{ isLoggedFailing: isFailing, cancelTimer: () => {} },
  };
}

/** Whether the last attempt at the endpoint failed. */
export const isFailing = ({ failures }: EndpointQueue): boolean => failures > 0;

/** In how many milliseconds the next request to the endpoint, or the next claim for it, is due; undefined if none is. */
export function nextStepMs(queue: EndpointQueue, clock: Clock): number | undefined {
  const nowMs = clock.monotonicMs();
  const pauseMs = queue.sendAtMs - nowMs;
  if (queue.deliveries.length > 0) return pauseMs;
  // A failing endpoint gets one request at a time.
  if (queue.isClaiming || (isFailing(queue) && queue.claimed.size > 0)) return undefined;
  if (!queue.mayHaveMore && queue.nextDueAtMs === null) return undefined;
  const dueMs = Number(queue.nextDueAtMs) - clock.nowMs();
  // The store makes deliveries due that are beyond the horizon.
  const isClaimDue = queue.mayHaveMore || dueMs > dueHorizonMs;
  return Math.max(isClaimDue ? 0 : dueMs, pauseMs, queue.claimAtMs - nowMs);
}

/** Notes that a delivery is due at a time, Unix milliseconds; null for none. */
function noteDueAt(queue: EndpointQueue, atMs: number | null): void {
  const { nextDueAtMs } = queue;
  queue.nextDueAtMs =
    nextDueAtMs === null || atMs === null ? (nextDueAtMs ?? atMs) : Math.min(nextDueAtMs, atMs);
}
