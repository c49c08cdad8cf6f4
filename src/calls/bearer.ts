import { Refusal } from '../domain/reason.ts';
import { tokenHash } from '../keys/mint.ts';
import type { Store } from '../store/store.ts';
import type { ServicePrincipal } from './principal.ts';

const bearer = /^Bearer (it_[\x21-\x7e]{1,252})$/i;

/** Identifies an internal system by the value of its Authorization header. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID. */
export type BearerCheck = (authorization: string | null) => ServicePrincipal;

/** Checks tokens against those that the store has in memory. */
export function createBearerCheck(store: Pick<Store, 'findToken'>): BearerCheck {
  return (authorization) => {
    if (authorization === null || authorization === '') {
      throw new Refusal('AUTH_HEADER_MISSING', 'The header Authorization is required: Bearer it_….');
    }
    const token = bearer.exec(authorization)?.[1];
    const found = token === undefined ? undefined : store.findToken(tokenHash(token));
    if (found === undefined) {
      throw new Refusal(
        'AUTH_HEADER_INVALID',
        'The header Authorization must be Bearer and a token of this service that is not revoked.',
      );
    }
    const { tokenId, callerId, caller, operator } = found;
    return { kind: 'service', tokenId, callerId, caller, operator };
  };
}
