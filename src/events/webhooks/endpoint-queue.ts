import type { DueDelivery, SendingWebhook } from '../../store/webhook-commands.ts';

/** An endpoint that is sent to, and what is known of it in memory. Times are of the monotonic clock where nothing else is said. */
export interface EndpointQueue {
  readonly id: number;
  readonly callerId: number;
  /** As it was read last. */
  webhook: SendingWebhook;
  /** Taken and not begun. */
  readonly queue: DueDelivery[];
  /** Sequences of what was taken and is not written down: those of the queue among them. */
  readonly underWay: Set<number>;
  /** When the first delivery that is not under way is due, Unix milliseconds; null if none is PENDING. */
  nextDueAtMs: number | null;
  /** Whether there may be something to take, whatever is due. */
  isBehind: boolean;
  /** Whether the store is being asked. */
  isLooking: boolean;
  /** Attempts that failed in a row. */
  failures: number;
  /** When it may be looked again, and when it may be sent something again, in milliseconds. */
  lookAtMs: number;
  sendAtMs: number;
  /** Whether the log was told last that it fails, and when, in milliseconds. */
  isToldFailing: boolean;
  toldAtMs: number;
  /** Calls off its next turn. */
  cancel: () => void;
}

/** The endpoints that are sent to, by their ids and by their callers. */
export interface EndpointQueues {
  get(id: number): EndpointQueue | undefined;
  all(): Iterable<EndpointQueue>;
  of(callerId: number): Iterable<EndpointQueue>;
  add(webhook: SendingWebhook): EndpointQueue;
  remove(lane: EndpointQueue): void;
}

export function createEndpointQueues(): EndpointQueues {
  const lanes = new Map<number, EndpointQueue>();
  const byCaller = new Map<number, Set<EndpointQueue>>();
  return {
    get: (id) => lanes.get(id),
    all: () => lanes.values(),
    of: (callerId) => byCaller.get(callerId) ?? [],
    add: (webhook) => {
      const lane = newQueue(webhook);
      lanes.set(lane.id, lane);
      const own = byCaller.get(lane.callerId);
      if (own === undefined) byCaller.set(lane.callerId, new Set([lane]));
      else own.add(lane);
      return lane;
    },
    remove: (lane) => {
      lane.cancel();
      lanes.delete(lane.id);
      const own = byCaller.get(lane.callerId);
      own?.delete(lane);
      if (own?.size === 0) byCaller.delete(lane.callerId);
    },
  };
}

function newQueue(webhook: SendingWebhook): EndpointQueue {
  const isFailing = webhook.failingSinceS !== null;
  return {
    ...{ id: webhook.id, callerId: webhook.callerId, webhook, queue: [], underWay: new Set() },
    ...{ nextDueAtMs: webhook.nextDueAtMs, isBehind: true, isLooking: false, failures: isFailing ? 1 : 0 },
    ...{ lookAtMs: Number.NEGATIVE_INFINITY, sendAtMs: Number.NEGATIVE_INFINITY },
    ...{ isToldFailing: isFailing, toldAtMs: Number.NEGATIVE_INFINITY, cancel: () => {} },
  };
}
