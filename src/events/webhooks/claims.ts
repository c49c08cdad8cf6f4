import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import type { WebhookWork } from '../../store/webhook-commands.ts';
import { type EndpointQueue, type EndpointQueues, isFailing } from './endpoint-queue.ts';
import type { SendingLimits } from './limits.ts';
import type { StoreBackoff } from './store-backoff.ts';

/** Claims due deliveries from the store for endpoints, in the order in which they requested it. */
export interface Claims {
  request(queue: EndpointQueue): void;
  cancel(queue: EndpointQueue): void;
  /** Starts the next claim. Returns false if there is none, or if it has to wait. */
  startNext(): boolean;
  inFlight(): number;
}

interface ClaimsDependencies {
  readonly execute: Execute;
  readonly clock: Clock;
  readonly queues: EndpointQueues;
  readonly store: StoreBackoff;
  readonly limits: SendingLimits;
  /** The endpoint is deleted or disabled, or its caller is suspended. */
  readonly onGone: (queue: EndpointQueue) => void;
  readonly onEnd: (queue: EndpointQueue) => void;
}

export function createClaims(dependencies: ClaimsDependencies): Claims {
  const { execute, clock, queues, store, limits, onGone, onEnd } = dependencies;
  const requested = new Set<EndpointQueue>();
  let inFlight = 0;

  async function claim(queue: EndpointQueue, most: number): Promise<void> {
    const { id } = queue;
    const limit = isFailing(queue) ? 1 : most;
    queue.isClaiming = true;
    queue.mayHaveMore = false;
    inFlight += 1;
    try {
      const underWay = [...queue.claimed];
      const work = await execute({ kind: 'ClaimDeliveries', id, nowMs: clock.nowMs(), limit, underWay });
      store.succeeded();
      if (queues.get(id) === queue) claimed(queue, work);
    } catch (error) {
      queue.mayHaveMore = true;
      store.failed(error);
    }
    queue.isClaiming = false;
    inFlight -= 1;
    onEnd(queue);
  }

  function claimed(queue: EndpointQueue, { webhook, due, hasMore }: WebhookWork): void {
    if (webhook === undefined) {
      onGone(queue);
      return;
    }
    queue.webhook = webhook;
    queue.nextDueAtMs = webhook.nextDueAtMs;
    queue.mayHaveMore ||= hasMore;
    queue.claimAtMs = clock.monotonicMs() + (hasMore ? 0 : limits.claimPauseMs);
    queues.push(queue, due);
  }

  return {
    request: (queue) => requested.add(queue),
    cancel: (queue) => requested.delete(queue),
    startNext: () => {
      if (store.waitMs() > 0 || inFlight >= limits.claimsAtOnce) return false;
      const isFull = queues.length() + (inFlight + 1) * limits.window > limits.queuedMax;
      // A caller with nothing in memory does not wait for the slow endpoints of others.
      const next = requested
        .values()
        .find(({ callerId }) => !isFull || queues.lengthOfCaller(callerId) === 0);
      if (next === undefined) return false;
      requested.delete(next);
      void claim(next, isFull ? limits.atOncePerEndpoint : limits.window);
      return true;
    },
    inFlight: () => inFlight,
  };
}
