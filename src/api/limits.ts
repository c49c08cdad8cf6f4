import type { Calendar } from '../domain/calendar.ts';
import { ApiError } from '../domain/reason.ts';
import type { QuotaClaim } from '../store/store.ts';
import type { PlatformPrincipal } from './principal.ts';
import type { RateDecision } from './rate-limit.ts';

/** The monthly quota of a caller and what is left of it. */
export interface QuotaStatus {
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

/** The rate and quota of a caller after a call. */
export interface Limits {
  readonly rate: RateDecision;
  readonly quota: QuotaStatus;
}

/** The quota of a platform in the month of `nowMs`, after `calls` counted calls. */
export function quotaStatus(
  { monthlyQuota: limit }: PlatformPrincipal,
  calendar: Calendar,
  nowMs: number,
  calls: number,
): QuotaStatus {
  const { name: month, endsAtMs, lengthS: monthS } = calendar.month(nowMs);
  return {
    month,
    monthS,
    limit,
    remaining: limit === undefined ? Number.POSITIVE_INFINITY : Math.max(0, limit - calls),
    resetS: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)),
  };
}

/** A claim that reads the counted calls of a platform in the month of `nowMs`. It counts none itself. */
export function quotaClaim(
  { callerId, monthlyQuota: limit }: PlatformPrincipal,
  calendar: Calendar,
  nowMs: number,
): QuotaClaim {
  return { callerId, month: calendar.month(nowMs).name, limit, take: false };
}

/** The error for a call above the rate. */
export function rateLimited({ callsPerSecond, retryAfterS }: RateDecision): ApiError {
  return new ApiError('RATE_LIMITED', `At most ${callsPerSecond} calls a second.`, { retryAfterS });
}

/** The error for a call above the monthly quota. */
export function quotaExceeded({ limit, month, resetS }: QuotaStatus): ApiError {
  return new ApiError('QUOTA_EXCEEDED', `All ${limit} calls of ${month} are used.`, { retryAfterS: resetS });
}
