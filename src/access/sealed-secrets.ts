import type { CallerStore } from '../store/store.ts';
import type { KeyRing } from './key-ring.ts';

/** The master keys are not those that the secrets in the store were sealed under. */
export class MasterKeyRefused extends Error {
  override name = 'MasterKeyRefused';
}

/** Keys read from the store at a time. */
const keysPerPage = 100;

/** Opens the secret of every key that is not revoked. Throws MasterKeyRefused for the first that does not open. */
export async function checkSealedSecrets(store: CallerStore, keyRing: KeyRing): Promise<void> {
  let from: number | undefined;
  do {
    const page = await store.listKeys({ from, size: keysPerPage });
    for (const { status, sealedSecret, keyId, caller } of page.items) {
      if (status === 'REVOKED') continue;
      try {
        keyRing.open(sealedSecret, keyId);
      } catch (cause) {
        const message = `the master key does not open the secret of ${keyId} (${caller}): it is not the one that this database was sealed under`;
        throw new MasterKeyRefused(message, { cause });
      }
    }
    from = page.next;
  } while (from !== undefined);
}
