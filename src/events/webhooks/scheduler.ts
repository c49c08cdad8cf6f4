import type { Clock } from '../../domain/clock.ts';
import type { Claims } from './claims.ts';
import { type EndpointQueue, type EndpointQueues, nextStepMs } from './endpoint-queue.ts';
import type { SendingLimits } from './limits.ts';
import type { Requests } from './requests.ts';
import type { StoreBackoff } from './store-backoff.ts';
import { createThrottle } from './throttle.ts';

/** Decides when claims and requests start. */
export interface Scheduler {
  /** Plans the next step of an endpoint: a request or a claim, now or by a timer. Starts nothing. */
  plan(queue: EndpointQueue): void;
  /** Starts all that may start now. */
  run(): void;
  /** Drops an endpoint. */
  remove(queue: EndpointQueue): void;
  /** Starts and plans nothing more. */
  stop(): void;
}

interface SchedulerDependencies {
  readonly clock: Clock;
  readonly queues: EndpointQueues;
  readonly claims: Claims;
  readonly requests: Requests;
  readonly store: StoreBackoff;
  /** How many requests the store has accepted and not completed, those of the sender included. */
  readonly requestsInFlight: () => number;
  /** Whether another result may be waiting to be recorded. */
  readonly hasRoom: () => boolean;
  readonly limits: SendingLimits;
}

export function createScheduler(dependencies: SchedulerDependencies): Scheduler {
  const { clock, queues, claims, requests, store, requestsInFlight, hasRoom, limits } = dependencies;
  const throttle = createThrottle({
    clock,
    requestsInFlight: () => requestsInFlight() - claims.inFlight(),
    limits,
  });
  let isStopped = false;
  let cancelRun = () => {};

  function plan(queue: EndpointQueue): void {
    queue.cancelTimer();
    if (isStopped || queues.get(queue.id) !== queue) return;
    const inMs = nextStepMs(queue, clock);
    if (inMs !== undefined && inMs > 0) {
      queue.cancelTimer = clock.after(Math.min(inMs, limits.timerMaxMs), () => {
        plan(queue);
        run();
      });
    }
    const isDue = inMs !== undefined && inMs <= 0;
    const hasDelivery = queue.deliveries.length > 0;
    if (isDue && hasDelivery) requests.request(queue);
    else requests.cancel(queue);
    if (isDue && !hasDelivery) claims.request(queue);
    else claims.cancel(queue);
  }

  /** Starts requests and claims alternately, so that neither uses up what the throttle allows. */
  function run(): void {
    if (isStopped) return;
    let hasStarted = true;
    while (hasStarted) {
      const hasSent = startIf(() => hasRoom() && requests.startNext());
      hasStarted = startIf(claims.startNext) || hasSent;
    }
    const waitMs = Math.max(store.waitMs(), throttle.waitMs());
    cancelRun();
    if (waitMs > 0) cancelRun = clock.after(waitMs, run);
  }

  function startIf(start: () => boolean): boolean {
    const hasStarted = throttle.waitMs() === 0 && start();
    if (hasStarted) throttle.start();
    return hasStarted;
  }

  return {
    plan,
    run,
    remove: (queue) => {
      requests.cancel(queue);
      claims.cancel(queue);
      queues.remove(queue);
    },
    stop: () => {
      isStopped = true;
      cancelRun();
      for (const queue of queues.all()) queue.cancelTimer();
    },
  };
}
