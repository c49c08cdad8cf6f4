import type { Logger } from 'pino';
import { createCallFigures, type Door } from '../../src/observe/call-figures.ts';
import { type CallObserver, createCallObserver } from '../../src/observe/call-observer.ts';

/** What observes the calls of a door that a test opens by itself: they are logged and counted, and have no spans. */
export function openObserver(door: Door, log: Logger): CallObserver {
  return createCallObserver(door, { log, figures: createCallFigures() });
}
