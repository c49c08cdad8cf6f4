import type { Actor } from '../domain/audit-entry.ts';
import type { Tier } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import { platformScopes, type Scope } from '../domain/token.ts';
import type { CallerRef } from '../store/filing-commands.ts';

/** Who a call is made for. */
export type Principal = PlatformPrincipal | TypedPrincipal;

/** Who makes typed calls. */
export type TypedPrincipal = ServicePrincipal | LocalPrincipal;

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

/** An operator on this machine, over the admin socket or in the process of a command. */
export interface LocalPrincipal extends CallerRef {
  readonly kind: 'local';
  readonly scopes: readonly Scope[];
  readonly isPlatform: false;
  readonly filingCap?: undefined;
}

/** The operator who says to be this user. Only the mode of the admin socket proves it. */
export function localPrincipal(user: string): LocalPrincipal {
  const scopes = ['read', 'webhook', 'link', 'operate'] as const;
  return { kind: 'local', callerId: noCaller, caller: `local:${user}`, scopes, isPlatform: false };
}

/** The caller id of local operators, who own nothing. Ids of callers are positive. */
const noCaller = 0;

/** The caller whose filings and escrows a principal sees: a platform its own, an internal system all (undefined). */
export function ownerScope(principal: Principal): number | undefined {
  return principal.kind === 'platform' || principal.isPlatform ? principal.callerId : undefined;
}

/** The scopes of a principal. */
export function scopesOf(principal: Principal): readonly Scope[] {
  return principal.kind === 'platform' ? platformScopes : principal.scopes;
}

/** The principal of a call as the owner of what the call makes. Throws PERMISSION_DENIED for a local operator. */
export function callerOf({ principal }: { readonly principal: Principal }): CallerRef {
  const { kind, callerId, caller } = principal;
  if (kind !== 'local') return { callerId, caller };
  throw new ApiError(
    'PERMISSION_DENIED',
    'A command without a token owns nothing: make this call with a token.',
  );
}

function actorName(principal: Principal): string {
  const { kind, caller } = principal;
  if (kind === 'local') return caller;
  return kind === 'platform' ? `platform ${caller}` : `token ${principal.tokenId} (${caller})`;
}

/** The platform or the operator that makes a call, for the audit log. An empty `reason` means none. */
export function actorOf(
  { principal }: { readonly principal: Principal },
  clock: Pick<Clock, 'nowMs'>,
  reason = '',
): Actor {
  return { actor: actorName(principal), atS: Math.floor(clock.nowMs() / 1000), reason: reason || undefined };
}
