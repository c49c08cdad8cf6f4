import { createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Calendar } from '../domain/calendar.ts';
import { tiers } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/reason.ts';
import type { AdmissionStore, StoredKey } from '../store/store.ts';
import { signature } from './canonical-request.ts';
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
  /** Counts the call in the quota of the month. Where it stands is told, refused or not. */
  takeQuota(platform: Platform): Promise<QuotaStanding>;
  /** Takes a counted call back, for an answer that was the service's fault. */
  giveBack(platform: Platform, counted: QuotaStanding): Promise<void>;
  /** Where the quota stands, without counting. */
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

  function standing(platform: Platform, calls: number, allowed: boolean): QuotaStanding {
    const { monthlyQuota: limit } = platform;
    const nowMs = clock.nowMs();
    const { name, endsAtMs, lengthS } = calendar.month(nowMs);
    return {
      allowed,
      month: name,
      monthS: lengthS,
      limit,
      remaining: limit === undefined ? Number.POSITIVE_INFINITY : Math.max(0, limit - calls),
      resetS: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)),
    };
  }

  const currentMonth = () => calendar.month(clock.nowMs()).name;

  return {
    credentials: (sent) => {
      const credentials = readCredentials(sent);
      checkTimestamp(credentials.timestamp, clock.nowMs());
      return credentials;
    },
    identify: async ({ apiKey, timestamp, nonce, signature: sent }, { method, target, body }) => {
      const nowS = Math.floor(clock.nowMs() / 1000);
      const found = await store.findKey(apiKey);
      const key = found !== undefined && isCurrent(found, nowS) ? found : undefined;
      const secret = key === undefined ? nobodysSecret : secretOf(key);
      const expected = signature({ method, target, body, timestamp, nonce }, secret);
      const matches = timingSafeEqual(expected, Buffer.from(sent, 'hex'));
      if (key === undefined || !matches) {
        throw new Refusal(
          'SIGNATURE_INVALID',
          'The API key is not known or the signature does not match the request.',
        );
      }
      if (key.status === 'SUSPENDED')
        throw new Refusal('KEY_SUSPENDED', 'The API key is suspended; ask the operator.');
      if (!(await store.claimNonce({ keyId: key.id, nonce, nowS }))) {
        throw new Refusal(
          'NONCE_REUSED',
          'The nonce was used before; every request, a retry too, needs a new one.',
        );
      }
      const { callerId, caller, tier, monthlyQuota } = key;
      return { kind: 'platform', callerId, caller, tier, monthlyQuota: monthlyQuota ?? undefined };
    },
    takeRate: ({ callerId, tier }) => rateLimit.take(callerId, tiers[tier].callsPerSecond),
    takeQuota: async (platform) => {
      const calls = await store.countCall(platform.callerId, currentMonth(), platform.monthlyQuota);
      return standing(platform, calls ?? Number.MAX_SAFE_INTEGER, calls !== undefined);
    },
    giveBack: async ({ callerId }, { month }) => store.giveBackCall(callerId, month),
    quota: async (platform) =>
      standing(platform, await store.callsIn(platform.callerId, currentMonth()), true),
  };
}

/** Whether a key is not revoked at `nowS`, Unix seconds: neither by name nor by the end of its rotation. */
export function isCurrent({ status, expiresAtS }: StoredKey, nowS: number): boolean {
  return status !== 'REVOKED' && (expiresAtS === null || nowS < expiresAtS);
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
