import type { Store } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** Fails once damage was found in the store, until the process ends. */
export function createDamagePart(store: Pick<Store, 'storageErrors'>): ReadinessPart {
  return { name: 'database', findFault: () => findDamage(store) };
}

/** Returns the damage that was found and what to do, in words for the operator; undefined if there is none. */
export function findDamage(store: Pick<Store, 'storageErrors'>): string | undefined {
  const { damage } = store.storageErrors();
  return (
    damage &&
    `the database is damaged (${damage}): change nothing in its folder, and restore the last backup, as ` +
      'docs/operate/incidents/database-damaged.md says'
  );
}
