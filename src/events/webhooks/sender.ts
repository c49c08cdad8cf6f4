import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { dueHorizonMs } from '../../domain/webhook.ts';
import type { EventWithCaller } from '../../store/event-commands.ts';
import { allOf } from '../../store/paging.ts';
import type { Execute, Store } from '../../store/store.ts';
import type {
  DeliveryResult,
  DueDelivery,
  NotedAttempts,
  SendingWebhook,
  WebhookWork,
} from '../../store/webhook-commands.ts';
import type { Attempt, AttemptResult, WebhookMessage } from './attempt.ts';
import { createDeliveryResults } from './delivery-results.ts';
import { createEndpointQueues, type EndpointQueue } from './endpoint-queue.ts';
import { createCounts, createFairPool, type Slot } from './fair-pool.ts';
import { pauseMs, type SendingLimits, sendingLimits } from './limits.ts';
import { retryAtMs } from './schedule.ts';
import { createThrottle } from './throttle.ts';

/**
 * Sends events to the endpoints of their callers: each at least once, those of one resource in their order, again and again where it
 * does not arrive. What is due stands in the store; little of it is in memory.
 */
export interface Sender {
  /** Sends from now on; resolves once the endpoints were listed, or could not be. */
  start(): Promise<void>;
  /** Takes up at once what was changed of endpoints and their deliveries; resolves once all were listed, or could not be. */
  look(): Promise<void>;
  metrics(): SenderMetrics;
  /** Begins nothing more, and writes down what comes of requests under way in a while; the others are made again by whoever starts next. */
  stop(): Promise<void>;
}

/** How sending stands, since the start. */
export interface SenderMetrics {
  /** Attempts after which the event had arrived, and after which it had not. */
  readonly delivered: number;
  readonly failed: number;
  /** Endpoints that were disabled since they failed. */
  readonly disabled: number;
  readonly requestsInFlight: number;
}

/** What the sender works with. */
export interface SenderDependencies {
  readonly execute: Execute;
  readonly onEvents: Store['onEvents'];
  readonly unitsInFlight: Store['unitsInFlight'];
  readonly attempt: Attempt;
  /** What endpoints are sent of an event. */
  readonly message: (event: EventWithCaller) => WebhookMessage;
  readonly clock: Clock;
  /** Gives 0 to 1. */
  readonly random: () => number;
  readonly log: Logger;
  readonly limits?: SendingLimits | undefined;
}

