import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AdminService,
  Key_Tier,
  type ListUsageResponse_UsageSchema,
  Platform_Status,
  type PlatformSchema,
  RequestEntry_Api,
  type UpdatePlatformRequest,
} from '../../../gen/artseal/v1/admin_pb.ts';
import type { AuditEntry, Reasoned } from '../../domain/audit-entry.ts';
import { checkMonth, checkSince, instantOf, yearOf } from '../../domain/calendar.ts';
import {
  type AgreementChange,
  callsLeft,
  type PlatformStatus,
  platformNotFound,
} from '../../domain/caller.ts';
import type { Platform, PlatformUsage } from '../../store/caller-commands.ts';
import type { Execute } from '../../store/store.ts';
import type { StoredWebhook } from '../../store/webhook-commands.ts';
import { deleteWebhook } from '../../store/webhook-requests.ts';
import { type ListenerName, listenerNames } from '../call-observer.ts';
import { actorOf, type Call, type Implementation, implement, type Operations } from '../operation.ts';
import { createKeyOperations, createTokenOperations, quotaField, tierOf } from './credential-operations.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { callerNamed, checkAfter, eventMessage, numberOf, readEvents } from './event-service.ts';
import { linkMessage } from './evidence-service.ts';
import { listing } from './paging.ts';
import { createPartyOperations } from './party-operations.ts';
import { checkWhich, createRedelivery } from './webhook-deliveries.ts';
import { webhookMessage, webhookStatuses } from './webhook-service.ts';

/** AdminService, for operators. */
export function createAdminService(dependencies: ServiceDependencies): Implementation {
  const { clock, businessClock, calendar, paging, timestampS } = dependencies;
  const entryMessage = ({ id, atS, reason, before, after, ...entry }: AuditEntry) => {
    const texts = { reason: reason ?? '', before: before ?? '', after: after ?? '' };
    return { ...entry, ...texts, id: BigInt(id), at: timestampS(atS) };
  };
  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);

  const settingPlatform = (status: PlatformStatus) => ({
    run: async (request: Reasoned & { readonly caller: string }, call: Call) => {
      const [by, { caller: name }] = [byOf(call, request), request];
      const changed = await call.execute({ kind: 'SetPlatformStatus', by, name, status });
      return { platform: platformMessage(changed) };
    },
  });

  /** The month that a request names; the current one if it names none. */
  const monthOf = ({ month }: { readonly month: string }) =>
    month || calendar.month(businessClock.nowMs()).name;

  return implement(AdminService, 'operate', {
    ...createOverviewOperation(dependencies),
    ...createKeyOperations(dependencies),
    ...createPartyOperations(dependencies),
    ...createTokenOperations(dependencies),
    ...createLinkOperations(dependencies),
    ...createEventOperations(dependencies),
    ...createRequestOperations(dependencies),
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
        const quota = { ...quotaField(monthlyQuota), ...remainingField(monthlyQuota, calls) };
        return { caller, month, ...counted, ...quota };
      },
    },
    listAuditLog: listing(paging, {
      check: ({ since }) => checkSince(since),
      find: ({ since }, page, { execute }) => {
        const sinceMs = instantOf(since);
        const sinceS = sinceMs === undefined ? undefined : Math.floor(sinceMs / 1000);
        return execute({ kind: 'ListAuditLog', sinceS, page });
      },
      respond: ({ items }) => ({ entries: items.map(entryMessage) }),
    }),
  });
}

