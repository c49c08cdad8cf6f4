import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import type { Store } from '../store/store.ts';
import { findDamage } from './damage-part.ts';

/** How often the store is looked after, in milliseconds. */
const lookEveryMs = 1_000;

/**
 * Looks once a second whether the files of the store are in their place. Logs an error when it is not, and a line when
 * it is again, once for each change; and an error once when damage is found in it. Returns what ends it.
 */
export function watchStore(
  store: Pick<Store, 'findFault' | 'storageErrors' | 'onStorageError'>,
  clock: Clock,
  log: Logger,
): () => void {
  let known: string | undefined;
  let isDamaged = false;
  let cancel = () => {};
  const look = () => {
    const fault = store.findFault();
    if (fault !== known && fault !== undefined)
      log.error({ fault }, 'the database is not in its place: all calls are refused until it is');
    if (fault !== known && fault === undefined)
      log.info('the database is in its place again: calls are answered');
    known = fault;
    cancel = clock.after(lookEveryMs, look);
  };
  const lookForDamage = () => {
    const fault = findDamage(store);
    if (fault === undefined || isDamaged) return;
    isDamaged = true;
    log.error({ fault }, 'the database is damaged: the service is not ready until it is restored');
  };
  look();
  lookForDamage();
  const ignore = store.onStorageError(lookForDamage);
  return () => {
    ignore();
    cancel();
  };
}
