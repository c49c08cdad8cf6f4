import type { Actor } from '../domain/audit-entry.ts';
import type { Tier } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { platformScopes, type Scope } from '../domain/token.ts';
import type { CallerRef } from '../store/filing-commands.ts';

/** The platform or internal system that a call is made for. */
export type Principal = PlatformPrincipal | ServicePrincipal;

/** An external platform, authenticated by a signature. */
export interface PlatformPrincipal extends CallerRef {
  readonly kind: 'platform';
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  /** Filing numbers that it may use in a year; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/**
 * An internal system, authenticated by a bearer token. If the token is a platform's, `callerId` and `caller` are the
 * platform's. There is no rate and no quota, but the platform's cap on filings applies.
 */
export interface ServicePrincipal extends CallerRef {
  readonly kind: 'service';
  /** Public id of the token. */
  readonly tokenId: string;
  readonly scopes: readonly Scope[];
  readonly isPlatform: boolean;
  /** Filing numbers that the platform may use in a year; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** The caller whose filings and escrows a principal sees: a platform its own, an internal system all (undefined). */
export function ownerScope(principal: Principal): number | undefined {
  return principal.kind === 'platform' || principal.isPlatform ? principal.callerId : undefined;
}

/** The scopes of a principal. */
export function scopesOf(principal: Principal): readonly Scope[] {
  return principal.kind === 'platform' ? platformScopes : principal.scopes;
}

/** The principal of a call, as the store refers to callers. */
export function callerOf({ principal: { callerId, caller } }: { readonly principal: Principal }): CallerRef {
  return { callerId, caller };
}

/** The platform or the operator that makes a call, for the audit log. An empty `reason` means none. */
export function actorOf(
  { principal }: { readonly principal: Principal },
  clock: Pick<Clock, 'nowMs'>,
  reason = '',
): Actor {
  const { kind, caller } = principal;
  const actor = kind === 'platform' ? `platform ${caller}` : `token ${principal.tokenId} (${caller})`;
  return { actor, atS: Math.floor(clock.nowMs() / 1000), reason: reason || undefined };
}
