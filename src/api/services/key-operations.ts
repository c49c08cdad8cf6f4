import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AdminService,
  type CreateKeyRequest,
  Key_Status,
  Key_Tier,
  type KeySchema,
  Platform_Status,
} from '../../../gen/artseal/v1/admin_pb.ts';
import { checkReason, checkReasoned, type Reasoned } from '../../domain/audit-entry.ts';
import {
  type Agreement,
  checkAgreement,
  type KeyStatus,
  overlapS,
  statusAt,
  type Tier,
} from '../../domain/caller.ts';
import { checkRange } from '../../domain/violation.ts';
import { createIssuance, type IssuedKey } from '../../keys/issuance.ts';
import type { StoredKey } from '../../store/caller-commands.ts';
import { actorOf, type Call, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { wordOf } from './enum-words.ts';
import { numberOf } from './event-service.ts';
import { listing } from './paging.ts';

/** The operations of AdminService for the API keys of platforms. */
export function createKeyOperations(
  dependencies: ServiceDependencies,
): Pick<
  Operations<typeof AdminService>,
  'createKey' | 'listKeys' | 'rotateKey' | 'suspendKey' | 'resumeKey' | 'revokeKey'
> {
  const { clock, paging, timestamp } = dependencies;
  const issuanceOf = ({ execute }: Call) => createIssuance({ ...dependencies, execute });
  const shown = (key: StoredKey) => keyMessage(key, statusAt(key, clock.nowMs() / 1000), timestamp);
  const issued = ({ key, apiSecret }: IssuedKey) => ({ key: shown(key), apiSecret });
  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);

  const settingKey = (status: KeyStatus) => ({
    check: checkReasoned,
    run: async (request: Reasoned & { readonly keyId: string }, call: Call) => {
      const [by, { keyId }] = [byOf(call, request), request];
      return { key: shown(await call.execute({ kind: 'SetKeyStatus', by, keyId, status })) };
    },
  });

  return {
    createKey: {
      check: (request) => [...checkAgreement(toAgreement(request)), ...checkReasoned(request)],
      run: async (request, call) =>
        issued(await issuanceOf(call).issueKey(toAgreement(request), byOf(call, request))),
    },
    listKeys: listing(paging, {
      find: (_, page, { execute }) => execute({ kind: 'ListKeys', page }),
      respond: ({ items }) => ({ keys: items.map(shown) }),
    }),
    rotateKey: {
      check: ({ overlapSeconds = overlapS.default, reason }) => [
        ...checkRange('overlapSeconds', overlapSeconds, overlapS),
        ...checkReason(reason),
      ],
      run: async ({ keyId, overlapSeconds = overlapS.default, reason }, call) =>
        issued(await issuanceOf(call).rotateKey(keyId, overlapSeconds, byOf(call, { reason }))),
    },
    suspendKey: settingKey('SUSPENDED'),
    resumeKey: settingKey('ACTIVE'),
    revokeKey: settingKey('REVOKED'),
  };
}

function toAgreement({ name, tier, monthlyQuota, unlimited, filingCap }: CreateKeyRequest): Agreement {
  const [quota, cap] = [numberOf(monthlyQuota), numberOf(filingCap)];
  return { name, tier: tierOf(tier), monthlyQuota: quota, unlimited, filingCap: cap };
}

const tierNames: readonly Tier[] = ['TRIAL', 'STANDARD', 'ENTERPRISE'];

/** The tier of a number; undefined if there is none. */
export const tierOf = (value: Key_Tier) => wordOf(tierNames, Key_Tier, value);

function keyMessage(
  key: StoredKey,
  status: KeyStatus,
  timestamp: ServiceDependencies['timestamp'],
): MessageInitShape<typeof KeySchema> {
  const { keyId, apiKey, caller, tier, monthlyQuota, createdAtS, expiresAtS, platformStatus } = key;
  return {
    keyId,
    apiKey,
    caller,
    tier: Key_Tier[tier],
    ...quotaField(monthlyQuota),
    status: Key_Status[status],
    createdAt: timestamp(createdAtS * 1_000),
    expiresAt: expiresAtS === null ? '' : timestamp(expiresAtS * 1_000),
    platformStatus: Platform_Status[platformStatus],
  };
}

/** The field of a monthly quota; absent for unlimited. */
export function quotaField(quota: number | null): { monthlyQuota?: bigint } {
  return quota === null ? {} : { monthlyQuota: BigInt(quota) };
}