function createOverviewOperation({ readOverview, environment }: ServiceDependencies) {
  return {
    getOverview: {
      run: async () => {
        const { faults, metrics, samples } = await readOverview();
        return {
          environment,
          faults: faults.map(({ part, fault }) => ({ part, text: fault })),
          metrics: metrics.map(({ labels, ...metric }) => ({ ...metric, labels: { ...labels } })),
          samples: samples.map(({ atS, ...counts }) => ({
            at: BigInt(atS),
            calls: BigInt(counts.calls),
            rejected: BigInt(counts.rejected),
            failed: BigInt(counts.failed),
            filings: BigInt(counts.filings),
          })),
        };
      },
    },
  } satisfies Partial<Operations<typeof AdminService>>;
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

/** The operations of AdminService on links to evidence. */
function createLinkOperations({ clock, businessNowS, timestampS, paging }: ServiceDependencies) {
  return {
    listAllLinks: listing(paging, {
      find: ({ filingNo }, page, { execute }) =>
        execute({ kind: 'ListLinks', filingNo, owner: undefined, nowS: businessNowS(), page }),
      respond: ({ items }) => ({ links: items.map((link) => linkMessage(link, timestampS)) }),
    }),
    revokeLink: {
      run: async ({ linkId, reason }, call) => {
        const named = { linkId, filingNo: undefined, owner: undefined };
        const by = actorOf(call, clock, reason);
        const link = await call.execute({ kind: 'RevokeLink', by, ...named });
        return { link: linkMessage(link, timestampS), filingNo: link.filingNo };
      },
    },
  } satisfies Partial<Operations<typeof AdminService>>;
}

/** The operation of AdminService that lists events. */
function createEventOperations(making: ServiceDependencies) {
  return {
    listAllEvents: {
      check: ({ after, since }) => [
        ...checkAfter(after),
        ...checkSince(since),
        ...(after === undefined || since === '' ? [] : [{ field: 'since', rule: eitherRule }]),
      ],
      run: async ({ platform, after, since }, { execute }) => {
        const callerId = platform === '' ? undefined : await callerNamed(platform, execute);
        const from = { after: numberOf(after), sinceMs: instantOf(since) };
        const { events, next } = await readEvents({ callerId, ...from }, execute);
        const entries = events.map((event) => ({
          ...{ event: eventMessage(event, making), platform: event.caller, position: BigInt(event.position) },
        }));
        return { entries, next: BigInt(next) };
      },
    },
  } satisfies Partial<Operations<typeof AdminService>>;
}

const eitherRule = 'must be left out if after is given';

/** The operation of AdminService that lists the last calls. */
function createRequestOperations({ recentRequests, timestamp, paging }: ServiceDependencies) {
  return {
    listRequests: listing(paging, {
      check: ({ requestId, api }) => [
        ...(requestId === '' || requestIdPattern.test(requestId)
          ? []
          : [{ field: 'requestId', rule: 'must be a request id: a UUID in lower case' }]),
        ...apis.check('api', api),
      ],
      find: async ({ platform, requestId, failed, api }, page, { execute }) => {
        if (platform !== '') await callerNamed(platform, execute);
        const filter = { caller: platform || undefined, requestId: requestId || undefined, isFailed: failed };
        const listener = listenerNames.find((name) => apiOf[name] === api);
        return recentRequests.list({ ...filter, listener }, page);
      },
      respond: ({ items }) => ({
        requests: items.map((request) => ({
          requestId: request.requestId,
          at: timestamp(request.endedAtMs),
          caller: request.caller ?? '',
          authenticated: request.isAuthenticated,
          api: apiOf[request.listener],
          operation: request.operation ?? '',
          httpStatus: request.status,
          reason: request.reason ?? '',
          durationMs: request.durationMs,
        })),
      }),
    }),
  } satisfies Partial<Operations<typeof AdminService>>;
}

const requestIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const apis = enumWords(['PUBLIC', 'INTERNAL', 'ADMIN'], RequestEntry_Api);
const apiOf: Readonly<Record<ListenerName, RequestEntry_Api>> = {
  public: RequestEntry_Api.PUBLIC,
  internal: RequestEntry_Api.INTERNAL,
  admin: RequestEntry_Api.ADMIN,
};

/** The operations of AdminService on webhook endpoints. */
function createWebhookOperations(dependencies: ServiceDependencies) {
  const { clock, paging, onWebhookChange } = dependencies;
  const redeliver = createRedelivery(dependencies);

  const shown = (webhook: StoredWebhook) => webhookMessage(webhook, webhook.origin, dependencies);

  /** The endpoint that a call changes, of any caller. */
  const named = (call: Call, { webhookId, reason }: { webhookId: string; reason: string }) => {
    return { webhookId, owner: undefined, by: actorOf(call, clock, reason) };
  };

  return {
    listAllWebhooks: listing(paging, {
      check: ({ status }) => webhookStatuses.check('status', status),
      find: async ({ platform, status: number, failing: isFailing }, page, { execute }) => {
        const owner = platform === '' ? undefined : await callerNamed(platform, execute);
        const status = webhookStatuses.of(number);
        return execute({ kind: 'ListWebhooks', owner, status, isFailing, page });
      },
      respond: ({ items }) => ({ webhooks: items.map(shown) }),
    }),
    setWebhookStatus: {
      check: ({ status }) => webhookStatuses.checkRequired('status', status),
      run: async (request, call) => {
        const change = { status: webhookStatuses.of(request.status) };
        const changed = await call.execute({ kind: 'ChangeWebhook', ...named(call, request), change });
        onWebhookChange();
        return { webhook: shown(changed) };
      },
    },
    removeWebhook: {
      run: async (request, call) => {
        await deleteWebhook(call.execute, named(call, request), call.executeNext);
        onWebhookChange();
        return {};
      },
    },
    redeliverEvents: {
      check: checkWhich,
      run: (request, call) => redeliver(named(call, request), request, call),
    },
  } satisfies Partial<Operations<typeof AdminService>>;
}
