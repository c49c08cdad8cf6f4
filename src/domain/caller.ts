import { filingSequenceMax } from './filing.ts';
import type { ApiError } from './reason.ts';
import { checkText } from './text.ts';
import { checkRange, fieldError, rejectViolations, type Violation } from './violation.ts';

/** Rate and quota classes of platforms. */
export type Tier = 'TRIAL' | 'STANDARD' | 'ENTERPRISE';

/** The limits of each tier. The quota of ENTERPRISE is agreed with each platform. */
export const tiers = {
  TRIAL: { callsPerSecond: 10, monthlyQuota: 1_000 },
  STANDARD: { callsPerSecond: 50, monthlyQuota: 10_000 },
  ENTERPRISE: { callsPerSecond: 200, monthlyQuota: undefined },
} as const satisfies Record<Tier, { callsPerSecond: number; monthlyQuota: number | undefined }>;

/** Whether calls signed with a key are accepted. */
export type KeyStatus = 'ACTIVE' | 'SUSPENDED' | 'REVOKED';

/** The status of a key at `nowS`, Unix seconds. A rotated key is revoked at its end without a write. */
export function statusAt(key: { status: KeyStatus; expiresAtS: number | null }, nowS: number): KeyStatus {
  return key.expiresAtS !== null && nowS >= key.expiresAtS ? 'REVOKED' : key.status;
}

/** Throws VALIDATION_FAILED for a revoked key, which can be neither changed nor rotated. */
export function rejectRevoked(status: KeyStatus): void {
  if (status === 'REVOKED')
    throw fieldError('VALIDATION_FAILED', 'keyId', 'names a key that is revoked, which is final');
}

/**
 * Rotates a key at `nowS`: it ends at `endsAtS`, or at its earlier end. All are Unix seconds. If that is now, it is revoked, so that an
 * instance whose clock is late rejects it too. The new key has the same status, so a suspended platform stays suspended. Throws
 * VALIDATION_FAILED for a revoked key.
 */
export function rotate(old: { status: KeyStatus; expiresAtS: number | null }, nowS: number, endsAtS: number) {
  const status = statusAt(old, nowS);
  rejectRevoked(status);
  const expiresAtS = Math.min(endsAtS, old.expiresAtS ?? endsAtS);
  const ended: KeyStatus = expiresAtS <= nowS ? 'REVOKED' : status;
  return { status, old: { status: ended, expiresAtS } };
}

/** Whether calls of a platform are accepted. If not, none of its keys is, whatever their status. */
export type PlatformStatus = 'ACTIVE' | 'SUSPENDED';

/** The kind of deployment; credentials and the database carry it. */
export type Environment = 'sandbox' | 'production';

/** How long a rotated key works on, in seconds. */
export const overlapS = { default: 86_400, min: 0, max: 2_592_000 } as const;

