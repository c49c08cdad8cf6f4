import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AdminService,
  Key_Status,
  Key_Tier,
  type KeySchema,
  Platform_Status,
  type PlatformSchema,
} from '../../gen/artseal/v1/admin_pb.ts';
import type { Issuance, IssuedKey } from '../access/issuance.ts';
import type { Calendar } from '../domain/calendar.ts';
import {
  type Agreement,
  checkAgreement,
  checkOverlap,
  overlapS,
  statusAt,
  type Tier,
} from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/reason.ts';
import type { AdmissionStore, CallerStore, KeyStatus, Platform, StoredKey } from '../store/store.ts';
import { type Implementation, implement, type Operations } from './operation.ts';
import type { Paging } from './paging.ts';

/** What the administration needs. */
export interface AdminDependencies {
  readonly issuance: Issuance;
  readonly callers: CallerStore;
  readonly admission: Pick<AdmissionStore, 'callsIn'>;
  readonly clock: Clock;
  readonly calendar: Calendar;
  readonly paging: Paging;
}

const month = /^\d{4}-(0[1-9]|1[0-2])$/;

/** AdminService, for operators. */
export function createAdminService(dependencies: AdminDependencies): Implementation {
  const { issuance, callers, admission, clock, calendar, paging } = dependencies;
  const shown = (key: StoredKey) => keyMessage(key, statusAt(key, clock.nowMs() / 1000));
  const issued = ({ key, apiSecret }: IssuedKey) => ({ key: shown(key), apiSecret });
  const operations: Operations<typeof AdminService> = {
    createKey: {
      allowed: 'operator',
      check: (request) => checkAgreement(toAgreement(request)),
      run: async (request) => issued(await issuance.issueKey(toAgreement(request))),
    },
    listKeys: {
      allowed: 'operator',
      check: (request, { principal }) => paging.check(request, principal),
      run: async (request, { principal }) => {
        const page = await callers.listKeys(paging.query(request, principal));
        return { keys: page.items.map(shown), nextPageToken: paging.token(page, request, principal) };
      },
    },
    rotateKey: {
      allowed: 'operator',
      check: ({ overlapSeconds = overlapS.default }) => checkOverlap(overlapSeconds),
      run: async ({ keyId, overlapSeconds = overlapS.default }) =>
        issued(await issuance.rotateKey(keyId, overlapSeconds)),
    },
    suspendKey: {
      allowed: 'operator',
      check: () => [],
      run: async ({ keyId }) => ({ key: shown(await callers.setKeyStatus(keyId, 'SUSPENDED')) }),
    },
    resumeKey: {
      allowed: 'operator',
      check: () => [],
      run: async ({ keyId }) => ({ key: shown(await callers.setKeyStatus(keyId, 'ACTIVE')) }),
    },
    revokeKey: {
      allowed: 'operator',
      check: () => [],
      run: async ({ keyId }) => ({ key: shown(await callers.setKeyStatus(keyId, 'REVOKED')) }),
    },
    suspendPlatform: {
      allowed: 'operator',
      check: () => [],
      run: async ({ caller }) => ({
        platform: platformMessage(await callers.setPlatformStatus(caller, 'SUSPENDED')),
      }),
    },
    resumePlatform: {
      allowed: 'operator',
      check: () => [],
      run: async ({ caller }) => ({
        platform: platformMessage(await callers.setPlatformStatus(caller, 'ACTIVE')),
      }),
    },
    getUsage: {
      allowed: 'operator',
      check: (request) =>
        request.month === '' || month.test(request.month)
          ? []
          : [{ field: 'month', rule: 'must be YYYY-MM' }],
      run: async (request) => {
        const platform = await callers.findPlatform(request.caller);
        if (platform === undefined) throw new Refusal('NOT_FOUND', 'caller names no platform.');
        const name = request.month || calendar.month(clock.nowMs()).name;
        const calls = BigInt(await admission.callsIn(platform.callerId, name));
        return { caller: platform.caller, month: name, calls, ...quotaField(platform.monthlyQuota) };
      },
    },
  };
  return implement(AdminService, operations);
}

function toAgreement(request: {
  readonly name: string;
  readonly tier: Key_Tier;
  readonly monthlyQuota?: bigint | undefined;
  readonly unlimited: boolean;
}): Agreement {
  const { name, monthlyQuota, unlimited } = request;
  const tier = tierNames.find((known) => Key_Tier[known] === request.tier);
  return {
    name,
    tier,
    monthlyQuota: monthlyQuota === undefined ? undefined : Number(monthlyQuota),
    unlimited,
  };
}

const tierNames: readonly Tier[] = ['TRIAL', 'STANDARD', 'ENTERPRISE'];

function keyMessage(key: StoredKey, status: KeyStatus): MessageInitShape<typeof KeySchema> {
  const { keyId, apiKey, caller, tier, monthlyQuota, createdAtS, expiresAtS, platformStatus } = key;
  return {
    keyId,
    apiKey,
    caller,
    tier: Key_Tier[tier],
    ...quotaField(monthlyQuota),
    status: Key_Status[status],
    createdAt: utc(createdAtS),
    expiresAt: expiresAtS === null ? '' : utc(expiresAtS),
    platformStatus: Platform_Status[platformStatus],
  };
}

function platformMessage(platform: Platform): MessageInitShape<typeof PlatformSchema> {
  const { caller, tier, monthlyQuota, status } = platform;
  return {
    caller,
    tier: Key_Tier[tier],
    ...quotaField(monthlyQuota),
    status: Platform_Status[status],
  };
}

function quotaField(quota: number | null): { monthlyQuota?: bigint } {
  return quota === null ? {} : { monthlyQuota: BigInt(quota) };
}

/** RFC 3339, whole seconds, UTC. */
function utc(atS: number): string {
  return new Date(atS * 1000).toISOString().replace('.000Z', '+00:00');
}
