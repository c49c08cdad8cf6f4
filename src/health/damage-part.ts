import type { Store } from '../store/store.ts';
import type { ReadinessPart } from './readiness.ts';

/** No damage was found in the store since it was opened. It fails until the process ends: damage does not heal. */
export function createDamagePart(store: Pick<Store, 'storageErrors'>): ReadinessPart {
  return { name: 'database', findFault: () => findDamage(store) };
}

/** The damage that was found in the store, and what to do, in words for the operator; undefined if there is none. */
export function findDamage(store: Pick<Store, 'storageErrors'>): string | undefined {
  const { damage } = store.storageErrors();
  return (
    damage &&
    `the database is damaged (${damage}): change nothing in its folder, and restore the last backup, as ` +
      'docs/operate/incidents/database-damaged.md says'
  );
}
