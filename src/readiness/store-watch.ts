import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import type { Store } from '../store/store.ts';

/** How often the store is looked after, in milliseconds. */
const lookEveryMs = 1_000;

/**
 * Looks once a second whether the files of the store are in their place. Logs an error when it is not, and a line when
 * it is again, once for each change. Returns what ends it.
 */
export function watchStore(store: Pick<Store, 'findFault'>, clock: Clock, log: Logger): () => void {
  let known: string | undefined;
  let callOff = () => {};
  const look = () => {
    const fault = store.findFault();
    if (fault !== known && fault !== undefined)
      log.error({ fault }, 'the database is not in its place: all calls are refused until it is');
    if (fault !== known && fault === undefined)
      log.info('the database is in its place again: calls are answered');
    known = fault;
    callOff = clock.after(lookEveryMs, look);
  };
  look();
  return () => callOff();
}