export function createSender(dependencies: SenderDependencies): Sender {
  const { execute, onEvents, unitsInFlight, attempt, message } = dependencies;
  const { clock, random, log, limits = sendingLimits } = dependencies;
  const lanes = createEndpointQueues();
  const slots = createFairPool(limits);
  const pace = createThrottle({ clock, unitsInFlight: () => unitsInFlight() - looks, limits });
  const store = watchStore(dependencies, limits);
  const outcomes = createDeliveryResults({
    execute,
    clock,
    limits,
    onWritten: written,
    onFault: store.failed,
  });
  /** Those for which the store is to be asked, in the order of their turns. */
  const looking = new Set<EndpointQueue>();
  const cutOff = new AbortController();
  const idle = Promise.withResolvers<void>();
  const counts = { delivered: 0, failed: 0, disabled: 0 };
  let looks = 0;
  let queued = 0;
  /** The same by caller. */
  const queuedOf = createCounts();
  let isStopped = false;
  /** The listing of all endpoints that is under way, or was the last. */
  let listing = Promise.resolve();
  /** The one that begins behind it, for those who ask meanwhile. */
  let nextListing: Promise<void> | undefined;
  let endEvents = () => {};
  let cancelList = () => {};
  let cancelPump = () => {};

  /** Plans the next turn of an endpoint. */
  function consider(lane: EndpointQueue): void {
    lane.cancel();
    if (isStopped || lanes.get(lane.id) !== lane) return;
    const inMs = nextTurnMs(lane, clock);
    if (inMs !== undefined && inMs > 0) {
      lane.cancel = clock.after(Math.min(inMs, limits.aheadMaxMs), () => {
        consider(lane);
        pump();
      });
    }
    const isTurn = inMs !== undefined && inMs <= 0;
    if (isTurn && lane.queue.length > 0) slots.ask(slotOf(lane));
    else slots.cancel(lane);
    if (isTurn && lane.queue.length === 0) looking.add(lane);
    else looking.delete(lane);
  }

  /** Begins whatever may be begun: requests and questions to the store by turns, so that neither keeps the other from its pace. */
  function pump(): void {
    if (isStopped) return;
    let hasBegun = true;
    while (hasBegun && pace.waitMs() === 0) {
      const isSending = beginNext();
      hasBegun = (pace.waitMs() === 0 && lookNext()) || isSending;
    }
    const waitMs = Math.max(store.awayMs(), pace.waitMs());
    cancelPump();
    if (waitMs > 0) cancelPump = clock.after(waitMs, pump);
  }

  /** Begins the next request, if there is one and it may be begun. */
  function beginNext(): boolean {
    const slot = outcomes.count() < limits.unwrittenMax ? slots.take() : undefined;
    if (slot === undefined) return false;
    pace.begin();
    begin(slot);
    return true;
  }

  /** Asks the store what is to be sent to the next endpoint, if there is one and there is room for it. */
  function lookNext(): boolean {
    if (store.awayMs() > 0 || looks >= limits.looksAtOnce) return false;
    const isFull = queued + (looks + 1) * limits.window > limits.queuedMax;
    // Whoever has nothing there does not wait for the receivers of others.
    const next = looking.values().find(({ callerId }) => !isFull || queuedOf.of(callerId) === 0);
    if (next === undefined) return false;
    pace.begin();
    looking.delete(next);
    void takeWork(next, isFull ? limits.atOncePerEndpoint : limits.window);
    return true;
  }

  async function takeWork(lane: EndpointQueue, most: number): Promise<void> {
    const { id } = lane;
    const limit = isFailing(lane) ? 1 : most;
    lane.isLooking = true;
    lane.isBehind = false;
    looks += 1;
    try {
      const underWay = [...lane.underWay];
      const work = await execute({ kind: 'ClaimDeliveries', id, nowMs: clock.nowMs(), limit, underWay });
      store.worked();
      if (lanes.get(id) === lane) taken(lane, work);
    } catch (error) {
      lane.isBehind = true;
      store.failed(error);
    }
    lane.isLooking = false;
    looks -= 1;
    consider(lane);
    pump();
  }

  function taken(lane: EndpointQueue, { webhook, due, hasMore }: WebhookWork): void {
    if (webhook === undefined) {
      remove(lane);
      return;
    }
    lane.webhook = webhook;
    lane.nextDueAtMs = webhook.nextDueAtMs;
    lane.isBehind ||= hasMore;
    lane.lookAtMs = clock.monotonicMs() + (hasMore ? 0 : limits.lookPauseMs);
    for (const delivery of due) lane.underWay.add(delivery.event.sequence);
    lane.queue.push(...due);
    countQueued(lane, due.length);
  }

  function begin(slot: Slot): void {
    const lane = lanes.get(slot.id);
    const delivery = lane?.queue.shift();
    if (lane === undefined || delivery === undefined)
      throw new Error('A slot was given to an idle endpoint.');
    countQueued(lane, -1);
    consider(lane);
    void send(lane, delivery, slot);
  }

  async function send(lane: EndpointQueue, delivery: DueDelivery, slot: Slot): Promise<void> {
    const result = await attempted(lane, delivery);
    slots.give(slot);
    // What was cut off is as if it was never begun.
    if (!cutOff.signal.aborted) ended(lane, delivery, result);
    if (isStopped && slots.taken() === 0) idle.resolve();
  }

  /** What comes of sending a delivery, whatever happens. */
  async function attempted({ webhook }: EndpointQueue, { event }: DueDelivery): Promise<AttemptResult> {
    try {
      return await attempt(webhook, message(event), cutOff.signal);
    } catch (error) {
      log.error({ err: error, webhookId: webhook.webhookId }, 'an attempt to send a webhook broke off');
      return brokenOff;
    }
  }

  function ended(lane: EndpointQueue, { event, attempts: before }: DueDelivery, result: AttemptResult): void {
    const { isDelivered, httpStatus, answer, error, retryAfterS, isGone } = result;
    const [atMs, sent] = [clock.nowMs(), before + 1];
    const isOver = isDelivered || isGone;
    outcomes.add({
      ...{ id: lane.id, sequence: event.sequence, attempts: sent, atMs },
      ...{ isDelivered, httpStatus, answer, error },
      retryAtMs: isOver ? null : retryAtMs({ attempts: sent, atMs, retryAfterS }, random),
      disables: isGone ? 'the endpoint answered 410 Gone' : undefined,
    });
    counts[isDelivered ? 'delivered' : 'failed'] += 1;
    if (isDelivered) lane.failures = 0;
    else fail(lane);
    tell(lane, result);
    consider(lane);
    pump();
  }

  /** Leaves an endpoint alone for a while, whose last attempt failed. */
  function fail(lane: EndpointQueue): void {
    // One is sent at a time from now on, and first what was taken first.
    if (!isFailing(lane)) emptyQueue(lane);
    lane.failures += 1;
    const pause = pauseMs(lane.failures, limits.firstPauseMs, limits.longestPauseMs);
    lane.sendAtMs = clock.monotonicMs() + pause;
  }

  function emptyQueue(lane: EndpointQueue): void {
    for (const { event } of lane.queue) lane.underWay.delete(event.sequence);
    if (lane.queue.length > 0) lane.isBehind = true;
    countQueued(lane, -lane.queue.length);
    lane.queue.length = 0;
  }

  function countQueued({ callerId }: EndpointQueue, by: number): void {
    queued += by;
    queuedOf.add(callerId, by);
  }

  /** Logs that an endpoint fails, or works again; not so often that one which does both by turns fills the log. */
  function tell(lane: EndpointQueue, { error, detail }: AttemptResult): void {
    const atMs = clock.monotonicMs();
    if (isFailing(lane) === lane.isToldFailing || atMs < lane.toldAtMs + limits.tellEveryMs) return;
    lane.isToldFailing = isFailing(lane);
    lane.toldAtMs = atMs;
    if (!isFailing(lane)) log.info(namesOf(lane), 'an endpoint of webhooks works again');
    else
      log.warn({ ...namesOf(lane), why: error, detail }, 'an endpoint of webhooks fails: it is tried again');
  }

  function written(outcomes: readonly DeliveryResult[], { disabled, released }: NotedAttempts): void {
    store.worked();
    const changed = new Set<EndpointQueue>();
    for (const { id, sequence, retryAtMs } of outcomes) {
      const lane = lanes.get(id);
      if (lane === undefined) continue;
      lane.underWay.delete(sequence);
      lane.nextDueAtMs = earlier(lane.nextDueAtMs, retryAtMs);
      if (released.includes(id)) lane.isBehind = true;
      changed.add(lane);
    }
    counts.disabled += disabled.length;
    for (const id of disabled) {
      const lane = lanes.get(id);
      if (lane === undefined) continue;
      log.warn(namesOf(lane), 'an endpoint of webhooks is disabled, since it fails');
      remove(lane);
    }
    for (const lane of changed) consider(lane);
    pump();
  }

  function remove(lane: EndpointQueue): void {
    emptyQueue(lane);
    slots.cancel(lane);
    looking.delete(lane);
    lanes.remove(lane);
  }

  /** Takes up an endpoint as it was listed. */
  function meet(webhook: SendingWebhook): void {
    const known = lanes.get(webhook.id);
    // The number of one that was deleted may be given again.
    if (known !== undefined && known.webhook.webhookId !== webhook.webhookId) remove(known);
    const lane = lanes.get(webhook.id) ?? lanes.add(webhook);
    if (!isSameUrl(lane.webhook, webhook)) lane.failures = 0;
    lane.webhook = webhook;
    lane.nextDueAtMs = earlier(lane.nextDueAtMs, webhook.nextDueAtMs);
    consider(lane);
  }

  /** Lists all endpoints, and soon again. */
  async function list(): Promise<void> {
    cancelList();
    try {
      const listed = new Set<number>();
      for await (const webhook of allOf((page) => execute({ kind: 'ListSending', page }))) {
        meet(webhook);
        listed.add(webhook.id);
      }
      for (const lane of [...lanes.all()]) if (!listed.has(lane.id)) remove(lane);
      store.worked();
    } catch (error) {
      store.failed(error);
    }
    if (isStopped) return;
    cancelList = clock.after(limits.listEveryMs, () => void look());
    pump();
  }

  function look(): Promise<void> {
    nextListing ??= listing.then(() => {
      nextListing = undefined;
      listing = isStopped ? Promise.resolve() : list();
      return listing;
    });
    return nextListing;
  }

  function happened(callerIds: readonly number[] | undefined): void {
    const own = callerIds === undefined ? [lanes.all()] : callerIds.map((id) => lanes.of(id));
    for (const some of own) {
      for (const lane of some) {
        if (lane.isBehind) continue;
        lane.isBehind = true;
        consider(lane);
      }
    }
    pump();
  }

  return {
    start: () => {
      endEvents = onEvents(happened);
      return look();
    },
    look,
    metrics: () => ({ ...counts, requestsInFlight: slots.taken() }),
    stop: async () => {
      isStopped = true;
      endEvents();
      cancelList();
      cancelPump();
      for (const lane of lanes.all()) lane.cancel();
      if (slots.taken() === 0) idle.resolve();
      const forget = clock.after(limits.endMs, idle.resolve);
      await idle.promise;
      forget();
      cutOff.abort(new Error('The service stops.'));
      await outcomes.end();
    },
  };
}

