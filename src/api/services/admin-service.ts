import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AddPartyRequest,
  AdminService,
  type AuditEntrySchema,
  type CreateKeyRequest,
  Key_Status,
  Key_Tier,
  type KeySchema,
  type ListUsageResponse_UsageSchema,
  Party_Role,
  type PartySchema,
  Platform_Status,
  type PlatformSchema,
  type UpdatePlatformRequest,
} from '../../../gen/artseal/v1/admin_pb.ts';
import { type AuditEntry, checkReason } from '../../domain/audit-entry.ts';
import { checkMonth, checkSince, instantOf } from '../../domain/calendar.ts';
import {
  type Agreement,
  type AgreementChange,
  callsLeft,
  checkAgreement,
  checkOverlap,
  type KeyStatus,
  overlapS,
  type PlatformStatus,
  platformNotFound,
  statusAt,
  type Tier,
} from '../../domain/caller.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';
import { checkParty, checkRole, type NewParty, type PartyRules, partyRoles } from '../../domain/party.ts';
import type { Violation } from '../../domain/violation.ts';
import { createIssuance, type IssuedKey } from '../../keys/issuance.ts';
import type { Platform, PlatformUsage, StoredKey } from '../../store/caller-commands.ts';
import type { Party } from '../../store/party-commands.ts';
import type { Execute } from '../../store/store.ts';
import {
  type Call,
  type Implementation,
  implement,
  type Operations,
  operation,
  parsed,
} from '../operation.ts';
import { actorOf } from '../principal.ts';
import { createEventOperations } from './admin-events.ts';
import { createWebhookOperations } from './admin-webhooks.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { wordOf } from './enum-words.ts';
import { listing } from './paging.ts';
import { createTokenOperations } from './token-operations.ts';

