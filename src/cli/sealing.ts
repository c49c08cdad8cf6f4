import type { MasterKeyId } from '../keys/key-ring.ts';
import type { Registry } from '../operations/registry.ts';
import { readServingRecord } from '../operations/serving-record.ts';
import { isServed } from '../store/sqlite/serving-lock.ts';

/**
 * Refuses to seal secrets under a master key that the process which takes calls does not know: it would refuse the calls of
 * their keys. Throws an Error that says what to do.
 */
export function refuseUnknownToServing(dataDir: string, { keyRing }: Pick<Registry, 'keyRing'>): void {
  if (!isServed(dataDir)) return;
  const record = readServingRecord(dataDir);
  if (record === undefined)
    throw new Error(
      'the process that serves does not say which master keys it knows: try again when it is ready, or restart it.',
    );
  const [sealing] = keyRing.masterKeys;
  if (record.masterKeys.some((known) => isSame(known, sealing))) return;
  throw new Error(
    `the process that serves does not know the master key ${sealing.name} yet: ` +
      `kill -HUP ${record.pid} has it read the file anew; its log says whether it did. Then try again.`,
  );
}

const isSame = (one: MasterKeyId, other: MasterKeyId): boolean =>
  one.name === other.name && one.check === other.check;
