import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type AddPartyRequest,
  type AdminService,
  type ImportPartiesRequest,
  Party_Role,
  type PartySchema,
} from '../../../gen/artseal/v1/admin_pb.ts';
import { checkReason } from '../../domain/audit-entry.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';
import {
  checkParty,
  checkRole,
  type NewParty,
  nobodyRegistered,
  type PartyRules,
  type ProviderIds,
  partiesPerImportMax,
  partyRoles,
} from '../../domain/party.ts';
import type { Violation } from '../../domain/violation.ts';
import type { Party } from '../../store/party-commands.ts';
import { type Operations, operation, parsed } from '../operation.ts';
import { actorOf } from '../principal.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { wordOf } from './enum-words.ts';
import { listing } from './paging.ts';

/** The operations of AdminService that register the parties of platforms. */
export function createPartyOperations({
  partyRules,
  clock,
  paging,
  timestamp,
}: ServiceDependencies): Pick<
  Operations<typeof AdminService>,
  'addParty' | 'removeParty' | 'listParties' | 'importParties'
> {
  const shown = (party: Party) => partyMessage(party, timestamp);
  return {
    addParty: operation({
      parse: (request) => {
        const { violations, party } = readParty(request, partyRules);
        return parsed([...violations, ...checkReason(request.reason)], () => ({ party, request }));
      },
      run: async ({ party, request: { caller, reason } }, call) => {
        const by = actorOf(call, clock, reason);
        return { party: shown(await call.execute({ kind: 'AddParty', by, caller, party })) };
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
        return { party: shown(await call.execute({ kind: 'RemoveParty', by, ...named })) };
      },
    }),
    listParties: listing(paging, {
      check: ({ role }) => (role === Party_Role.ROLE_UNSPECIFIED ? [] : checkRole(roleOf(role))),
      find: ({ caller, role }, page, { execute }) =>
        execute({ kind: 'ListParties', filter: { caller: caller || undefined, role: roleOf(role) }, page }),
      respond: ({ items }) => ({ parties: items.map(shown) }),
    }),
    importParties: operation({
      // The count first: a message has room for a million parties.
      parse: (request) =>
        parsed(checkImport(request.parties, partyRules), () => readParties(request, partyRules)),
      run: async ({ reason, ...given }, call) => {
        const by = actorOf(call, clock, reason);
        return call.execute({ kind: 'ImportParties', by, ...given });
      },
    }),
  };
}

/** Reads and checks parties. */
function readParties(
  { parties: messages, dryRun: isTrial, reason }: ImportPartiesRequest,
  rules: PartyRules | undefined,
) {
  const read = messages.map((message, index) => {
    const at = (field: string) => `parties[${index}].${field}`;
    const { violations, party } = readParty(message, rules);
    return {
      party: { ...party, caller: message.caller },
      caller: { caller: message.caller, field: at('caller') },
      violations: violations.map(({ field, rule }) => ({ field: at(field), rule })),
    };
  });
  const parties = read.map(({ party }) => party);
  const callers = read.map(({ caller }) => caller);
  const faults = read.flatMap((one) => one.violations);
  const violations = [...checkReason(reason), ...faults, ...repeated(parties)];
  return { parties, callers, violations, isTrial, reason };
}

/** Reads and checks a party, including its role. */
function readParty(
  { role, partyId, providerIds }: Pick<AddPartyRequest, 'role' | 'partyId' | 'providerIds'>,
  rules: PartyRules | undefined,
): { readonly party: NewParty; readonly violations: readonly Violation[] } {
  const known = roleOf(role);
  const members = known === undefined ? [] : Object.keys(rules?.[known] ?? {});
  const party = { role: known, partyId, providerIds: withNames(providerIds, members) };
  return { party: party as NewParty, violations: checkParty(party, rules) };
}

/** Provider ids with the name of the only one, which may be left empty. */
function withNames(ids: ProviderIds, [only, ...others]: readonly string[]): ProviderIds {
  const { '': unnamed, ...named } = ids;
  if (unnamed === undefined || Object.keys(named).length > 0) return ids;
  return only === undefined || others.length > 0 ? {} : { [only]: unnamed };
}

function checkImport({ length }: readonly unknown[], rules: PartyRules | undefined): Violation[] {
  if (rules === undefined) return [nobodyRegistered];
  if (length <= partiesPerImportMax) return [];
  return [{ field: 'parties', rule: `must be at most ${partiesPerImportMax}, not ${length}: split them` }];
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

function partyMessage(
  { role, providerIds, addedAtS, ...party }: Party,
  timestamp: ServiceDependencies['timestamp'],
): MessageInitShape<typeof PartySchema> {
  const addedAt = timestamp(addedAtS * 1_000);
  return { ...party, role: Party_Role[role], providerIds: { ...providerIds }, addedAt };
}
