import { createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { statusAt } from '../domain/caller.ts';
import { ApiError, unavailable } from '../domain/reason.ts';
import { type KeyRing, SecretNotOpened } from '../keys/key-ring.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import type { NonceClaim, Store } from '../store/store.ts';
import { type CanonicalRequest, canonicalMessage, signature } from './canonical-request.ts';
import type { Credentials } from './credentials.ts';
import type { PlatformPrincipal } from './principal.ts';

/** The part of a request that the signature covers. */
export type SignedRequest = Pick<CanonicalRequest, 'method' | 'target' | 'body'>;

/** A platform identified by its signature, and the nonce that its call uses. */
export interface Authenticated {
  readonly platform: PlatformPrincipal;
  readonly nonce: NonceClaim;
}

/** Verifies the signature of a call at `nowS`, Unix seconds. Throws SIGNATURE_INVALID, KEY_SUSPENDED, UNAVAILABLE. */
export type Authenticate = (credentials: Credentials, request: SignedRequest, nowS: number) => Authenticated;

/** The dependencies of authentication. */
export interface AuthenticationDependencies {
  readonly store: Pick<Store, 'findKey'>;
  readonly keyRing: KeyRing;
}

/** Authenticates platforms against the keys that the store has in memory. It reads and writes nothing on disk. */
export function createAuthentication({ store, keyRing }: AuthenticationDependencies): Authenticate {
  const secretOf = createSecretCache(keyRing);
  // An unknown key is verified too: otherwise the response time would show which keys exist.
  const decoySecret = createSecretKey(randomBytes(32));

  return ({ apiKey, timestamp, nonce, signature: sent }, { method, target, body }, nowS) => {
    const found = store.findKey(apiKey);
    const key = found !== undefined && statusAt(found, nowS) !== 'REVOKED' ? found : undefined;
    const secret = key === undefined ? decoySecret : secretOf(key);
    const request = { method, target, body, timestamp, nonce };
    const expected = signature(request, secret);
    const matches = timingSafeEqual(Buffer.from(expected), Buffer.from(sent));
    if (key === undefined || !matches) throw signatureInvalid(request);
    if (key.platformStatus === 'SUSPENDED') throw platformSuspended();
    if (key.status === 'SUSPENDED')
      throw new ApiError('KEY_SUSPENDED', 'The API key is suspended; ask the operator.');
    const { callerId, caller, tier, monthlyQuota, filingCap } = key;
    return {
      platform: {
        ...{ kind: 'platform', callerId, caller, tier },
        ...{ monthlyQuota: monthlyQuota ?? undefined, filingCap: filingCap ?? undefined },
      },
      nonce: { keyId: key.id, nonce },
    };
  };
}

/** The error for a caller whose platform is suspended. */
export const platformSuspended = (): ApiError =>
  new ApiError('KEY_SUSPENDED', 'The platform is suspended; ask the operator.');

/** The error for a signature that does not match. It shows only what the caller sent, so it does not reveal whether the key exists. */
function signatureInvalid(request: CanonicalRequest): ApiError {
  const why = 'The API key is unknown or the signature does not match. The text to sign was';
  return new ApiError('SIGNATURE_INVALID', `${why}: ${canonicalMessage(request)}`);
}

const cannotVerify = 'The API key cannot be verified now; the operator finds the cause in the log.';

/**
 * Decrypts each key's secret once, because that costs more than verifying a signature. Throws UNAVAILABLE if a secret cannot
 * be decrypted, which only the operator can repair.
 */
function createSecretCache(keyRing: KeyRing): (key: StoredKey) => KeyObject {
  const opened = new Map<number, KeyObject>();
  return ({ id, keyId, sealedSecret }) => {
    const known = opened.get(id);
    if (known !== undefined) return known;
    try {
      const secret = keyRing.open(sealedSecret, keyId);
      opened.set(id, secret);
      return secret;
    } catch (error) {
      if (error instanceof SecretNotOpened) throw unavailable(cannotVerify, error);
      throw error;
    }
  };
}
