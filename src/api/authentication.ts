import { createHmac, createSecretKey, hash, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { statusAt } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError, unavailable } from '../domain/reason.ts';
import { tokenStatusAt } from '../domain/token.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { type KeyRing, SecretNotOpened } from '../keys/key-ring.ts';
import { isApiKey, tokenHash } from '../keys/mint.ts';
import type { Logger } from '../lib/log.ts';
import type { StoredKey, StoredToken } from '../store/caller-commands.ts';
import type { Execute, NonceClaim, Store } from '../store/store.ts';
import type { PlatformPrincipal, ServicePrincipal } from './operation.ts';

/** The four headers that identify and sign a call. */
export const credentialHeaders = {
  apiKey: 'X-Api-Key',
  timestamp: 'X-Timestamp',
  nonce: 'X-Nonce',
  signature: 'X-Signature',
} as const;

/** The values of the four headers. */
export type Credentials = { readonly [Part in keyof typeof credentialHeaders]: string };

/** All values sent for each header. */
export type SentCredentials = { readonly [Part in keyof Credentials]: readonly string[] };

/** Largest accepted difference between the client's and the server's clock, in seconds. */
export const clockDifferenceMaxS = 300;

/** The form of each header. `checkTimestamp` checks the timestamp, which has its own error code. */
const shapes: { readonly [Part in keyof Credentials]?: { pattern: RegExp; rule: string } } = {
  apiKey: { pattern: /^[\x21-\x7e]{1,128}$/, rule: 'must be the key as issued' },
  nonce: { pattern: /^[A-Za-z0-9._~+/=-]{1,64}$/, rule: 'must be 1 to 64 of A-Z a-z 0-9 . _ ~ + / = -' },
  signature: { pattern: /^[0-9a-f]{64}$/, rule: 'must be 64 lower-case hex digits' },
};

const unixSeconds = /^[1-9][0-9]{9}$/;

const parts = Object.keys(credentialHeaders) as (keyof Credentials)[];

/**
 * Reads the four headers. Throws AUTH_HEADER_MISSING for the first one that is absent or empty, then AUTH_HEADER_INVALID for
 * the first one that is repeated or malformed.
 */
export function readCredentials(sent: SentCredentials): Credentials {
  for (const part of parts) {
    if (sent[part].every((value) => value === '')) {
      throw new ApiError('AUTH_HEADER_MISSING', `The header ${credentialHeaders[part]} is required.`);
    }
  }
  for (const part of parts) {
    const { length, 0: value = '' } = sent[part];
    const shape = shapes[part];
    const repeated = length > 1 && 'was sent more than once';
    const broken = repeated || (shape !== undefined && !shape.pattern.test(value) && shape.rule);
    if (broken) throw new ApiError('AUTH_HEADER_INVALID', `The header ${credentialHeaders[part]} ${broken}.`);
  }
  const [apiKey = ''] = sent.apiKey;
  const [timestamp = ''] = sent.timestamp;
  const [nonce = ''] = sent.nonce;
  const [signature = ''] = sent.signature;
  return { apiKey, timestamp, nonce, signature };
}

/** The API key in the header, for the log; undefined if the value does not look like a key, because it may be a secret. */
export function claimedKey({ apiKey: [value = '', ...more] }: SentCredentials): string | undefined {
  return more.length === 0 && isApiKey(value) ? value : undefined;
}

/** Throws TIMESTAMP_EXPIRED unless the timestamp is Unix seconds within `clockDifferenceMaxS` of now. */
export function checkTimestamp(timestamp: string, nowMs: number): void {
  const serverTimeS = Math.floor(nowMs / 1000);
  const sent = unixSeconds.test(timestamp);
  if (sent && Math.abs(Number(timestamp) - serverTimeS) <= clockDifferenceMaxS) return;
  const rule = sent
    ? `differs from the server's clock (${serverTimeS}) by more than ${clockDifferenceMaxS} seconds`
    : `must be Unix time in whole seconds, ten digits; the server's clock is ${serverTimeS}`;
  throw new ApiError('TIMESTAMP_EXPIRED', `The header ${credentialHeaders.timestamp} ${rule}.`, {
    serverTimeS,
  });
}

/** Throws UNAVAILABLE for a request that the original registry may have run after the backup that was restored; see `NonceGap`. */
export function checkNonceGap(timestamp: string, untilS: number, nowMs: number): void {
  if (Number(timestamp) > untilS) return;
  const retryAfterS = untilS + 1 - Math.floor(nowMs / 1000);
  throw new ApiError(
    'UNAVAILABLE',
    `The registry was restored from a backup. It rejects requests with X-Timestamp up to ${untilS}, ` +
      'because they may have been carried out before. Nothing was stored; sign the request again after that time.',
    { retryAfterS: Math.max(1, retryAfterS) },
  );
}

/** The end of the gap of a restored registry that first served requests at `servedAtS`, both in Unix seconds. */
export const rejectedThroughS = (servedAtS: number): number => servedAtS + clockDifferenceMaxS;

/** When signed requests are accepted again, RFC 3339. */
export const acceptedFrom = (untilS: number): string => utcTimestamp((untilS + 1) * 1_000);

