import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { EventWithCaller } from '../../store/event-commands.ts';
import type { Execute, Store } from '../../store/store.ts';
import type { DeliveryResult, DueDelivery, SendingWebhook } from '../../store/webhook-commands.ts';
import type { Attempt, AttemptResult, WebhookMessage } from './attempt.ts';
import { createClaims } from './claims.ts';
import { createDeliveryResults, type RecordedResults } from './delivery-results.ts';
import { createEndpointList } from './endpoint-list.ts';
import { createEndpointLog } from './endpoint-log.ts';
import { createEndpointQueues, type EndpointQueue } from './endpoint-queue.ts';
import { type SendingLimits, sendingLimits } from './limits.ts';
import { createRequests } from './requests.ts';
import { retryAtMs } from './retry.ts';
import { createScheduler } from './scheduler.ts';
import { createStoreBackoff } from './store-backoff.ts';

/**
 * Sends events to the endpoints of their callers: each event at least once, the events of one resource in their order, with
 * retries. Deliveries are in the store; the sender holds a bounded number of them in memory.
 */
export interface Sender {
  /** Starts to send. Resolves when the endpoints were listed, or could not be. */
  start(): Promise<void>;
  /** Reads changed endpoints and deliveries now. Resolves when all endpoints were listed, or could not be. */
  look(): Promise<void>;
  metrics(): SenderMetrics;
  /**
   * Starts nothing more, waits up to `stopTimeoutMs` for requests in flight and records their results. Aborted requests are
   * sent again by the next process.
   */
  stop(): Promise<void>;
}

/** Counted since the start of the process. */
export interface SenderMetrics {
  /** Attempts that succeeded, and that failed. */
  readonly delivered: number;
  readonly failed: number;
  /** Endpoints that were disabled because they failed. */
  readonly disabled: number;
  readonly requestsInFlight: number;
}

/** The parts of a sender. */
export interface SenderDependencies {
  readonly execute: Execute;
  readonly onEvents: Store['onEvents'];
  /** How many requests the store has accepted and not completed. */
  readonly requestsInFlight: () => number;
  readonly attempt: Attempt;
  /** Returns what endpoints are sent for an event. */
  readonly message: (event: EventWithCaller) => WebhookMessage;
  readonly clock: Clock;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly limits?: SendingLimits | undefined;
}

export function createSender(dependencies: SenderDependencies): Sender {
  const { clock, log, limits = sendingLimits } = dependencies;
  const counts = { delivered: 0, failed: 0, disabled: 0 };
  const queues = createEndpointQueues(limits.endpointBackoff);
  const store = createStoreBackoff(clock, log, limits.storeBackoff);
  const endpointLog = createEndpointLog(clock, log, limits);
  const shared = { ...dependencies, limits, queues, store };
  const results = createDeliveryResults({ ...shared, onRecorded });
  const requests = createRequests({
    ...shared,
    onStart: (queue) => scheduler.plan(queue),
    onEnd: onAttempted,
  });
  const claims = createClaims({ ...shared, onGone: (queue) => scheduler.remove(queue), onEnd: planAndRun });
  const hasRoom = () => results.count() < limits.unrecordedMax;
  const scheduler = createScheduler({ ...shared, claims, requests, hasRoom });
  const endpoints = createEndpointList({
    ...{ ...shared, onListed, onGone: scheduler.remove, onEnd: scheduler.run },
  });
  let endEvents = () => {};

  function planAndRun(queue: EndpointQueue): void {
    scheduler.plan(queue);
    scheduler.run();
  }

  function onAttempted(queue: EndpointQueue, delivery: DueDelivery, attempt: AttemptResult): void {
    results.add(resultOf(queue, delivery, attempt, dependencies));
    counts[attempt.isDelivered ? 'delivered' : 'failed'] += 1;
    if (attempt.isDelivered) queue.failures = 0;
    else queues.pause(queue, clock.monotonicMs());
    endpointLog.attempted(queue, attempt);
    planAndRun(queue);
  }

  function onRecorded(recorded: readonly DeliveryResult[], { disabled, released }: RecordedResults): void {
    const changed = queues.release(recorded);
    counts.disabled += disabled.length;
    for (const queue of queues.some(disabled)) {
      endpointLog.disabled(queue);
      scheduler.remove(queue);
    }
    for (const queue of queues.some(released)) queue.mayHaveMore = true;
    for (const queue of changed) scheduler.plan(queue);
    scheduler.run();
  }

  function onListed(webhook: SendingWebhook): void {
    scheduler.plan(queues.put(webhook));
  }

  function onEvents(callerIds: readonly number[] | undefined): void {
    const changed = callerIds === undefined ? [queues.all()] : callerIds.map(queues.ofCaller);
    for (const queue of changed.flatMap((some) => [...some])) {
      if (queue.mayHaveMore) continue;
      queue.mayHaveMore = true;
      scheduler.plan(queue);
    }
    scheduler.run();
  }

  return {
    start: () => {
      endEvents = dependencies.onEvents(onEvents);
      return endpoints.start();
    },
    look: endpoints.refresh,
    metrics: () => ({ ...counts, requestsInFlight: requests.inFlight() }),
    stop: async () => {
      endEvents();
      scheduler.stop();
      const listed = endpoints.stop();
      await requests.stop();
      await results.stop();
      await listed;
    },
  };
}

/** What is recorded of an attempt. */
function resultOf(
  { id }: EndpointQueue,
  { event, attempts: before }: DueDelivery,
  { isDelivered, httpStatus, answer, error, retryAfterS, isGone }: AttemptResult,
  { clock, random }: Pick<SenderDependencies, 'clock' | 'random'>,
): DeliveryResult {
  const [atMs, attempts] = [clock.nowMs(), before + 1];
  return {
    ...{ id, sequence: event.sequence, attempts, atMs, isDelivered, httpStatus, answer, error },
    retryAtMs: isDelivered || isGone ? null : retryAtMs({ attempts, atMs, retryAfterS }, random),
    disables: isGone ? 'the endpoint answered 410 Gone' : undefined,
  };
}
