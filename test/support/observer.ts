import type { Logger } from 'pino';
import { createCallMetrics, type ListenerName } from '../../src/api/call-metrics.ts';
import { type CallObserver, createCallObserver } from '../../src/api/call-observer.ts';

/** Observes the calls of a listener that a test opens: calls are logged and counted, and have no spans. */
export function openObserver(listener: ListenerName, log: Logger): CallObserver {
  return createCallObserver(listener, { log, metrics: createCallMetrics() });
}