/** In how many milliseconds an endpoint has its next turn: to be sent something, or to be looked for; undefined if there is none. */
function nextTurnMs(lane: EndpointQueue, clock: Clock): number | undefined {
  const nowMs = clock.monotonicMs();
  const restMs = lane.sendAtMs - nowMs;
  if (lane.queue.length > 0) return restMs;
  if (lane.isLooking || (isFailing(lane) && lane.underWay.size > 0)) return undefined;
  if (!lane.isBehind && lane.nextDueAtMs === null) return undefined;
  const dueMs = Number(lane.nextDueAtMs) - clock.nowMs();
  // The store makes due what is beyond the horizon.
  const isToLook = lane.isBehind || dueMs > dueHorizonMs;
  return Math.max(isToLook ? 0 : dueMs, restMs, lane.lookAtMs - nowMs);
}

const isFailing = ({ failures }: EndpointQueue): boolean => failures > 0;

const slotOf = (lane: EndpointQueue): Slot => ({
  id: lane.id,
  callerId: lane.callerId,
  isFailing: isFailing(lane),
});

/** What the log calls an endpoint: never its path, which may hold a secret of its owner. */
const namesOf = ({ webhook: { webhookId, caller, origin } }: EndpointQueue) => ({
  ...{ webhookId, platform: caller, host: new URL(origin).host },
});

