import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import { every } from '../lib/timing.ts';
import type { Store } from '../store/store.ts';
import { findDamage } from './damage-part.ts';

const checkEveryMs = 1_000;

/**
 * Checks once a second whether the files of the store are in place, and logs each change. Logs damage once. Returns a
 * function that ends the watch.
 */
export function watchStore(
  store: Pick<Store, 'findFault' | 'storageErrors' | 'onStorageError'>,
  clock: Clock,
  log: Logger,
): () => void {
  let known: string | undefined;
  let isDamaged = false;
  const check = () => {
    const fault = store.findFault();
    if (fault !== known && fault !== undefined)
      log.error(
        { fault },
        'the database file was replaced or removed: all calls are rejected until it is back',
      );
    if (fault !== known && fault === undefined) log.info('the database file is back: calls are served');
    known = fault;
  };
  const checkForDamage = () => {
    const fault = findDamage(store);
    if (fault === undefined || isDamaged) return;
    isDamaged = true;
    log.error({ fault }, 'the database is damaged: the service is not ready until it is restored');
  };
  const loop = every(clock, () => checkEveryMs, check);
  void loop.start();
  checkForDamage();
  const ignore = store.onStorageError(checkForDamage);
  return () => {
    ignore();
    void loop.stop();
  };
}
