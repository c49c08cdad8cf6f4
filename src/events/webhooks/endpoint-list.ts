import type { Clock } from '../../domain/clock.ts';
import { every } from '../../lib/timing.ts';
import { allOf } from '../../store/paging.ts';
import type { Execute } from '../../store/store.ts';
import type { SendingWebhook } from '../../store/webhook-commands.ts';
import type { EndpointQueue, EndpointQueues } from './endpoint-queue.ts';
import type { SendingLimits } from './limits.ts';
import type { StoreBackoff } from './store-backoff.ts';

/** Keeps the queues in line with the endpoints in the store. */
export interface EndpointList {
  /** Lists all endpoints, and again every `listEveryMs`. Resolves when the first listing has ended. */
  start(): Promise<void>;
  /** Lists all endpoints. Calls while a listing is in progress share the next one. Never rejects. */
  refresh(): Promise<void>;
  stop(): Promise<void>;
}

interface EndpointListDependencies {
  readonly execute: Execute;
  readonly clock: Clock;
  readonly queues: EndpointQueues;
  readonly store: StoreBackoff;
  readonly limits: Pick<SendingLimits, 'listEveryMs'>;
  readonly onListed: (webhook: SendingWebhook) => void;
  readonly onGone: (queue: EndpointQueue) => void;
  readonly onEnd: () => void;
}

export function createEndpointList(dependencies: EndpointListDependencies): EndpointList {
  const { execute, clock, queues, store, limits, onListed, onGone, onEnd } = dependencies;
  let isStopped = false;
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;

  async function list(): Promise<void> {
    try {
      const listed = new Set<number>();
      for await (const webhook of allOf((page) => execute({ kind: 'ListSending', page }))) {
        onListed(webhook);
        listed.add(webhook.id);
      }
      for (const queue of [...queues.all()]) if (!listed.has(queue.id)) onGone(queue);
      store.succeeded();
    } catch (error) {
      store.failed(error);
    }
    onEnd();
  }

  function refresh(): Promise<void> {
    next ??= current.then(() => {
      next = undefined;
      current = isStopped ? Promise.resolve() : list();
      return current;
    });
    return next;
  }

  const repetition = every(clock, () => limits.listEveryMs, refresh);
  return {
    start: repetition.start,
    refresh,
    stop: () => {
      isStopped = true;
      return repetition.stop();
    },
  };
}
