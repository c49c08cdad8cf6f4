import { createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Calendar } from '../domain/calendar.ts';
import { statusAt, tiers } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/reason.ts';
import { type AdmissionStore, nonceRetentionS, type StoredKey } from '../store/store.ts';
import { type CanonicalRequest, canonicalMessage, signature } from './canonical-request.ts';
import { type Credentials, checkTimestamp, readCredentials, type SentCredentials } from './credentials.ts';
import type { KeyRing } from './key-ring.ts';
import type { Platform } from './principal.ts';
import { createRateLimit, type RateStanding } from './rate-limit.ts';

/** Lets signed calls of platforms in. Its steps are called in the order in which they stand here. */
export interface Admission {
  /** Reads the four headers and checks the clock. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID, TIMESTAMP_EXPIRED. */
  credentials(sent: SentCredentials): Credentials;
  /**
   * Verifies the signature and spends the nonce, which stays spent whatever follows. Throws
   * SIGNATURE_INVALID, KEY_SUSPENDED, NONCE_REUSED.
   */
  identify(credentials: Credentials, request: SignedRequest): Promise<Platform>;
  /** Takes one call of the rate. Where it stands is told, refused or not. */
  takeRate(platform: Platform): RateStanding;
  /**
   * Takes one call of the month's quota; one that is allowed is to be ended. Where it stands is told, refused or
   * not.
   */
  takeQuota(platform: Platform): Promise<QuotaStanding>;
  /**
   * Ends a call that the quota allowed. Unless the answer is the service's fault, the call `counts`: in the commit
   * that the answer waits for, so that neither is there without the other.
   */
  endCall(platform: Platform, taken: QuotaStanding, counts: boolean): Promise<void>;
  /** Where the quota stands, without taking of it. */
  quota(platform: Platform): Promise<QuotaStanding>;
}

/** What was sent, as far as the signature covers it. */
export interface SignedRequest {
  readonly method: string;
  readonly target: string;
  readonly body: Uint8Array;
}

/** Where a caller stands with its monthly quota. */
export interface QuotaStanding {
  readonly allowed: boolean;
  /** YYYY-MM of the business time zone. */
  readonly month: string;
  /** Length of the month in seconds. */
  readonly monthS: number;
  /** Calls a month; undefined for unlimited. */
  readonly limit: number | undefined;
  /** Calls left in the month. */
  readonly remaining: number;
  /** Whole seconds until the month ends, at least 1. */
  readonly resetS: number;
}

/** What admission works with. */
export interface AdmissionDependencies {
  readonly store: AdmissionStore;
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  readonly calendar: Calendar;
}

