import {
  type CallObserver,
  createCallMetrics,
  createCallObserver,
  type ListenerName,
} from '../../src/api/call-observer.ts';
import type { Logger } from '../../src/lib/log.ts';

/** Observes the calls of a listener that a test opens: calls are logged and counted, and have no spans. */
export function openObserver(listener: ListenerName, log: Logger): CallObserver {
  return createCallObserver(listener, {
    log,
    metrics: createCallMetrics(),
    requests: { add: () => {} },
  });
}
