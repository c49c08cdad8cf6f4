import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { everyWhileLeading, type Repetition, sleep } from '../../lib/timing.ts';
import type { EventWithCaller } from '../../store/event-commands.ts';
import { allOf } from '../../store/paging.ts';
import type { Execute, Store } from '../../store/store.ts';
import type {
  DeliveryResult,
  DueDelivery,
  RecordedAttempts,
  WebhookWork,
} from '../../store/webhook-commands.ts';
import {
  type Attempt,
  type AttemptResult,
  failedAttempt,
  retryAtMs,
  type WebhookMessage,
} from './attempt.ts';
import { createDeliveryResults } from './delivery-results.ts';
import { createEndpointQueues, type EndpointQueue, isFailing, nextStepMs } from './endpoint-queue.ts';
import { createFairPool, type FairPool, type Permit } from './fair-pool.ts';
import { type SendingLimits, sendingLimits } from './limits.ts';
import { createStoreBackoff, createThrottle, type StoreBackoff } from './throttle.ts';

interface SenderDependencies {
  readonly execute: Execute;
  readonly onEvents: Store['onEvents'];
  /** Whether this instance sends. Of several, only the one that leads does. */
  readonly leads: () => boolean;
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

/**
 * Sends events to the endpoints of their callers: each event at least once, the events of one resource in their order, with
 * retries. Deliveries are in the store; a bounded number of them is in memory. Each endpoint has a next step, a request or a
 * claim of due deliveries. Both have limits, so an endpoint waits until `#run` starts its step. Sends nothing until `start`, nor
 * while another instance leads.
 */
export class Sender {
  readonly #dependencies: SenderDependencies;
  readonly #limits: SendingLimits;
  readonly #queues: ReturnType<typeof createEndpointQueues>;
  readonly #pool: FairPool;
  readonly #throttle: ReturnType<typeof createThrottle>;
  readonly #store: StoreBackoff;
  readonly #results: ReturnType<typeof createDeliveryResults>;
  /** Lists all endpoints again and again: a listing may have failed, or another instance may have changed one. */
  readonly #listing: Repetition;
  readonly #counts = { delivered: 0, failed: 0, disabled: 0 };
  /** Endpoints that need a claim, in the order in which they requested it. */
  readonly #toClaim = new Set<EndpointQueue>();
  readonly #aborted = new AbortController();
  /** Aborted when the sender is stopped and nothing is in flight. */
  readonly #idle = new AbortController();
  #claimsInFlight = 0;
  #isStopped = false;
  #endEvents = () => {};
  #cancelRun = () => {};

  constructor(dependencies: SenderDependencies) {
    const { clock, log, execute, limits = sendingLimits } = dependencies;
    this.#dependencies = dependencies;
    this.#limits = limits;
    this.#queues = createEndpointQueues(limits.endpointBackoff);
    this.#pool = createFairPool(limits);
    const requestsInFlight = () => dependencies.requestsInFlight() - this.#claimsInFlight;
    this.#throttle = createThrottle({ clock, requestsInFlight, limits });
    const store = createStoreBackoff(clock, log, limits.storeBackoff);
    this.#store = store;
    const onRecorded = this.#onRecorded.bind(this);
    this.#results = createDeliveryResults({ execute, clock, store, limits, onRecorded });
    this.#listing = everyWhileLeading(
      clock,
      dependencies.leads,
      () => limits.listEveryMs,
      () => this.#list(),
      () => this.#forget(),
    );
  }

  /** Starts to send. Resolves when the endpoints were listed, or could not be. */
  start(): Promise<void> {
    this.#endEvents = this.#dependencies.onEvents((callerIds) => this.#onEvents(callerIds));
    return this.#listing.start();
  }

  /** Lists all endpoints at once, or after the listing in progress. */
  look(): void {
    this.#listing.wake();
  }

