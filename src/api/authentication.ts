import { createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { statusAt } from '../domain/caller.ts';
import { ApiError, unavailable } from '../domain/reason.ts';
import { type KeyRing, SecretNotOpened } from '../keys/key-ring.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import type { NonceClaim, Store } from '../store/store.ts';
import { type CanonicalRequest, canonicalMessage, signature } from './canonical-request.ts';
import type { Credentials } from './credentials.ts';
import type { PlatformPrincipal } from './principal.ts';

/** What was sent, as far as the signature covers it. */
export type SignedRequest = Pick<CanonicalRequest, 'method' | 'target' | 'body'>;

/** A platform that is known by its signature, and the nonce that its call is to spend. */
export interface Authenticated {
  readonly platform: PlatformPrincipal;
  readonly nonce: NonceClaim;
}

/** Verifies the signature of a call at `nowS`, Unix seconds. Throws SIGNATURE_INVALID, KEY_SUSPENDED, UNAVAILABLE. */
export type Authenticate = (credentials: Credentials, request: SignedRequest, nowS: number) => Authenticated;

/** What authentication works with. */
export interface AuthenticationDependencies {
  readonly store: Pick<Store, 'findKey'>;
  readonly keyRing: KeyRing;
}

/** Authentication for the platforms in the store; nothing is read from disk and nothing is written. */
export function createAuthentication({ store, keyRing }: AuthenticationDependencies): Authenticate {
  const secretOf = createSecretCache(keyRing);
  // Unknown keys are verified against a secret that nobody has, so that they cost what known ones cost.
  const nobodysSecret = createSecretKey(randomBytes(32));

  return ({ apiKey, timestamp, nonce, signature: sent }, { method, target, body }, nowS) => {
    const found = store.findKey(apiKey);
    const key = found !== undefined && statusAt(found, nowS) !== 'REVOKED' ? found : undefined;
    const secret = key === undefined ? nobodysSecret : secretOf(key);
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

/** The error of whoever calls for a suspended platform. */
export const platformSuspended = (): ApiError =>
  new ApiError('KEY_SUSPENDED', 'The platform is suspended; ask the operator.');

/** The error of a signature. All that it shows is what the caller sent: nothing tells whether the key exists. */
function signatureInvalid(request: CanonicalRequest): ApiError {
  const why = 'The API key is not known or the signature does not match. The text to sign was';
  return new ApiError('SIGNATURE_INVALID', `${why}: ${canonicalMessage(request)}`);
}

const cannotVerify = 'The API key cannot be verified at present; the operator finds the cause in the log.';

/**
 * Opens each key's secret once: opening costs more than all the rest of verifying. Throws UNAVAILABLE if it does not open,
 * which the operator alone can mend.
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