/** Whether two readings of an endpoint have the same URL: each sealing of a URL gives other bytes. */
const isSameUrl = (one: SendingWebhook, other: SendingWebhook): boolean =>
  Buffer.compare(one.sealedUrl, other.sealedUrl) === 0;

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

/** What comes of an attempt that something internalError ended. */
const brokenOff: AttemptResult = {
  ...{ isDelivered: false, httpStatus: null, answer: null, isGone: false },
  error: 'the service failed to send it',
};

/** Keeps away from a store that cannot be used, longer and longer; logs when it begins and when it ends. */
function watchStore({ clock, log }: SenderDependencies, limits: SendingLimits) {
  const { firstStorePauseMs, longestStorePauseMs } = limits;
  let failures = 0;
  let untilMs = Number.NEGATIVE_INFINITY;
  let fault: string | undefined;
  return {
    /** For how many milliseconds more. */
    awayMs: () => untilMs - clock.monotonicMs(),
    worked: () => {
      if (failures === 0) return;
      failures = 0;
      fault = undefined;
      untilMs = Number.NEGATIVE_INFINITY;
      log.info('webhooks are sent again: the store works');
    },
    failed: (error: unknown) => {
      // Of those that fail together one counts.
      if (untilMs > clock.monotonicMs()) return;
      failures += 1;
      untilMs = clock.monotonicMs() + pauseMs(failures, firstStorePauseMs, longestStorePauseMs);
      const why = error instanceof Error ? error.message : String(error);
      if (why === fault) return;
      fault = why;
      const isAway = error instanceof ApiError && error.reason === 'UNAVAILABLE';
      if (isAway) log.warn({ why }, 'webhooks wait: the store cannot be used');
      else log.error({ err: error }, 'webhooks wait: what is to be sent cannot be read or written down');
    },
  };
}
