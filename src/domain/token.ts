import { checkCallerName } from './caller.ts';
import type { Violation } from './violation.ts';

/**
 * What a token may be good for, in the order in which they are told: to read; to file artworks; to open, release and
 * refund orders; to have events sent to webhooks; to make and revoke links to evidence, which anybody may open; to govern keys,
 * platforms and what else operators govern, reading included.
 */
export const scopes = ['read', 'file', 'escrow', 'webhook', 'link', 'operate'] as const;

/** One of them. */
export type Scope = (typeof scopes)[number];

/** What those who sign their calls may do: all but govern. */
export const platformScopes: readonly Scope[] = ['read', 'file', 'escrow', 'webhook', 'link'];

/** The scope that a call needs, by that of its service for calls that write: reading needs its own, but of what operators govern. */
export function scopeNeeded(ofService: Scope, isWriting: boolean): Scope {
  return isWriting || ofService === 'operate' ? ofService : 'read';
}

/** What an operator wants a token to be. */
export interface TokenTerms {
  /** Of the internal system. */
  readonly name: string;
  /** Words that may be scopes, in any order. */
  readonly scopes: readonly string[];
  /** When it ends, Unix seconds; undefined for never. */
  readonly expiresAtS: number | undefined;
  /** Name of the platform that it acts for; undefined if it acts for the system itself. */
  readonly platform: string | undefined;
}

/** The terms that break their rules, at `nowS`, Unix seconds. */
export function checkTokenTerms(terms: TokenTerms, nowS: number): Violation[] {
  const violations = checkCallerName(terms.name);
  const broken = (field: string, rule: string) => violations.push({ field, rule });
  if (terms.scopes.some((word) => !isScope(word))) broken('scopes', `must be of ${scopes.join(', ')}`);
  else if (terms.platform !== undefined && terms.scopes.includes('operate'))
    broken('scopes', 'cannot have operate where the token acts for a platform');
  if (terms.expiresAtS !== undefined && terms.expiresAtS <= nowS) broken('expires', 'must be in the future');
  return violations;
}

/** The scopes among these words, each once and in their order. */
export function scopesIn(words: readonly string[]): Scope[] {
  return scopes.filter((scope) => words.includes(scope));
}

/** Whether a word is a scope. */
export const isScope = (word: string): word is Scope => (scopes as readonly string[]).includes(word);

/** Whether a token is good, or how it ended. */
export type TokenStatus = 'VALID' | 'EXPIRED' | 'REVOKED';

/** A token's status at `nowS`, Unix seconds: its end comes without anybody writing it down. */
export function tokenStatusAt(
  { revokedAtS, expiresAtS }: { readonly revokedAtS: number | null; readonly expiresAtS: number | null },
  nowS: number,
): TokenStatus {
  if (revokedAtS !== null) return 'REVOKED';
  return expiresAtS !== null && nowS >= expiresAtS ? 'EXPIRED' : 'VALID';
}