  /**
   * Counts since the process started: attempts that succeeded and that failed, and endpoints that were disabled because they
   * failed.
   */
  metrics() {
    return { ...this.#counts, requestsInFlight: this.#pool.taken() };
  }

  /**
   * Starts nothing more, waits up to `stopTimeoutMs` for requests in flight and records their results. Aborted requests are
   * sent again by the next process.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endEvents();
    this.#cancelRun();
    for (const queue of this.#queues.all()) queue.cancelTimer();
    const listed = this.#listing.stop();
    if (this.#pool.taken() > 0)
      await sleep(this.#dependencies.clock, this.#limits.stopTimeoutMs, this.#idle.signal);
    this.#aborted.abort(new Error('The service stops.'));
    await this.#results.stop();
    await listed;
  }

  async #list(): Promise<void> {
    const { execute } = this.#dependencies;
    try {
      const listed = new Set<number>();
      for await (const webhook of allOf((page) => execute({ kind: 'ListSending', page }))) {
        this.#plan(this.#queues.put(webhook));
        listed.add(webhook.id);
      }
      for (const queue of [...this.#queues.all()]) if (!listed.has(queue.id)) this.#remove(queue);
      this.#store.succeeded();
    } catch (error) {
      this.#store.failed(error);
    }
    this.#run();
  }

  /** Drops the deliveries that are claimed and not started: another instance sends them. */
  #forget(): void {
    for (const queue of [...this.#queues.all()]) this.#remove(queue);
  }

  #onEvents(callerIds: readonly number[]): void {
    for (const queue of callerIds.flatMap((callerId) => [...this.#queues.ofCaller(callerId)])) {
      if (queue.mayHaveMore) continue;
      queue.mayHaveMore = true;
      this.#plan(queue);
    }
    this.#run();
  }

  /** Plans the next step of an endpoint: a request or a claim, now or by a timer. Starts nothing. */
  #plan(queue: EndpointQueue): void {
    const { clock } = this.#dependencies;
    queue.cancelTimer();
    if (this.#isStopped || this.#queues.get(queue.id) !== queue) return;
    const inMs = nextStepMs(queue, clock);
    if (inMs !== undefined && inMs > 0)
      queue.cancelTimer = clock.after(Math.min(inMs, this.#limits.timerMaxMs), () => this.#planAndRun(queue));
    const isDue = inMs !== undefined && inMs <= 0;
    const hasDelivery = queue.deliveries.length > 0;
    const { id, callerId } = queue;
    if (isDue && hasDelivery) this.#pool.request({ id, callerId, isFailing: isFailing(queue) });
    else this.#pool.cancel(queue);
    if (isDue && !hasDelivery) this.#toClaim.add(queue);
    else this.#toClaim.delete(queue);
  }

  /** Starts all steps that may start now: requests and claims by turns, so that neither uses up what the throttle allows. */
  #run(): void {
    if (this.#isStopped || !this.#dependencies.leads()) return;
    let hasStarted = true;
    while (hasStarted) {
      const hasSent = this.#startIf(() => this.#sendNext());
      hasStarted = this.#startIf(() => this.#claimNext()) || hasSent;
    }
    const waitMs = Math.max(this.#store.waitMs(), this.#throttle.waitMs());
    this.#cancelRun();
    if (waitMs > 0) this.#cancelRun = this.#dependencies.clock.after(waitMs, () => this.#run());
  }

  #startIf(start: () => boolean): boolean {
    const hasStarted = this.#throttle.waitMs() === 0 && start();
    if (hasStarted) this.#throttle.start();
    return hasStarted;
  }

  #planAndRun(queue: EndpointQueue): void {
    this.#plan(queue);
    this.#run();
  }

  #remove(queue: EndpointQueue): void {
    this.#pool.cancel(queue);
    this.#toClaim.delete(queue);
    this.#queues.remove(queue);
  }

  /** Starts the next claim. Returns false if there is none, or if it has to wait. */
  #claimNext(): boolean {
    const { claimsAtOnce, queuedMax, window, atOncePerEndpoint } = this.#limits;
    if (this.#store.waitMs() > 0 || this.#claimsInFlight >= claimsAtOnce) return false;
    const isFull = this.#queues.length() + (this.#claimsInFlight + 1) * window > queuedMax;
    // A caller with nothing in memory does not wait for the slow endpoints of others.
    const next = this.#toClaim
      .values()
      .find(({ callerId }) => !isFull || this.#queues.lengthOfCaller(callerId) === 0);
    if (next === undefined) return false;
    this.#toClaim.delete(next);
    void this.#claim(next, isFull ? atOncePerEndpoint : window);
    return true;
  }

  async #claim(queue: EndpointQueue, most: number): Promise<void> {
    const { execute, clock } = this.#dependencies;
    const { id } = queue;
    const limit = isFailing(queue) ? 1 : most;
    queue.isClaiming = true;
    queue.mayHaveMore = false;
    this.#claimsInFlight += 1;
    try {
      const underWay = [...queue.claimed];
      const work = await execute({ kind: 'ClaimDeliveries', id, nowMs: clock.nowMs(), limit, underWay });
      this.#store.succeeded();
      if (this.#queues.get(id) === queue) this.#onClaimed(queue, work);
    } catch (error) {
      queue.mayHaveMore = true;
      this.#store.failed(error);
    }
    queue.isClaiming = false;
    this.#claimsInFlight -= 1;
    this.#planAndRun(queue);
  }

  #onClaimed(queue: EndpointQueue, { webhook, due, hasMore }: WebhookWork): void {
    // The endpoint is deleted or disabled, or its caller is suspended.
    if (webhook === undefined) {
      this.#remove(queue);
      return;
    }
    queue.webhook = webhook;
    queue.nextDueAtMs = webhook.nextDueAtMs;
    queue.mayHaveMore ||= hasMore;
    queue.claimAtMs = this.#dependencies.clock.monotonicMs() + (hasMore ? 0 : this.#limits.claimPauseMs);
    this.#queues.push(queue, due);
  }

  /** Starts the next request. Returns false if none may start. */
  #sendNext(): boolean {
    const permit = this.#results.count() < this.#limits.unrecordedMax ? this.#pool.take() : undefined;
    if (permit === undefined) return false;
    const queue = this.#queues.get(permit.id);
    const delivery = queue && this.#queues.shift(queue);
    if (queue === undefined || delivery === undefined)
      throw new Error('The pool permits a request to an endpoint that has no delivery.');
    this.#plan(queue);
    void this.#send(queue, delivery, permit);
    return true;
  }

  async #send(queue: EndpointQueue, delivery: DueDelivery, permit: Permit): Promise<void> {
    const result = await this.#attempt(queue, delivery);
    this.#pool.release(permit);
    // An aborted request counts as never sent.
    if (!this.#aborted.signal.aborted) this.#onAttempted(queue, delivery, result);
    if (this.#isStopped && this.#pool.taken() === 0) this.#idle.abort();
  }

  async #attempt({ webhook }: EndpointQueue, { event }: DueDelivery): Promise<AttemptResult> {
    const { attempt, message, log } = this.#dependencies;
    try {
      return await attempt(webhook, message(event), this.#aborted.signal);
    } catch (error) {
      log.error({ err: error, webhookId: webhook.webhookId }, 'an attempt to send a webhook broke off');
      return failedAttempt({ error: 'the server failed to send it' });
    }
  }

  #onAttempted(queue: EndpointQueue, delivery: DueDelivery, result: AttemptResult): void {
    this.#results.add(resultOf(queue, delivery, result, this.#dependencies));
    this.#counts[result.isDelivered ? 'delivered' : 'failed'] += 1;
    if (result.isDelivered) queue.failures = 0;
    else this.#queues.pause(queue, this.#dependencies.clock.monotonicMs());
    this.#logChange(queue, result);
    this.#planAndRun(queue);
  }

  /** Logs that an endpoint fails or works again: one line in `logEveryMs` for an endpoint that does both by turns. */
  #logChange(queue: EndpointQueue, { error, detail }: AttemptResult): void {
    const { clock, log } = this.#dependencies;
    const atMs = clock.monotonicMs();
    const fails = isFailing(queue);
    if (fails === queue.isLoggedFailing || atMs < queue.loggedAtMs + this.#limits.logEveryMs) return;
    queue.isLoggedFailing = fails;
    queue.loggedAtMs = atMs;
    const names = namesOf(queue);
    if (!fails) log.info(names, 'an endpoint of webhooks works again');
    else log.warn({ ...names, why: error, detail }, 'an endpoint of webhooks fails: it is tried again');
  }

  #onRecorded(recorded: readonly DeliveryResult[], { disabled, released }: RecordedAttempts): void {
    const changed = this.#queues.release(recorded);
    this.#counts.disabled += disabled.length;
    for (const queue of this.#queues.some(disabled)) {
      this.#dependencies.log.warn(namesOf(queue), 'an endpoint of webhooks is disabled, since it fails');
      this.#remove(queue);
    }
    for (const queue of this.#queues.some(released)) queue.mayHaveMore = true;
    for (const queue of changed) this.#plan(queue);
    this.#run();
  }
}

/** How the log names an endpoint: never by its path, which may hold a secret of the platform. */
const namesOf = ({ webhook: { webhookId, caller, origin } }: EndpointQueue) => ({
  ...{ webhookId, platform: caller, host: new URL(origin).host },
});

function resultOf(
  { id }: EndpointQueue,
  { event, attempts: before }: DueDelivery,
  { isDelivered, httpStatus, answer, error, retryAfterS }: AttemptResult,
  { clock, random }: Pick<SenderDependencies, 'clock' | 'random'>,
): DeliveryResult {
  const [atMs, attempts, isGone] = [clock.nowMs(), before + 1, httpStatus === 410];
  return {
    ...{ id, sequence: event.sequence, attempts, atMs, isDelivered, httpStatus, answer, error },
    retryAtMs: isDelivered || isGone ? null : retryAtMs({ attempts, atMs, retryAfterS }, random),
    disables: isGone ? 'the endpoint answered 410 Gone' : undefined,
  };
}
