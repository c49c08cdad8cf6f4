import {
  type Agreement,
  agreedQuota,
  checkAgreement,
  checkCallerName,
  type Environment,
} from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { refuseViolations } from '../domain/violation.ts';
import type { CallerStore, NewKey, StoredKey, StoredToken } from '../store/store.ts';
import type { KeyRing } from './key-ring.ts';
import { mintKey, mintToken, tokenHash } from './mint.ts';

/** Issues credentials. What it returns of a secret or token is the only time that it is seen. */
export interface Issuance {
  /** Registers a platform and issues its first key. Throws VALIDATION_FAILED. */
  issueKey(agreement: Agreement): Promise<IssuedKey>;
  /**
   * Issues a further key, which is suspended if the existing one is; the existing one works on for `overlapS` seconds.
   * Throws NOT_FOUND, VALIDATION_FAILED.
   */
  rotateKey(keyId: string, overlapS: number): Promise<IssuedKey>;
  /** Issues a token to an internal system. Throws VALIDATION_FAILED. */
  issueToken(name: string, operator: boolean): Promise<IssuedToken>;
}

/** A new key with its secret, which is known nowhere else. */
export interface IssuedKey {
  readonly key: StoredKey;
  readonly apiSecret: string;
}

/** A new token as the store knows it, and its text, which is known nowhere else. */
export interface IssuedToken {
  readonly stored: StoredToken;
  readonly token: string;
}

/** What issuance works with. */
export interface IssuanceDependencies {
  readonly store: CallerStore;
  readonly keyRing: KeyRing;
  readonly environment: Environment;
  readonly clock: Clock;
}

/** Issuance into the store. */
export function createIssuance({ store, keyRing, environment, clock }: IssuanceDependencies): Issuance {
  const nowS = () => Math.floor(clock.nowMs() / 1000);

  function newKey(): { key: NewKey; apiSecret: string } {
    const { keyId, apiKey, apiSecret } = mintKey(environment);
    return {
      key: { keyId, apiKey, sealedSecret: keyRing.seal(apiSecret, keyId), createdAtS: nowS() },
      apiSecret,
    };
  }

  return {
    issueKey: async (agreement) => {
      const { name, tier } = agreement;
      refuseViolations(checkAgreement(agreement));
      if (tier === undefined) throw new Error('A checked agreement has a tier.');
      const { key, apiSecret } = newKey();
      return {
        key: await store.addPlatform({ name, tier, monthlyQuota: agreedQuota(agreement) }, key),
        apiSecret,
      };
    },
    rotateKey: async (keyId, overlapS) => {
      const { key, apiSecret } = newKey();
      return { key: await store.rotateKey(keyId, key, nowS() + overlapS), apiSecret };
    },
    issueToken: async (name, operator) => {
      refuseViolations(checkCallerName(name));
      const { tokenId, token } = mintToken(environment);
      const stored = await store.addToken(name, {
        tokenId,
        operator,
        sha256: tokenHash(token),
        createdAtS: nowS(),
      });
      return { stored, token };
    },
  };
}
