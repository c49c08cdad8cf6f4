import { statusAt } from '../domain/caller.ts';
import { allOf } from '../store/paging.ts';
import type { Execute } from '../store/store.ts';
import { type KeyRing, sealingKeyName } from './key-ring.ts';

/** The master keys are not those that the secrets in the store were sealed under. */
export class MasterKeyRefused extends Error {
  override name = 'MasterKeyRefused';
}

/**
 * Opens the secret of every key that is still good at `nowS`, Unix seconds. Throws MasterKeyRefused for the first
 * that does not open.
 */
export async function checkSealedSecrets(execute: Execute, keyRing: KeyRing, nowS: number): Promise<void> {
  for await (const key of allOf((page) => execute({ kind: 'ListKeys', page }))) {
    if (statusAt(key, nowS) === 'REVOKED') continue;
    const { sealedSecret, keyId, caller } = key;
    try {
      keyRing.open(sealedSecret, keyId);
    } catch {
      throw new MasterKeyRefused(
        `the master key does not open the secret of ${keyId} (${caller}): ` +
          `set ARTSEAL_MASTER_KEY_FILE to the file with the key ${sealingKeyName(sealedSecret)} of this database.`,
      );
    }
  }
}
