import type { Logger } from 'pino';
import { createCallMetrics, type ListenerName } from '../../src/api/call-metrics.ts';
import { type CallObserver, createCallObserver } from '../../src/api/call-observer.ts';

/** What observes the calls of a door that a test opens by itself: they are logged and counted, and have no spans. */
export function openObserver(door: ListenerName, log: Logger): CallObserver {
  return createCallObserver(door, { log, metrics: createCallMetrics() });
}
