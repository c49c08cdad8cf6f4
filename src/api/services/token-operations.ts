import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AdminService,
  type CreateTokenRequest,
  Platform_Status,
  Token_Scope,
  Token_Status,
  type TokenSchema,
} from '../../../gen/artseal/v1/admin_pb.ts';
import { checkReason, checkReasoned } from '../../domain/audit-entry.ts';
import { instantOf } from '../../domain/calendar.ts';
import {
  checkTokenTerms,
  type Scope,
  scopes,
  type TokenStatus,
  type TokenTerms,
  tokenStatusAt,
} from '../../domain/token.ts';
import { createIssuance } from '../../keys/issuance.ts';
import type { StoredToken } from '../../store/caller-commands.ts';
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { listing } from './paging.ts';

/** The operations of AdminService on the tokens of internal systems. */
export function createTokenOperations(
  dependencies: ServiceDependencies,
): Pick<Operations<typeof AdminService>, 'createToken' | 'listTokens' | 'revokeToken'> {
  const { clock, paging, timestamp } = dependencies;
  const nowS = () => Math.floor(clock.nowMs() / 1_000);
  const shown = (token: StoredToken) => tokenMessage(token, tokenStatusAt(token, nowS()), timestamp);

  return {
    createToken: {
      check: (request) => [
        ...checkTokenTerms(termsOf(request), nowS()),
        ...checkExpiry(request.expiresAt),
        ...checkReason(request.reason),
      ],
      run: async (request, call) => {
        const issuance = createIssuance({ ...dependencies, execute: call.execute });
        const by = actorOf(call, clock, request.reason);
        const { stored, token: text } = await issuance.issueToken(termsOf(request), by);
        return { token: shown(stored), text };
      },
    },
    listTokens: listing(paging, {
      find: (_, page, { execute }) => execute({ kind: 'ListTokens', page }),
      respond: ({ items }) => ({ tokens: items.map(shown) }),
    }),
    revokeToken: {
      check: checkReasoned,
      run: async ({ tokenId, reason }, call) => {
        const by = actorOf(call, clock, reason);
        return { token: shown(await call.execute({ kind: 'RevokeToken', by, tokenId })) };
      },
    },
  };
}

/** An unknown scope stays, so that the rules of tokens reject it. */
function termsOf({ name, scopes: numbers, platform, expiresAt }: CreateTokenRequest): TokenTerms {
  const expiresAtMs = instantOf(expiresAt);
  return {
    name,
    scopes: numbers.map(wordOf),
    platform: platform || undefined,
    expiresAtS: expiresAtMs === undefined ? undefined : Math.floor(expiresAtMs / 1_000),
  };
}

function checkExpiry(expiresAt: string) {
  if (expiresAt === '' || instantOf(expiresAt) !== undefined) return [];
  return [{ field: 'expiresAt', rule: 'must be RFC 3339, as in 2027-01-01T09:00:00+08:00, or empty' }];
}

const scopeNumber = (scope: Scope) => Token_Scope[scope.toUpperCase() as Uppercase<Scope>];

const wordOf = (value: Token_Scope): string =>
  scopes.find((scope) => scopeNumber(scope) === value) ?? String(value);

function tokenMessage(
  { tokenId, caller, scopes: granted, platform, createdAtS, expiresAtS, revokedAtS }: StoredToken,
  status: TokenStatus,
  timestamp: ServiceDependencies['timestamp'],
): MessageInitShape<typeof TokenSchema> {
  const at = (atS: number | null) => (atS === null ? '' : timestamp(atS * 1_000));
  return {
    tokenId,
    name: caller,
    scopes: granted.map(scopeNumber),
    platform: platform?.caller ?? '',
    status: Token_Status[status],
    createdAt: at(createdAtS),
    expiresAt: at(expiresAtS),
    revokedAt: at(revokedAtS),
    platformStatus: platform === null ? Platform_Status.STATUS_UNSPECIFIED : Platform_Status[platform.status],
  };
}