/** AdminService, for operators. */
export function createAdminService(dependencies: ServiceDependencies): Implementation {
  const { clock, calendar, paging } = dependencies;
  const issuanceOf = ({ execute }: Call) => createIssuance({ ...dependencies, execute });
  const shown = (key: StoredKey) => keyMessage(key, statusAt(key, clock.nowMs() / 1000));
  const issued = ({ key, apiSecret }: IssuedKey) => ({ key: shown(key), apiSecret });

  const byOf = (call: Call, { reason }: Reasoned) => actorOf(call, clock, reason);

  const settingKey = (status: KeyStatus) => ({
    parse: parseReasoned<{ readonly keyId: string }>,
    run: async (request: Reasoned & { readonly keyId: string }, call: Call) => {
      const [by, { keyId }] = [byOf(call, request), request];
      return { key: shown(await call.execute({ kind: 'SetKeyStatus', by, keyId, status })) };
    },
  });
  const settingPlatform = (status: PlatformStatus) => ({
    parse: parseReasoned<{ readonly caller: string }>,
    run: async (request: Reasoned & { readonly caller: string }, call: Call) => {
      const [by, { caller: name }] = [byOf(call, request), request];
      const changed = await call.execute({ kind: 'SetPlatformStatus', by, name, status });
      return { platform: platformMessage(changed) };
    },
  });

  /** The month that a request names; the current one if it names none. */
  const monthOf = ({ month }: { readonly month: string }) => month || calendar.month(clock.nowMs()).name;

  return implement(AdminService, 'operate', {
    ...createPartyOperations(dependencies),
    ...createTokenOperations(dependencies),
    ...createEventOperations(dependencies),
    ...createWebhookOperations(dependencies),
    createKey: operation({
      parse: (request) => {
        const agreement = toAgreement(request);
        const violations = [...checkAgreement(agreement), ...checkReason(request.reason)];
        return parsed(violations, () => ({ agreement, request }));
      },
      run: async ({ agreement, request }, call) =>
        issued(await issuanceOf(call).issueKey(agreement, byOf(call, request))),
    }),
    listKeys: listing(paging, {
      find: (_, page, { execute }) => execute({ kind: 'ListKeys', page }),
      respond: ({ items }) => ({ keys: items.map(shown) }),
    }),
    rotateKey: operation({
      parse: ({ keyId, overlapSeconds = overlapS.default, reason }) => {
        const violations = [...checkOverlap(overlapSeconds), ...checkReason(reason)];
        return parsed(violations, () => ({ keyId, overlapSeconds, reason }));
      },
      run: async ({ keyId, overlapSeconds, reason }, call) =>
        issued(await issuanceOf(call).rotateKey(keyId, overlapSeconds, byOf(call, { reason }))),
    }),
    suspendKey: operation(settingKey('SUSPENDED')),
    resumeKey: operation(settingKey('ACTIVE')),
    revokeKey: operation(settingKey('REVOKED')),
    listPlatforms: listing(paging, {
      find: (_, page, { execute }) => execute({ kind: 'ListPlatforms', page }),
      respond: ({ items }) => ({ platforms: items.map(platformMessage) }),
    }),
    getPlatform: operation({
      parse: ({ caller }) => parsed([], () => caller),
      run: async (name, { execute }) => ({ platform: platformMessage(await platformOf(execute, name)) }),
    }),
    updatePlatform: operation({
      parse: (request) => parsed(checkReason(request.reason), () => request),
      run: async (request, call) => {
        const [by, change, name] = [byOf(call, request), toChange(request), request.caller];
        const changed = await call.execute({ kind: 'ChangeAgreement', by, name, change });
        return { platform: platformMessage(changed) };
      },
    }),
    suspendPlatform: operation(settingPlatform('SUSPENDED')),
    resumePlatform: operation(settingPlatform('ACTIVE')),
    listUsage: listing(paging, {
      check: ({ month }) => checkMonthOrNow(month),
      find: async (request, page, { execute }) => {
        const month = monthOf(request);
        return { ...(await execute({ kind: 'ListUsage', month, page })), month };
      },
      respond: ({ items, month }) => ({ month, usages: items.map(usageMessage) }),
    }),
    getUsage: operation({
      parse: (request) => parsed(checkMonthOrNow(request.month), () => request),
      run: async (request, { execute }) => {
        const { callerId, caller, monthlyQuota } = await platformOf(execute, request.caller);
        const month = monthOf(request);
        const calls = BigInt(await execute({ kind: 'CountCalls', callerId, month }));
        return { caller, month, calls, ...quotaField(monthlyQuota) };
      },
    }),
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

/** A change and its reason; empty for none. */
interface Reasoned {
  readonly reason: string;
}

const parseReasoned = <R>(request: Reasoned & R) => parsed(checkReason(request.reason), () => request);

function entryMessage({
  id,
  atS,
  reason,
  before,
  after,
  ...entry
}: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  const texts = { reason: reason ?? '', before: before ?? '', after: after ?? '' };
  return { ...entry, ...texts, id: BigInt(id), at: utc(atS) };
}

function toAgreement({ name, tier, monthlyQuota, unlimited, filingCap }: CreateKeyRequest): Agreement {
  const [quota, cap] = [numberOf(monthlyQuota), numberOf(filingCap)];
  return { name, tier: tierOf(tier), monthlyQuota: quota, unlimited, filingCap: cap };
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

const numberOf = (value: bigint | undefined) => (value === undefined ? undefined : Number(value));

const checkMonthOrNow = (name: string) => (name === '' ? [] : checkMonth(name));

const tierNames: readonly Tier[] = ['TRIAL', 'STANDARD', 'ENTERPRISE'];

const tierOf = (value: Key_Tier) => wordOf(tierNames, Key_Tier, value);

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
  const left = callsLeft(monthlyQuota, calls);
  const remaining = left === null ? {} : { remaining: BigInt(left) };
  return { platform: platformMessage(usage), calls: BigInt(calls), ...remaining };
}

function quotaField(quota: number | null): { monthlyQuota?: bigint } {
  return quota === null ? {} : { monthlyQuota: BigInt(quota) };
}

/** The operations of AdminService that register the parties of platforms. */
function createPartyOperations({
  partyRules,
  clock,
  paging,
}: ServiceDependencies): Pick<
  Operations<typeof AdminService>,
  'addParty' | 'removeParty' | 'listParties' | 'importParties'
> {
  return {
    addParty: operation({
      parse: (request) => {
        const { violations, party } = readParty(request, partyRules);
        return parsed([...violations, ...checkReason(request.reason)], () => ({ party, request }));
      },
      run: async ({ party, request: { caller, reason } }, call) => {
        const by = actorOf(call, clock, reason);
        return { party: partyMessage(await call.execute({ kind: 'AddParty', by, caller, party })) };
      },
    }),
    removeParty: operation({
      parse: ({ caller, role: word, partyId, reason }) => {
        const role = roleOf(word);
        const violations = [...checkRole(role), ...checkReason(reason)];
        return parsed(violations, () => ({ caller, role: role as PartyRole, partyId, reason }));
      },
      run: async ({ reason, ...named }, call) => {
        const by = actorOf(call, clock, reason);
        return { party: partyMessage(await call.execute({ kind: 'RemoveParty', by, ...named })) };
      },
    }),
    listParties: listing(paging, {
      check: ({ role }) => (role === Party_Role.ROLE_UNSPECIFIED ? [] : checkRole(roleOf(role))),
      find: ({ caller, role }, page, { execute }) =>
        execute({ kind: 'ListParties', filter: { caller: caller || undefined, role: roleOf(role) }, page }),
      respond: ({ items }) => ({ parties: items.map(partyMessage) }),
    }),
    importParties: operation({
      parse: ({ parties: messages, dryRun: isTrial, reason }) => {
        const read = messages.map((message, index) => {
          const at = (field: string) => `parties[${index}].${field}`;
          const { violations, party } = readParty(message, partyRules);
          return {
            party: { ...party, caller: message.caller },
            caller: { caller: message.caller, field: at('caller') },
            violations: violations.map(({ field, rule }) => ({ field: at(field), rule })),
          };
        });
        const parties = read.map(({ party }) => party);
        const callers = read.map(({ caller }) => caller);
        const violations = [
          ...checkReason(reason),
          ...read.flatMap((one) => one.violations),
          ...repeated(parties),
        ];
        return parsed([], () => ({ parties, callers, violations, isTrial, reason }));
      },
      run: async ({ reason, ...given }, call) => {
        const by = actorOf(call, clock, reason);
        return call.execute({ kind: 'ImportParties', by, ...given });
      },
    }),
  };
}

/** Reads and checks a party, including its role. */
function readParty(
  { role, partyId, providerIds }: Pick<AddPartyRequest, 'role' | 'partyId' | 'providerIds'>,
  rules: PartyRules | undefined,
): { readonly party: NewParty; readonly violations: readonly Violation[] } {
  const party = { role: roleOf(role), partyId, providerIds };
  return { party: party as NewParty, violations: checkParty(party, rules) };
}

const roleOf = (value: Party_Role) => wordOf(partyRoles, Party_Role, value);

/** Finds parties that appear twice. */
function repeated(parties: readonly (NewParty & { readonly caller: string })[]): Violation[] {
  const first = new Map<string, number>();
  return parties.flatMap(({ caller, role, partyId }, index) => {
    const key = JSON.stringify([caller, role, partyId]);
    const before = first.get(key);
    if (before === undefined) first.set(key, index);
    return before === undefined ? [] : [{ field: `parties[${index}]`, rule: `is parties[${before}] again` }];
  });
}

function partyMessage({
  role,
  providerIds,
  addedAtS,
  ...party
}: Party): MessageInitShape<typeof PartySchema> {
  return { ...party, role: Party_Role[role], providerIds: { ...providerIds }, addedAt: utc(addedAtS) };
}

/** RFC 3339, whole seconds, UTC, of Unix seconds. */
function utc(atS: number): string {
  return new Date(atS * 1000).toISOString().replace('.000Z', '+00:00');
}
