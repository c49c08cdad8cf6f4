import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { AttemptResult } from './attempt.ts';
import { type EndpointQueue, isFailing } from './endpoint-queue.ts';
import type { SendingLimits } from './limits.ts';

/** Logs when endpoints start to fail, work again, and are disabled. */
export interface EndpointLog {
  /** Logs a change, at most one line in `logEveryMs` for an endpoint that fails and works by turns. */
  attempted(queue: EndpointQueue, result: AttemptResult): void;
  disabled(queue: EndpointQueue): void;
}

export function createEndpointLog(
  clock: Pick<Clock, 'monotonicMs'>,
  log: Logger,
  { logEveryMs }: Pick<SendingLimits, 'logEveryMs'>,
): EndpointLog {
  return {
    attempted: (queue, { error, detail }) => {
      const atMs = clock.monotonicMs();
      const fails = isFailing(queue);
      if (fails === queue.isLoggedFailing || atMs < queue.loggedAtMs + logEveryMs) return;
      queue.isLoggedFailing = fails;
      queue.loggedAtMs = atMs;
      if (!fails) log.info(namesOf(queue), 'an endpoint of webhooks works again');
      else
        log.warn(
          { ...namesOf(queue), why: error, detail },
          'an endpoint of webhooks fails: it is tried again',
        );
    },
    disabled: (queue) => log.warn(namesOf(queue), 'an endpoint of webhooks is disabled, since it fails'),
  };
}

/** How the log names an endpoint: never by its path, which may hold a secret of the platform. */
const namesOf = ({ webhook: { webhookId, caller, origin } }: EndpointQueue) => ({
  ...{ webhookId, platform: caller, host: new URL(origin).host },
});
