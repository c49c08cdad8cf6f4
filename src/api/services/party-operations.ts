import {
  type AddPartyRequest,
  type AdminService,
  type ImportPartiesRequest,
  Party_Role,
} from '../../../gen/artseal/v1/admin_pb.ts';
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
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { listing } from './paging.ts';

/** The operations of AdminService that register the parties of platforms. */
export function createPartyOperations({ partyRules, clock, paging, timestampS }: ServiceDependencies) {
  const shown = ({ role, providerIds, addedAtS, ...party }: Party) => {
    const addedAt = timestampS(addedAtS);
    return { ...party, role: Party_Role[role], providerIds: { ...providerIds }, addedAt };
  };
  return {
    addParty: {
      check: (request) => checkParty(partyOf(request, partyRules), partyRules),
      run: async (request, call) => {
        const by = actorOf(call, clock, request.reason);
        const party = partyOf(request, partyRules) as NewParty;
        return { party: shown(await call.execute({ kind: 'AddParty', by, caller: request.caller, party })) };
      },
    },
    removeParty: {
      check: ({ role }) => checkRole(roleOf(role)),
      run: async ({ caller, partyId, ...request }, call) => {
        const by = actorOf(call, clock, request.reason);
        const role = roleOf(request.role) as PartyRole;
        return { party: shown(await call.execute({ kind: 'RemoveParty', by, caller, role, partyId })) };
      },
    },
    listParties: listing(paging, {
      check: ({ role }) => (role === Party_Role.ROLE_UNSPECIFIED ? [] : checkRole(roleOf(role))),
      find: ({ caller, role }, page, { execute }) =>
        execute({ kind: 'ListParties', filter: { caller: caller || undefined, role: roleOf(role) }, page }),
      respond: ({ items }) => ({ parties: items.map(shown) }),
    }),
    importParties: {
      // Only the count: a message has room for a million parties. The store returns the other violations with its own.
      check: ({ parties }) => checkImport(parties, partyRules),
      run: async (request, call) => {
        const by = actorOf(call, clock, request.reason);
        return call.execute({ kind: 'ImportParties', by, ...readParties(request, partyRules) });
      },
    },
  } satisfies Partial<Operations<typeof AdminService>>;
}

/** Reads and checks parties. */
function readParties(
  { parties: messages, dryRun: isTrial }: ImportPartiesRequest,
  rules: PartyRules | undefined,
) {
  const read = messages.map((message, index) => {
    const at = (field: string) => `parties[${index}].${field}`;
    const party = partyOf(message, rules);
    return {
      party: { ...(party as NewParty), caller: message.caller },
      caller: { caller: message.caller, field: at('caller') },
      violations: checkParty(party, rules).map(({ field, rule }) => ({ field: at(field), rule })),
    };
  });
  const parties = read.map(({ party }) => party);
  const callers = read.map(({ caller }) => caller);
  const faults = read.flatMap((one) => one.violations);
  const violations = [...faults, ...repeated(parties)];
  return { parties, callers, violations, isTrial };
}

/** The party of a message; its role is undefined if it is unknown. */
function partyOf(
  { role: number, partyId, providerIds }: Pick<AddPartyRequest, 'role' | 'partyId' | 'providerIds'>,
  rules: PartyRules | undefined,
) {
  const role = roleOf(number);
  const members = role === undefined ? [] : Object.keys(rules?.[role] ?? {});
  return { role, partyId, providerIds: withNames(providerIds, members) };
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

const { of: roleOf } = enumWords(partyRoles, Party_Role);

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