/**
 * The time after a restore in which the registry cannot detect replays: it does not have the nonces that the original used
 * after the backup.
 */
export type NonceGap = Awaited<ReturnType<typeof findNonceGap>>;

/**
 * Finds the gap of a store. It ends `clockDifferenceMaxS` after the restored store first served requests, since the original may
 * have accepted a timestamp that far in the future. Until then it ends that long after now.
 */
export async function findNonceGap(execute: Execute, clock: Clock, log: Logger) {
  const restored = await execute({ kind: 'FindRestoration' });
  if (restored === undefined) return { untilS: () => 0, findFault: () => undefined, served: async () => {} };
  const nowS = () => Math.floor(clock.nowMs() / 1000);
  let { servedAtS } = restored;
  const untilS = () => rejectedThroughS(servedAtS ?? nowS());
  return {
    /** Requests with a timestamp up to this, in Unix seconds, are rejected; 0 if the registry was never restored. */
    untilS,
    /** The readiness fault while the gap lasts. */
    findFault: () =>
      nowS() > untilS() ? undefined : `signed calls are rejected until ${acceptedFrom(untilS())}`,
    /** Records that this process now listens, so that the original, if it had the same addresses, has stopped. */
    served: async () => {
      servedAtS ??= nowS();
      await execute({ kind: 'RecordServing', atS: servedAtS });
      if (nowS() > untilS()) return;
      const until = acceptedFrom(untilS());
      log.warn({ until }, 'restored from a backup: signed requests are rejected until then');
    },
  };
}

/** The parts of a request that its signature covers. */
export interface CanonicalRequest {
  /** Upper case. */
  readonly method: string;
  /** The raw request target as sent, query included. */
  readonly target: string;
  readonly body: Uint8Array;
  /** Unix seconds, ten digits. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** The signed message: method, target, hex SHA-256 of the raw body, timestamp and nonce, without separators. */
export function canonicalMessage({ method, target, body, timestamp, nonce }: CanonicalRequest): string {
  return `${method}${target}${hash('sha256', body, 'hex')}${timestamp}${nonce}`;
}

/** HMAC-SHA256 of the canonical message in lower-case hex. The key is the UTF-8 bytes of the whole issued secret. */
export function signature(request: CanonicalRequest, secret: string | KeyObject): string {
  return createHmac('sha256', secret).update(canonicalMessage(request)).digest('hex');
}

/**
 * Authenticates platforms against the keys that the store has in memory. It reads and writes nothing on disk. The returned function
 * verifies the signature of a call at `nowS`, Unix seconds, and returns its platform and nonce. It throws SIGNATURE_INVALID,
 * KEY_SUSPENDED, UNAVAILABLE.
 */
export function createAuthentication(store: Pick<Store, 'findKey'>, keyRing: KeyRing) {
  const secretOf = createSecretCache(keyRing);
  // An unknown key is verified too: otherwise the response time would show which keys exist.
  const decoySecret = createSecretKey(randomBytes(32));

  return (
    { apiKey, timestamp, nonce, signature: sent }: Credentials,
    { method, target, body }: Pick<CanonicalRequest, 'method' | 'target' | 'body'>,
    nowS: number,
  ): { readonly platform: PlatformPrincipal; readonly nonce: NonceClaim } => {
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
const platformSuspended = (): ApiError =>
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

const bearer = /^Bearer (it_[\x21-\x7e]{1,252})$/i;

/**
 * Checks tokens against those that the store has in memory, and their expiry against the clock. The returned function identifies
 * an internal system by the value of its Authorization header. It throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID; KEY_SUSPENDED
 * for a token of a suspended platform.
 */
export function createBearerCheck(store: Pick<Store, 'findToken'>, clock: Pick<Clock, 'nowMs'>) {
  // Of tokens that were valid when they were last sent. A hash takes longer than the rest of the check.
  const hashes = new Map<string, Uint8Array>();
  function findValid(text: string): StoredToken | undefined {
    const hash = hashes.get(text) ?? tokenHash(text);
    const found = store.findToken(hash);
    if (found !== undefined && tokenStatusAt(found, clock.nowMs() / 1000) === 'VALID') {
      hashes.set(text, hash);
      return found;
    }
    hashes.delete(text);
    return undefined;
  }

  return (authorization: string | null): ServicePrincipal => {
    if (authorization === null || authorization === '') {
      throw new ApiError('AUTH_HEADER_MISSING', 'The header Authorization is required: Bearer it_….');
    }
    const token = bearer.exec(authorization)?.[1];
    const found = token === undefined ? undefined : findValid(token);
    if (found === undefined) {
      throw new ApiError(
        'AUTH_HEADER_INVALID',
        'The header Authorization must be Bearer and a token of this service that is neither revoked nor expired.',
      );
    }
    const { tokenId, scopes, platform } = found;
    if (platform?.status === 'SUSPENDED') throw platformSuspended();
    const { callerId, caller } = platform ?? found;
    const filingCap = platform?.filingCap ?? undefined;
    return { kind: 'service', tokenId, scopes, callerId, caller, isPlatform: platform !== null, filingCap };
  };
}
