import { checkCallerName } from './caller.ts';
import type { Violation } from './violation.ts';

/**
 * Scopes of a token, in the order in which they are listed. `read`: read. `file`: file artworks. `escrow`: open, release and
 * refund orders. `webhook`: manage webhooks. `link`: create and revoke public links to evidence. `operate`: everything that
 * operators do, including reading it.
 */
export const scopes = ['read', 'file', 'escrow', 'webhook', 'link', 'operate'] as const;

/** What a token may do. */
export type Scope = (typeof scopes)[number];

/** The scopes of signed calls: all except `operate`. */
export const platformScopes: readonly Scope[] = ['read', 'file', 'escrow', 'webhook', 'link'];

/** The scope that a call needs: that of its service for writes and for operator services, otherwise `read`. */
export function scopeNeeded(ofService: Scope, isWriting: boolean): Scope {
  return isWriting || ofService === 'operate' ? ofService : 'read';
}

/**
 * The tokens of the console, by the beginning of their names; the operator's name follows. That of a link is exchanged for that of a
 * session, once. Seconds are how long each is valid.
 */
export const consoleTokens = {
  link: { prefix: 'console-link:', validS: 600 },
  session: { prefix: 'console:', validS: 28_800 },
} as const;

/** The terms of a new token. */
export interface TokenTerms {
  /** The name of the internal system. */
  readonly name: string;
  /** Words that may be scopes, in any order. */
  readonly scopes: readonly string[];
  /** When it ends, Unix seconds; undefined for never. */
  readonly expiresAtS: number | undefined;
  /** Name of the platform that it acts for; undefined if it acts for the system itself. */
  readonly platform: string | undefined;
}

/** Checks terms at `nowS`, Unix seconds. */
export function checkTokenTerms(terms: TokenTerms, nowS: number): Violation[] {
  const violations = checkCallerName(terms.name);
  const broken = (field: string, rule: string) => violations.push({ field, rule });
  if (terms.scopes.some((word) => !isScope(word))) broken('scopes', `must be of ${scopes.join(', ')}`);
  else if (terms.platform !== undefined && terms.scopes.includes('operate'))
    broken('scopes', 'cannot include operate if the token acts for a platform');
  if (terms.expiresAtS !== undefined && terms.expiresAtS <= nowS)
    broken('expiresAt', 'must be in the future');
  return violations;
}

/** The scopes among some words, each once, in the order of `scopes`. */
export function scopesIn(words: readonly string[]): Scope[] {
  return scopes.filter((scope) => words.includes(scope));
}

/** Whether a word is a scope. */
export const isScope = (word: string): word is Scope => (scopes as readonly string[]).includes(word);

/** Whether a token still works. */
export type TokenStatus = 'VALID' | 'EXPIRED' | 'REVOKED';

/** A token's status at `nowS`, Unix seconds. A token expires without a write. */
export function tokenStatusAt(
  { revokedAtS, expiresAtS }: { readonly revokedAtS: number | null; readonly expiresAtS: number | null },
  nowS: number,
): TokenStatus {
  if (revokedAtS !== null) return 'REVOKED';
  return expiresAtS !== null && nowS >= expiresAtS ? 'EXPIRED' : 'VALID';
}