/** The limits that the operator agreed with a platform. */
export interface AgreedLimits {
  readonly tier: Tier | undefined;
  /** Calls a month. */
  readonly monthlyQuota: number | undefined;
  readonly unlimited: boolean;
  /** Filing numbers of a year that the platform may use; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** The agreement of the operator with a platform. */
export interface Agreement extends AgreedLimits {
  readonly name: string;
}

/** A change of an agreement. Missing members stay as they are. */
export interface AgreementChange extends Omit<AgreedLimits, 'tier'> {
  /** The name of a tier, which is checked. */
  readonly tier: string | undefined;
  /** Whether the cap on filings is removed. */
  readonly noFilingCap?: boolean;
}

/** Checks the name of a platform or of an internal system: 1 to 128 code points. */
export function checkCallerName(name: string): Violation[] {
  return checkText('name', name, { min: 1, max: 128 });
}

/** The error of a name that no platform has. */
export const platformNotFound = (): ApiError => fieldError('NOT_FOUND', 'caller', 'names no platform.');

/** The error of a name that neither a platform nor an internal system has. */
export const callerNotFound = (): ApiError =>
  fieldError('NOT_FOUND', 'caller', 'names no platform and no internal system.');

/** The rules of a quota. The command line has texts of its own, since `unlimited` is a value of its option. */
export const quotaRules = {
  missing: 'is required for ENTERPRISE: a number or unlimited',
  outOfBounds: `must be an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
} as const;

/** Checks an agreement. */
export function checkAgreement({ name, ...limits }: Agreement): Violation[] {
  return [...checkCallerName(name), ...checkLimits(limits)];
}

function checkLimits({ tier, monthlyQuota, unlimited, filingCap = 1 }: AgreedLimits): Violation[] {
  const violations: Violation[] = [];
  const broken = (field: string, rule: string) => violations.push({ field, rule });
  if (tier === undefined) broken('tier', `must be one of ${Object.keys(tiers).join(', ')}`);
  const stated = monthlyQuota !== undefined || unlimited;
  if (tier === 'ENTERPRISE' && !stated) broken('monthlyQuota', quotaRules.missing);
  if (tier !== undefined && tier !== 'ENTERPRISE' && stated)
    broken('monthlyQuota', `is fixed by the tier ${tier}`);
  if (monthlyQuota !== undefined && unlimited)
    broken('monthlyQuota', 'cannot be both a number and unlimited');
  if (monthlyQuota !== undefined && !(Number.isSafeInteger(monthlyQuota) && monthlyQuota >= 1)) {
    broken('monthlyQuota', quotaRules.outOfBounds);
  }
  return [...violations, ...checkRange('filingCap', filingCap, { min: 1, max: filingSequenceMax })];
}

/** The monthly quota of a checked agreement; undefined is unlimited. */
export function agreedQuota({ tier, monthlyQuota }: AgreedLimits): number | undefined {
  return tier === undefined || tier === 'ENTERPRISE' ? monthlyQuota : tiers[tier].monthlyQuota;
}

/** The tier of that name; undefined if there is none. */
function tierNamed(name: string): Tier | undefined {
  return Object.hasOwn(tiers, name) ? (name as Tier) : undefined;
}

/** The limits of a platform. */
export interface PlatformLimits {
  readonly tier: Tier;
  /** Calls a month; null is unlimited. */
  readonly monthlyQuota: number | null;
  /** Filing numbers of a year; null for no cap. */
  readonly filingCap: number | null;
}

/**
 * Returns the limits after a change of the agreement, which the rules of a new agreement apply to. A quota is kept only with its
 * tier. Throws VALIDATION_FAILED.
 */
export function changeAgreement(agreed: PlatformLimits, change: AgreementChange): PlatformLimits {
  const limits = { ...changedLimits(agreed, change), filingCap: changedCap(agreed, change) };
  const { tier, filingCap = null } = limits;
  rejectViolations(checkLimits(limits));
  if (tier === undefined) throw new Error('A checked agreement has a tier.');
  return { tier, monthlyQuota: agreedQuota(limits) ?? null, filingCap };
}

function changedCap(agreed: PlatformLimits, { filingCap, noFilingCap = false }: AgreementChange) {
  if (filingCap !== undefined && noFilingCap)
    throw fieldError('VALIDATION_FAILED', 'filingCap', 'cannot be both a number and none');
  return noFilingCap ? undefined : (filingCap ?? agreed.filingCap ?? undefined);
}

function changedLimits(agreed: PlatformLimits, change: AgreementChange): AgreedLimits {
  const { monthlyQuota, unlimited, filingCap, noFilingCap = false } = change;
  const isQuotaGiven = monthlyQuota !== undefined || unlimited;
  if (change.tier === undefined && !isQuotaGiven && filingCap === undefined && !noFilingCap)
    throw fieldError(
      'VALIDATION_FAILED',
      'tier',
      'is required if neither monthlyQuota nor filingCap changes',
    );
  const tier = change.tier === undefined ? agreed.tier : tierNamed(change.tier);
  const keepsQuota = !isQuotaGiven && tier === 'ENTERPRISE' && agreed.tier === tier;
  if (!keepsQuota) return { tier, monthlyQuota, unlimited };
  return { tier, monthlyQuota: agreed.monthlyQuota ?? undefined, unlimited: agreed.monthlyQuota === null };
}

/** Calls left of a monthly quota after `calls`; null if it is unlimited. */
export function callsLeft(monthlyQuota: number | null, calls: number): number | null {
  return monthlyQuota === null ? null : Math.max(0, monthlyQuota - calls);
}
