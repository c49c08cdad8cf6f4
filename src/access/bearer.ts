import { Refusal } from '../domain/reason.ts';
import type { AdmissionStore } from '../store/store.ts';
import { tokenHash } from './mint.ts';
import type { Service } from './principal.ts';

const bearer = /^Bearer (it_[\x21-\x7e]{1,252})$/i;

/** Identifies an internal system by the value of its Authorization header. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID. */
export type BearerCheck = (authorization: string | null) => Promise<Service>;

/** Checks tokens against the store, on every call, so that a revoked one is refused at once. */
export function createBearerCheck(store: AdmissionStore): BearerCheck {
  return async (authorization) => {
    if (authorization === null || authorization === '') {
      throw new Refusal('AUTH_HEADER_MISSING', 'The header Authorization is required: Bearer it_….');
    }
    const token = bearer.exec(authorization)?.[1];
    const found = token === undefined ? undefined : await store.findToken(tokenHash(token));
    if (found === undefined) {
      throw new Refusal(
        'AUTH_HEADER_INVALID',
        'The header Authorization must be Bearer and a token of this service that is not revoked.',
      );
    }
    return { kind: 'service', callerId: found.callerId, caller: found.caller, operator: found.operator };
  };
}
