import type { Actor } from '../domain/audit-entry.ts';
import type { Tier } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { platformScopes, type Scope } from '../domain/token.ts';
import type { CallerRef } from '../store/filing-commands.ts';

/** Whoever a call is made for. */
export type Principal = PlatformPrincipal | ServicePrincipal;

/** An external platform, identified by a signature. */
export interface PlatformPrincipal extends CallerRef {
  readonly kind: 'platform';
  readonly tier: Tier;
  /** Calls a month; undefined for unlimited. */
  readonly monthlyQuota: number | undefined;
  /** Filing numbers of a year that it may use; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/**
 * An internal system, identified by a bearer token, or the platform that it acts for: `callerId` and `caller` are then
 * those of the platform. Neither has a rate or a quota; the platform's cap on filings holds.
 */
export interface ServicePrincipal extends CallerRef {
  readonly kind: 'service';
  /** Public handle of the token. */
  readonly tokenId: string;
  readonly scopes: readonly Scope[];
  readonly isPlatform: boolean;
  /** Filing numbers of a year that the platform may use; undefined for no cap. */
  readonly filingCap?: number | undefined;
}

/** Whose filings and escrows a principal sees: a platform its own, an internal system everybody's (undefined). */
export function ownerScope(principal: Principal): number | undefined {
  return principal.kind === 'platform' || principal.isPlatform ? principal.callerId : undefined;
}

/** What a principal may do. */
export function scopesOf(principal: Principal): readonly Scope[] {
  return principal.kind === 'platform' ? platformScopes : principal.scopes;
}

/** Whoever a call is made for, as the store refers to callers. */
export function callerOf({ principal: { callerId, caller } }: { readonly principal: Principal }): CallerRef {
  return { callerId, caller };
}

/** Who shares evidence, as the audit log names it: an operator's token, or a platform. */
export function sharerOf(call: { readonly principal: Principal }, clock: Pick<Clock, 'nowMs'>): Actor {
  const { principal } = call;
  if (principal.kind !== 'platform') return actorOf(call, clock, '');
  const atS = Math.floor(clock.nowMs() / 1000);
  return { actor: `platform ${principal.caller}`, atS, reason: undefined };
}

/**
 * Whoever a call is made for, as the log of acts names it; an empty `reason` is none. Throws an Error for a platform,
 * which does what operators do not answer for.
 */
export function actorOf(
  { principal }: { readonly principal: Principal },
  clock: Pick<Clock, 'nowMs'>,
  reason: string,
): Actor {
  if (principal.kind === 'platform') throw new Error(`${principal.caller} is no operator.`);
  const { tokenId, caller } = principal;
  const atS = Math.floor(clock.nowMs() / 1000);
  return { actor: `token ${tokenId} (${caller})`, atS, reason: reason || undefined };
}
