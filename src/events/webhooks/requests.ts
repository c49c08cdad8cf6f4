import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { sleep } from '../../lib/timing.ts';
import type { EventWithCaller } from '../../store/event-commands.ts';
import type { DueDelivery } from '../../store/webhook-commands.ts';
import type { Attempt, AttemptResult, WebhookMessage } from './attempt.ts';
import { type EndpointQueue, type EndpointQueues, isFailing } from './endpoint-queue.ts';
import { createFairPool, type Permit } from './fair-pool.ts';
import type { SendingLimits } from './limits.ts';

/** Sends claimed deliveries, in the order of a fair pool. */
export interface Requests {
  /** Has the next delivery of an endpoint sent as soon as the pool permits. */
  request(queue: EndpointQueue): void;
  cancel(queue: EndpointQueue): void;
  /** Starts the next request. Returns false if the pool permits none. */
  startNext(): boolean;
  inFlight(): number;
  /** Waits for the requests in flight until the timeout, then aborts them. Nothing may start after it. */
  stop(): Promise<void>;
}

interface RequestsDependencies {
  readonly attempt: Attempt;
  /** Returns what endpoints are sent for an event. */
  readonly message: (event: EventWithCaller) => WebhookMessage;
  readonly queues: EndpointQueues;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Logger;
  readonly limits: SendingLimits;
  readonly onStart: (queue: EndpointQueue) => void;
  /** Not called for requests that `stop` aborted: they count as never sent. */
  readonly onEnd: (queue: EndpointQueue, delivery: DueDelivery, result: AttemptResult) => void;
}

export function createRequests(dependencies: RequestsDependencies): Requests {
  const { attempt, message, queues, clock, log, limits, onStart, onEnd } = dependencies;
  const pool = createFairPool(limits);
  const aborted = new AbortController();
  /** Aborted when `stop` was called and nothing is in flight. */
  const idle = new AbortController();
  let isStopped = false;

  async function send(queue: EndpointQueue, delivery: DueDelivery, permit: Permit): Promise<void> {
    const result = await attempted(queue, delivery);
    pool.release(permit);
    if (!aborted.signal.aborted) onEnd(queue, delivery, result);
    if (isStopped && pool.taken() === 0) idle.abort();
  }

  async function attempted({ webhook }: EndpointQueue, { event }: DueDelivery): Promise<AttemptResult> {
    try {
      return await attempt(webhook, message(event), aborted.signal);
    } catch (error) {
      log.error({ err: error, webhookId: webhook.webhookId }, 'an attempt to send a webhook broke off');
      return brokenOff;
    }
  }

  return {
    request: (queue) => pool.request({ id: queue.id, callerId: queue.callerId, isFailing: isFailing(queue) }),
    cancel: pool.cancel,
    startNext: () => {
      const permit = pool.take();
      if (permit === undefined) return false;
      const queue = queues.get(permit.id);
      const delivery = queue && queues.shift(queue);
      if (queue === undefined || delivery === undefined)
        throw new Error('The pool permits a request to an endpoint that has no delivery.');
      onStart(queue);
      void send(queue, delivery, permit);
      return true;
    },
    inFlight: pool.taken,
    stop: async () => {
      isStopped = true;
      if (pool.taken() > 0) await sleep(clock, limits.stopTimeoutMs, idle.signal);
      aborted.abort(new Error('The service stops.'));
    },
  };
}

/** The result of an attempt that an internal error ended. */
const brokenOff: AttemptResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null, isGone: false },
  error: 'the server failed to send it',
};
