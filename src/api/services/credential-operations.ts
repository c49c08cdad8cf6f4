import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AdminService,
  type CreateKeyRequest,
  type CreateTokenRequest,
  Key_Status,
  Key_Tier,
  type KeySchema,
  Platform_Status,
  Token_Scope,
  Token_Status,
  type TokenSchema,
} from '../../../gen/artseal/v1/admin_pb.ts';
import type { Reasoned } from '../../domain/audit-entry.ts';
import { instantOf } from '../../domain/calendar.ts';
import {
  type Agreement,
  checkAgreement,
  type KeyStatus,
  overlapS,
  statusAt,
  type Tier,
  tiers,
} from '../../domain/caller.ts';
import { checkTokenTerms, type Scope, scopes, type TokenTerms, tokenStatusAt } from '../../domain/token.ts';
import { checkRange } from '../../domain/violation.ts';
import { createIssuance, type IssuedKey } from '../../keys/issuance.ts';
import type { StoredKey, StoredToken } from '../../store/caller-commands.ts';
import { actorOf, type Call, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { numberOf } from './event-service.ts';
import { listing } from './paging.ts';

/** The operations of AdminService for the API keys of platforms. */
export function createKeyOperations(dependencies: ServiceDependencies) {
  const { clock, nowS, paging, timestampS } = dependencies;
  const issuanceOf = ({ execute }: Call) => createIssuance({ ...dependencies, execute });
  const shown = (key: StoredKey): MessageInitShape<typeof KeySchema> => {
    const { keyId, apiKey, caller, tier, monthlyQuota, createdAtS, expiresAtS, platformStatus } = key;
    return {
      ...{ keyId, apiKey, caller, tier: Key_Tier[tier], ...quotaField(monthlyQuota) },
      status: Key_Status[statusAt(key, nowS())],
      createdAt: timestampS(createdAtS),
      expiresAt: timestampS(expiresAtS),
      platformStatus: Platform_Status[platformStatus],
    };
  };
  const issued = ({ key, apiSecret }: IssuedKey) => ({ key: shown(key), apiSecret });
  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);

  const settingKey = (status: KeyStatus) => ({
    run: async (request: Reasoned & { readonly keyId: string }, call: Call) => {
      const [by, { keyId }] = [byOf(call, request), request];
      return { key: shown(await call.execute({ kind: 'SetKeyStatus', by, keyId, status })) };
    },
  });

  return {
    createKey: {
      check: (request) => checkAgreement(toAgreement(request)),
      run: async (request, call) =>
        issued(await issuanceOf(call).issueKey(toAgreement(request), byOf(call, request))),
    },
    listKeys: listing(paging, {
      find: (request, page, { execute }) =>
        execute({ kind: 'ListKeys', platform: request.caller || undefined, page }),
      respond: ({ items }) => ({ keys: items.map(shown) }),
    }),
    rotateKey: {
      check: ({ overlapSeconds = overlapS.default }) =>
        checkRange('overlapSeconds', overlapSeconds, overlapS),
      run: async ({ keyId, overlapSeconds = overlapS.default, reason }, call) =>
        issued(await issuanceOf(call).rotateKey(keyId, overlapSeconds, byOf(call, { reason }))),
    },
    suspendKey: settingKey('SUSPENDED'),
    resumeKey: settingKey('ACTIVE'),
    revokeKey: settingKey('REVOKED'),
  } satisfies Partial<Operations<typeof AdminService>>;
}

/** The agreement that a request describes. */
export function toAgreement({
  name,
  tier,
  monthlyQuota,
  unlimited,
  filingCap,
}: Omit<CreateKeyRequest, '$typeName' | 'reason'>): Agreement {
  const [quota, cap] = [numberOf(monthlyQuota), numberOf(filingCap)];
  return { name, tier: tierOf(tier), monthlyQuota: quota, unlimited, filingCap: cap };
}

/** The tier of a number; undefined if there is none. */
export const tierOf = enumWords(Object.keys(tiers) as Tier[], Key_Tier).of;

/** The field of a monthly quota; absent for unlimited. */
export function quotaField(quota: number | null): { monthlyQuota?: bigint } {
  return quota === null ? {} : { monthlyQuota: BigInt(quota) };
}

/** The operations of AdminService on the tokens of internal systems. */
export function createTokenOperations(dependencies: ServiceDependencies) {
  const { clock, nowS, paging } = dependencies;
  const shown = (token: StoredToken) => tokenMessage(token, dependencies);

  return {
    createToken: {
      check: (request) => [...checkTokenTerms(termsOf(request), nowS()), ...checkExpiry(request.expiresAt)],
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
      run: async ({ tokenId, reason }, call) => {
        const by = actorOf(call, clock, reason);
        return { token: shown(await call.execute({ kind: 'RevokeToken', by, tokenId })) };
      },
    },
  } satisfies Partial<Operations<typeof AdminService>>;
}

/** The message of a token. */
export function tokenMessage(
  token: StoredToken,
  { nowS, timestampS }: Pick<ServiceDependencies, 'nowS' | 'timestampS'>,
): MessageInitShape<typeof TokenSchema> {
  const { tokenId, caller, platform, createdAtS, expiresAtS, revokedAtS } = token;
  return {
    tokenId,
    name: caller,
    scopes: token.scopes.map(scopeNumber),
    platform: platform?.caller ?? '',
    status: Token_Status[tokenStatusAt(token, nowS())],
    createdAt: timestampS(createdAtS),
    expiresAt: timestampS(expiresAtS),
    revokedAt: timestampS(revokedAtS),
    platformStatus: Platform_Status[platform?.status ?? 'STATUS_UNSPECIFIED'],
  };
}

/** An unknown scope stays, so that the rules of tokens reject it. */
function termsOf({ name, scopes: numbers, platform, expiresAt }: CreateTokenRequest): TokenTerms {
  const expiresAtMs = instantOf(expiresAt);
  return {
    name,
    scopes: numbers.map(scopeOf),
    platform: platform || undefined,
    expiresAtS: expiresAtMs === undefined ? undefined : Math.floor(expiresAtMs / 1_000),
  };
}

function checkExpiry(expiresAt: string) {
  if (expiresAt === '' || instantOf(expiresAt) !== undefined) return [];
  return [{ field: 'expiresAt', rule: 'must be RFC 3339, as in 2027-01-01T09:00:00+08:00, or empty' }];
}

/** The number of a scope in messages. */
export const scopeNumber = (scope: Scope) => Token_Scope[scope.toUpperCase() as Uppercase<Scope>];

const scopeOf = (value: Token_Scope): string =>
  scopes.find((scope) => scopeNumber(scope) === value) ?? String(value);
