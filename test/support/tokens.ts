import type { ServicePrincipal } from '../../src/api/operation.ts';
import { type Scope, scopes, type TokenTerms } from '../../src/domain/token.ts';

/** The scopes of an internal system that does business. */
export const businessScopes: readonly Scope[] = ['read', 'file', 'escrow'];

/** Terms of a token for an internal system of that name, which does business unless it is said otherwise. */
export function tokenTerms(name: string, over: Partial<TokenTerms> = {}): TokenTerms {
  return { name, scopes: businessScopes, expiresAtS: undefined, platform: undefined, ...over };
}

/** Terms of an operator's token. */
export const operatorTerms = (name: string): TokenTerms => tokenTerms(name, { scopes });

/** An internal system that does business, as its token identifies it. */
export const ledger: ServicePrincipal = {
  kind: 'service',
  tokenId: 'tok_1',
  scopes: businessScopes,
  callerId: 2,
  caller: 'ledger',
  isPlatform: false,
};
