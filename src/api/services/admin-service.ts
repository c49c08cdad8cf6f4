import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AdminService,
  type AuditEntrySchema,
  Key_Tier,
  type ListUsageResponse_UsageSchema,
  Platform_Status,
  type PlatformSchema,
  type UpdatePlatformRequest,
} from '../../../gen/artseal/v1/admin_pb.ts';
import { type AuditEntry, checkReasoned, type Reasoned } from '../../domain/audit-entry.ts';
import { checkMonth, checkSince, instantOf, yearOf } from '../../domain/calendar.ts';
import {
  type AgreementChange,
  callsLeft,
  type PlatformStatus,
  platformNotFound,
} from '../../domain/caller.ts';
import type { Platform, PlatformUsage } from '../../store/caller-commands.ts';
import type { Execute } from '../../store/store.ts';
import { actorOf, type Call, type Implementation, implement } from '../operation.ts';
import { createEventOperations } from './admin-events.ts';
import { createLinkOperations } from './admin-links.ts';
import { createWebhookOperations } from './admin-webhooks.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { numberOf } from './event-service.ts';
import { createKeyOperations, quotaField, tierOf } from './key-operations.ts';
import { listing } from './paging.ts';
import { createPartyOperations } from './party-operations.ts';
import { createTokenOperations } from './token-operations.ts';

/** AdminService, for operators. */
export function createAdminService(dependencies: ServiceDependencies): Implementation {
  const { clock, calendar, paging, timestamp } = dependencies;
  const at = (atS: number) => timestamp(atS * 1_000);
  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);

  const settingPlatform = (status: PlatformStatus) => ({
    check: checkReasoned,
    run: async (request: Reasoned & { readonly caller: string }, call: Call) => {
      const [by, { caller: name }] = [byOf(call, request), request];
      const changed = await call.execute({ kind: 'SetPlatformStatus', by, name, status });
      return { platform: platformMessage(changed) };
    },
  });

  /** The month that a request names; the current one if it names none. */
  const monthOf = ({ month }: { readonly month: string }) => month || calendar.month(clock.nowMs()).name;

  return implement(AdminService, 'operate', {
    ...createKeyOperations(dependencies),
    ...createPartyOperations(dependencies),
    ...createTokenOperations(dependencies),
    ...createLinkOperations(dependencies),
    ...createEventOperations(dependencies),
    ...createWebhookOperations(dependencies),
    listPlatforms: listing(paging, {
      find: (_, page, { execute }) => execute({ kind: 'ListPlatforms', page }),
      respond: ({ items }) => ({ platforms: items.map(platformMessage) }),
    }),
    getPlatform: {
      run: async ({ caller }, { execute }) => ({
        platform: platformMessage(await platformOf(execute, caller)),
      }),
    },
    updatePlatform: {
      check: checkReasoned,
      run: async (request, call) => {
        const [by, change, name] = [byOf(call, request), toChange(request), request.caller];
        const changed = await call.execute({ kind: 'ChangeAgreement', by, name, change });
        return { platform: platformMessage(changed) };
      },
    },
    suspendPlatform: settingPlatform('SUSPENDED'),
    resumePlatform: settingPlatform('ACTIVE'),
    listUsage: listing(paging, {
      check: ({ month }) => checkMonthOrNow(month),
      find: async (request, page, { execute }) => {
        const month = monthOf(request);
        return { ...(await execute({ kind: 'ListUsage', month, page })), month };
      },
      respond: ({ items, month }) => ({ month, usages: items.map(usageMessage) }),
    }),
    getUsage: {
      check: ({ month }) => checkMonthOrNow(month),
      run: async (request, { execute }) => {
        const { callerId, caller, monthlyQuota } = await platformOf(execute, request.caller);
        const month = monthOf(request);
        const calls = await execute({ kind: 'CountCalls', callerId, month });
        const filings = await execute({ kind: 'CountFilings', callerId, year: yearOf(month) });
        const counted = { calls: BigInt(calls), filingsInYear: BigInt(filings) };
        return {
          caller,
          month,
          ...counted,
          ...quotaField(monthlyQuota),
          ...remainingField(monthlyQuota, calls),
        };
      },
    },
    listAuditLog: listing(paging, {
      check: ({ since }) => checkSince(since),
      find: ({ since }, page, { execute }) => {
        const sinceMs = instantOf(since);
        const sinceS = sinceMs === undefined ? undefined : Math.floor(sinceMs / 1000);
        return execute({ kind: 'ListAuditLog', sinceS, page });
      },
      respond: ({ items }) => ({ entries: items.map((entry) => entryMessage(entry, at)) }),
    }),
  });
}

function entryMessage(
  { id, atS, reason, before, after, ...entry }: AuditEntry,
  at: (atS: number) => string,
): MessageInitShape<typeof AuditEntrySchema> {
  const texts = { reason: reason ?? '', before: before ?? '', after: after ?? '' };
  return { ...entry, ...texts, id: BigInt(id), at: at(atS) };
}

/** An unknown tier number stays, so that the rules of agreements reject it. */
function toChange(request: UpdatePlatformRequest): AgreementChange {
  const { tier, monthlyQuota, unlimited, filingCap, noFilingCap } = request;
  return {
    tier: tier === Key_Tier.TIER_UNSPECIFIED ? undefined : (tierOf(tier) ?? String(tier)),
    monthlyQuota: numberOf(monthlyQuota),
    unlimited,
    filingCap: numberOf(filingCap),
    noFilingCap,
  };
}

async function platformOf(execute: Execute, name: string): Promise<Platform> {
  const platform = await execute({ kind: 'FindPlatform', name });
  if (platform === undefined) throw platformNotFound();
  return platform;
}

const checkMonthOrNow = (name: string) => (name === '' ? [] : checkMonth(name));

function platformMessage(platform: Platform): MessageInitShape<typeof PlatformSchema> {
  const { caller, tier, monthlyQuota, filingCap, status } = platform;
  return {
    caller,
    tier: Key_Tier[tier],
    ...quotaField(monthlyQuota),
    ...(filingCap !== null && { filingCap: BigInt(filingCap) }),
    status: Platform_Status[status],
  };
}

function usageMessage(usage: PlatformUsage): MessageInitShape<typeof ListUsageResponse_UsageSchema> {
  const { calls, monthlyQuota } = usage;
  return { platform: platformMessage(usage), calls: BigInt(calls), ...remainingField(monthlyQuota, calls) };
}

function remainingField(quota: number | null, calls: number): { remaining?: bigint } {
  const left = callsLeft(quota, calls);
  return left === null ? {} : { remaining: BigInt(left) };
}