/** Admission for the platforms in the store. */
export function createAdmission({ store, keyRing, clock, calendar }: AdmissionDependencies): Admission {
  const rateLimit = createRateLimit(clock.monotonicMs);
  const secretOf = createSecretCache(keyRing);
  // Unknown keys are verified against a secret that nobody has, so that they cost what known ones cost.
  const nobodysSecret = createSecretKey(randomBytes(32));
  const certainMs = createCertainTime(clock);
  /** Calls that the quota allowed and that have not ended, by caller. */
  const underWay = new Map<number, number>();

  function addUnderWay(callerId: number, calls: number): void {
    underWay.set(callerId, (underWay.get(callerId) ?? 0) + calls);
  }

  /** Where the quota stands once up to `take` calls more are taken of it. */
  async function standing({ callerId, monthlyQuota: limit }: Platform, take: 0 | 1): Promise<QuotaStanding> {
    const nowMs = clock.nowMs();
    const { name: month, endsAtMs, lengthS: monthS } = calendar.month(nowMs);
    // A call ends when the store has counted it, and verbs resolve in their order: none is missing here or twice.
    const left =
      limit === undefined
        ? Number.POSITIVE_INFINITY
        : limit - (await store.callsIn(callerId, month)) - (underWay.get(callerId) ?? 0);
    const allowed = left >= take;
    if (allowed) addUnderWay(callerId, take);
    return {
      allowed,
      month,
      monthS,
      limit,
      remaining: Math.max(0, left - take),
      resetS: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)),
    };
  }

  return {
    credentials: (sent) => {
      const credentials = readCredentials(sent);
      checkTimestamp(credentials.timestamp, clock.nowMs());
      return credentials;
    },
    identify: async ({ apiKey, timestamp, nonce, signature: sent }, { method, target, body }) => {
      const nowS = Math.floor(clock.nowMs() / 1000);
      const found = await store.findKey(apiKey);
      const key = found !== undefined && statusAt(found, nowS) !== 'REVOKED' ? found : undefined;
      const secret = key === undefined ? nobodysSecret : secretOf(key);
      const request = { method, target, body, timestamp, nonce };
      const expected = signature(request, secret);
      const matches = timingSafeEqual(expected, Buffer.from(sent, 'hex'));
      if (key === undefined || !matches) throw signatureInvalid(request);
      if (key.platformStatus === 'SUSPENDED')
        throw new Refusal('KEY_SUSPENDED', 'The platform is suspended; ask the operator.');
      if (key.status === 'SUSPENDED')
        throw new Refusal('KEY_SUSPENDED', 'The API key is suspended; ask the operator.');
      const sweepAtS = Math.floor(certainMs() / 1000);
      if (!(await store.claimNonce({ keyId: key.id, nonce, nowS, sweepAtS }))) {
        throw new Refusal(
          'NONCE_REUSED',
          'The nonce was used before; every request, a retry too, needs a new one.',
        );
      }
      const { callerId, caller, tier, monthlyQuota } = key;
      return { kind: 'platform', callerId, caller, tier, monthlyQuota: monthlyQuota ?? undefined };
    },
    takeRate: ({ callerId, tier }) => rateLimit.take(callerId, tiers[tier].callsPerSecond),
    takeQuota: (platform) => standing(platform, 1),
    endCall: async ({ callerId }, { month }, counts) => {
      try {
        if (counts) await store.countCall(callerId, month);
      } finally {
        addUnderWay(callerId, -1);
      }
    },
    quota: (platform) => standing(platform, 0),
  };
}

/** The refusal of a signature. All that it shows is what the caller sent: nothing tells whether the key exists. */
function signatureInvalid(request: CanonicalRequest): Refusal {
  const why = 'The API key is not known or the signature does not match. The text to sign was';
  return new Refusal('SIGNATURE_INVALID', `${why}: ${canonicalMessage(request)}`);
}

/** How much the wall clock may gain on the monotonic one from call to call without being set, in milliseconds. */
const gainMaxMs = 1_000;

/**
 * The time as far as it is certain. A clock that was set ahead may be set back, and then the nonces of just before
 * are still needed; so for as long as they are remembered, it is what it would be if the clock had not been set.
 * Who starts does not know whether it was, and begins in 1970.
 */
function createCertainTime({ nowMs, monotonicMs }: Clock): () => number {
  let leadMs = 0;
  let certainAtMs = monotonicMs();
  return () => {
    const atMs = monotonicMs();
    const wallLeadMs = nowMs() - atMs;
    if (wallLeadMs <= leadMs + gainMaxMs || atMs - certainAtMs >= nonceRetentionS * 1000) {
      leadMs = wallLeadMs;
      certainAtMs = atMs;
    }
    return atMs + leadMs;
  };
}

/** Opens each key's secret once: opening costs more than all the rest of verifying. */
function createSecretCache(keyRing: KeyRing): (key: StoredKey) => KeyObject {
  const opened = new Map<number, KeyObject>();
  return ({ id, keyId, sealedSecret }) => {
    const known = opened.get(id);
    if (known !== undefined) return known;
    const secret = keyRing.open(sealedSecret, keyId);
    opened.set(id, secret);
    return secret;
  };
}
