import type { Actor } from '../domain/audit-entry.ts';
import {
  type Agreement,
  agreedQuota,
  checkAgreement,
  type Environment,
  type Tier,
} from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { checkTokenTerms, scopes, scopesIn, type TokenTerms } from '../domain/token.ts';
import { rejectViolations } from '../domain/violation.ts';
import type { NewKey, NewPlatform, NewToken, StoredKey } from '../store/caller-commands.ts';
import type { Execute } from '../store/store.ts';
import { type KeyRing, SecretNotOpened } from './key-ring.ts';
import { mintKey, mintToken, tokenHash } from './mint.ts';

/** Issues credentials. Secrets and tokens are returned once and cannot be read again. */
export type Issuance = ReturnType<typeof createIssuance>;

/** A new key with its secret. */
export interface IssuedKey {
  readonly key: StoredKey;
  readonly apiSecret: string;
}

/** The credentials of a deployment's first callers. */
export interface FirstCredentials {
  readonly keyId: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  readonly token: string;
}

/** What issuance needs. */
export interface IssuanceDependencies {
  readonly execute: Execute;
  readonly keyRing: KeyRing;
  readonly environment: Environment;
  readonly clock: Clock;
}

export function createIssuance({ execute, keyRing, environment, clock }: IssuanceDependencies) {
  const nowS = () => Math.floor(clock.nowMs() / 1000);

  function newKey() {
    const { keyId, apiKey, apiSecret } = mintKey(environment);
    const sealedSecret = keyRing.seal(apiSecret, keyId);
    const key: NewKey = { keyId, apiKey, sealedSecret, createdAtS: nowS() };
    return { key, apiSecret };
  }

  /** Throws VALIDATION_FAILED. */
  function newToken(terms: TokenTerms) {
    const createdAtS = nowS();
    rejectViolations(checkTokenTerms(terms, createdAtS));
    const { tokenId, token: text } = mintToken(environment);
    const { expiresAtS = null, platform } = terms;
    const granted = { scopes: scopesIn(terms.scopes), expiresAtS, platform };
    const token: NewToken = { tokenId, ...granted, sha256: tokenHash(text), createdAtS };
    return { token, text };
  }

  const secretOf = ({ sealedSecret, keyId }: StoredKey): string =>
    keyRing.open(sealedSecret, keyId).export().toString();

  /** A key with its stored secret, which an earlier call may have created. */
  async function issued(key: StoredKey): Promise<IssuedKey> {
    try {
      return { key, apiSecret: secretOf(key) };
    } catch (error) {
      if (!(error instanceof SecretNotOpened)) throw error;
      // A replay returns the key as stored then. Its secret may have been encrypted with another key since.
      return { key, apiSecret: secretOf(await execute({ kind: 'FindKey', keyId: key.keyId })) };
    }
  }

  return {
    /** Registers a platform and issues its first key. Throws VALIDATION_FAILED. */
    issueKey: async (agreement: Agreement, by: Actor): Promise<IssuedKey> => {
      const platform = platformOf(agreement);
      return issued(await execute({ kind: 'AddPlatform', by, platform, key: newKey().key }));
    },
    /**
     * Issues another key, which is suspended if the existing one is. The existing key expires after `overlapS` seconds.
     * Throws NOT_FOUND, VALIDATION_FAILED.
     */
    rotateKey: async (keyId: string, overlapS: number, by: Actor): Promise<IssuedKey> => {
      const { key } = newKey();
      const endsAtS = key.createdAtS + overlapS;
      return issued(await execute({ kind: 'RotateKey', by, keyId, key, endsAtS }));
    },
    /** Issues the first key of a platform for its one-time link, once. Undefined if the link is not valid, or was used. */
    claimKey: async (link: string): Promise<IssuedKey | undefined> => {
      const { key, apiSecret } = newKey();
      const issuedKey = await execute({ kind: 'ClaimAccess', sha256: tokenHash(link), key });
      return issuedKey && { key: issuedKey, apiSecret };
    },
    /**
     * Issues a token to an internal system, and revokes the token `replacedId` in the same transaction. `token` is its text; empty
     * for the replay of a call, since it is not stored. Throws VALIDATION_FAILED; PERMISSION_DENIED if the replaced one is revoked.
     */
    issueToken: async (terms: TokenTerms, by: Actor, replacedId?: string) => {
      const { token, text } = newToken(terms);
      const stored = await execute({ kind: 'AddToken', by, name: terms.name, token, replacedId });
      return { stored, token: stored.tokenId === token.tokenId ? text : '' };
    },
    /**
     * Issues the first key and a token with all scopes, in one transaction. `keep` gets them before they are stored, because
     * they cannot be read afterwards.
     */
    issueFirst: async (
      agreement: Agreement,
      service: string,
      by: Actor,
      keep: (first: FirstCredentials) => void,
    ): Promise<void> => {
      const platform = platformOf(agreement);
      const { key, apiSecret } = newKey();
      const unlimited = { name: service, scopes, expiresAtS: undefined, platform: undefined };
      const { token, text } = newToken(unlimited);
      keep({ keyId: key.keyId, apiKey: key.apiKey, apiSecret, token: text });
      await execute({ kind: 'AddFirstCallers', by, platform, key, service, token });
    },
  };
}

/** The platform of an agreement. Throws VALIDATION_FAILED. */
function platformOf(agreement: Agreement): NewPlatform {
  const { name, tier, filingCap } = agreement;
  rejectViolations(checkAgreement(agreement));
  return { name, tier: tier as Tier, monthlyQuota: agreedQuota(agreement), filingCap };
}
