import type { Clock } from '../domain/clock.ts';
import { ApiError } from '../domain/reason.ts';
import { tokenStatusAt } from '../domain/token.ts';
import { tokenHash } from '../keys/mint.ts';
import type { StoredToken } from '../store/caller-commands.ts';
import type { Store } from '../store/store.ts';
import { platformSuspended } from './authentication.ts';
import type { ServicePrincipal } from './principal.ts';

const bearer = /^Bearer (it_[\x21-\x7e]{1,252})$/i;

/**
 * Identifies an internal system by the value of its Authorization header. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID;
 * KEY_SUSPENDED for a token of a suspended platform.
 */
export type BearerCheck = (authorization: string | null) => ServicePrincipal;

/** Checks tokens against those that the store has in memory, and their expiry against the clock. */
export function createBearerCheck(store: Pick<Store, 'findToken'>, clock: Pick<Clock, 'nowMs'>): BearerCheck {
  function findValid(text: string): StoredToken | undefined {
    const found = store.findToken(tokenHash(text));
    return found && tokenStatusAt(found, clock.nowMs() / 1000) === 'VALID' ? found : undefined;
  }

  return (authorization) => {
    if (authorization === null || authorization === '') {
      throw new ApiError('AUTH_HEADER_MISSING', 'The header Authorization is required: Bearer it_….');
    }
    const token = bearer.exec(authorization)?.[1];
    const found = token === undefined ? undefined : findValid(token);
    if (found === undefined) {
      throw new ApiError(
        'AUTH_HEADER_INVALID',
        'The header Authorization must be Bearer and a token of this service that is neither revoked nor expired.',
      );
    }
    const { tokenId, scopes, platform } = found;
    if (platform?.status === 'SUSPENDED') throw platformSuspended();
    const { callerId, caller } = platform ?? found;
    const filingCap = platform?.filingCap ?? undefined;
    return { kind: 'service', tokenId, scopes, callerId, caller, isPlatform: platform !== null, filingCap };
  };
}
