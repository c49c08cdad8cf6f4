import { providers } from '../config/payment-providers.ts';
import { oneOf } from '../config/settings.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import {
  checkParty,
  nobodyRegistered,
  type PartyRules,
  type ProviderIds,
  partyRoles,
} from '../domain/party.ts';
import { rejectViolations, ValidationError, type Violation } from '../domain/violation.ts';
import { JsonError, type JsonValue, parseJsonObject, shownName } from '../lib/strict-json.ts';
import type { ProviderKind } from '../payments/provider.ts';
import type { Imported, ImportedParty, NamedCaller, Party } from '../store/party-commands.ts';
import {
  type Action,
  type CommandGroup,
  exitCodes,
  readFlag,
  readRequired,
  UsageError,
  type Words,
} from './command.ts';
import { readBounded } from './files.ts';
import { changeRegistry, changes, localActor, reads, type Session } from './session.ts';

/**
 * Parties, and platforms, that a file may have. An import is one transaction, and a server rejects writes that wait for more
 * than 250 ms; replacing so many takes some 100 ms.
 */
export const partiesPerFileMax = 2_000;

/** The largest file, in bytes: room for so many parties with the longest ids. */
export const partyFileBytesMax = 8_388_608;

const add: Action = {
  usage:
    'party add --platform NAME --role BUYER|SELLER --id ID --provider-ids MEMBER=VALUE,… [--reason TEXT] [--json]',
  details: [
    'Registers or replaces the buyer or seller that a platform calls ID. --provider-ids has, for each payment provider:',
    ...providers.flatMap(providerIdsOf),
  ],
  run: changes(async (session) => {
    const { config, actor, execute, words } = session;
    const party = { ...partyOf(words), providerIds: providerIdList(words.required('provider-ids')) };
    const by = actor();
    rejectViolations(checkParty(party, config.provider.parties));
    show(await execute({ kind: 'AddParty', by, caller: words.required('platform'), party }), session);
  }),
};

const list: Action = {
  usage: 'party list [--platform NAME] [--role BUYER|SELLER] [--json]',
  details: ['Lists buyers and sellers.'],
  run: reads(({ execute, showAll, words }) => {
    const filter = { caller: words.text('platform'), role: readFlag(words, 'role', parseRole) };
    return showAll((page) => execute({ kind: 'ListParties', filter, page }), show);
  }),
};

const remove: Action = {
  usage: 'party remove --platform NAME --role BUYER|SELLER --id ID [--reason TEXT] [--json]',
  details: ['Removes a buyer or seller: new orders with it are rejected. Open orders keep it.'],
  run: changes(async (session) => {
    const { actor, execute, words } = session;
    const [by, caller] = [actor(), words.required('platform')];
    show(await execute({ kind: 'RemoveParty', by, caller, ...partyOf(words) }), session);
  }),
};

const importing: Action = {
  usage: 'party import FILE [--platform NAME] [--dry-run] [--reason TEXT] [--json]',
  details: [
    'Registers the parties of a JSON file, or of standard input for -: all or none. Replaces those with other provider ids, and',
    'removes none. The file is:',
    '  {"platforms": {"NAME": {"buyers": {"ID": {"MEMBER": "VALUE"}}, "sellers": {"ID": {"MEMBER": "VALUE"}}}}}',
    '--platform NAME  reads {"buyers": …, "sellers": …}, all of one platform.',
    '--dry-run        only says what would change and what is wrong.',
    `A file has at most ${partiesPerFileMax} parties, since a running server waits until they are written.`,
  ],
  run: async (words, terminal) => {
    const file = words.required('FILE');
    localActor(words, terminal);
    const tooLong = new Error(`${file} is larger than ${partyFileBytesMax / 1_048_576} MiB: split it`);
    const bytes = await readBounded(file, partyFileBytesMax, tooLong);
    try {
      return await changeRegistry(words, terminal, async ({ execute, config, actor, show }) => {
        const rules = config.provider.parties;
        if (rules === undefined) throw rejectViolations([nobodyRegistered]);
        const read = readPartyFile(bytes, words.text('platform'), rules);
        const isTrial = words.has('dry-run');
        const counts = await execute({ kind: 'ImportParties', by: actor(), ...read, isTrial });
        show(counts, countsText(counts, isTrial));
      });
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      for (const fault of faultsOf(error)) terminal.printError(`artseal: ${file}: ${fault}`);
      return exitCodes.failed;
    }
  },
};

const countsText = ({ added, replaced, unchanged }: Imported, isTrial: boolean): string =>
  `${added} added, ${replaced} replaced, ${unchanged} unchanged${isTrial ? ' (dry run: nothing was written)' : ''}`;

/** A line for each named fault, and one for the others. */
const faultsOf = ({ violations, more }: ValidationError): string[] => [
  ...violations.map(({ field, rule }) => `${field} ${rule}`),
  ...(more > 0 ? [`and ${more} more`] : []),
];

/** `artseal party` */
export const party: CommandGroup = {
  summary: 'register the buyers and sellers of platforms at the payment provider',
  actions: [add, list, remove, importing],
  details: [
    'NAME is the platform or internal system that filed the artwork. A change is effective when the command returns.',
    'An open order keeps its parties. artseal audit-log lists who changed what, and the --reason.',
  ],
};

/** The ids that parties have at a provider, a line for each role. */
function providerIdsOf({ name, parties }: ProviderKind): string[] {
  return Object.entries(parties ?? {}).map(([role, rules]) => {
    const members = Object.keys(rules).map((member) => `${member}=…`);
    return `  ${name}, ${role}: ${members.join(',')}`;
  });
}

/** Reads provider ids such as customer=cus_1,paymentMethod=pm_1. Throws UsageError. */
function providerIdList(word: string): ProviderIds {
  const names = new Map<string, string>();
  for (const pair of word.split(',')) {
    const [member = '', ...rest] = pair.split('=').map((part) => part.trim());
    if (names.has(member)) throw new UsageError(`takes ${member} once in --provider-ids`);
    names.set(member, rest.join('='));
  }
  return Object.fromEntries(names);
}

/** Reads a role, in any case. Throws SettingError. */
const parseRole = (text: string): PartyRole => oneOf(partyRoles)(text.toUpperCase());

const partyOf = (words: Words) => ({
  role: readRequired(words, 'role', parseRole),
  partyId: words.required('id'),
});

function show({ caller, role, partyId, providerIds, addedAtS }: Party, { show, timestamp }: Session): void {
  const ids = Object.entries(providerIds).map(([member, id]) => `${member}=${id}`);
  show(
    { platform: caller, role, partyId, providerIds, addedAt: timestamp(addedAtS) },
    [role.padEnd(6), partyId, ids.join(','), caller].join('  '),
  );
}

/** The parties of a file, and all that is wrong with it. */
interface PartyFile {
  readonly parties: ImportedParty[];
  readonly callers: NamedCaller[];
  readonly violations: Violation[];
}

const sections = { buyers: 'BUYER', sellers: 'SELLER' } as const satisfies Record<string, PartyRole>;

/**
 * Reads a file of parties: of several platforms, or of the given one. If a party has a single provider id, a string may
 * replace the object. A file that is no JSON object, or repeats a member, has that one fault.
 *
 *     {"platforms": {"gallery": {"buyers": {"b1": {"customer": "cus_…", …}}, "sellers": {"s1": {"account": "acct_…"}}}}}
 *     {"buyers": {"b1": {"customer": "cus_…", …}}, "sellers": {"s1": "acct_…"}}
 */
function readPartyFile(bytes: Uint8Array, platform: string | undefined, rules: PartyRules): PartyFile {
  const file: PartyFile = { parties: [], callers: [], violations: [] };
  try {
    const value = parseJsonObject(bytes);
    if (platform === undefined) addPlatforms(file, value, rules);
    else addParties(file, { value, place: '', caller: platform, field: '--platform' }, rules);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    addFault(file, lineOf(bytes, error.at), `is invalid: ${error.what}`);
  }
  for (const [what, { length }] of Object.entries({ parties: file.parties, platforms: file.callers })) {
    if (length <= partiesPerFileMax) continue;
    const rule = `must have at most ${partiesPerFileMax} ${what}, not ${length}: split it`;
    return { parties: [], callers: [], violations: [{ field: 'the file', rule }] };
  }
  return file;
}

function addFault({ violations }: PartyFile, field: string, rule: string): void {
  violations.push({ field, rule });
}

/** Adds the parties under `platforms`. */
function addPlatforms(file: PartyFile, value: JsonValue, rules: PartyRules): void {
  if (!(value instanceof Map && value.has('platforms')))
    addFault(file, 'platforms', 'is required without --platform');
  for (const [, platforms] of membersOf(file, value, '', ['platforms']))
    for (const [caller, parties] of membersOf(file, platforms, 'platforms')) {
      const place = placeIn('platforms', caller);
      addParties(file, { value: parties, place, caller, field: place }, rules);
    }
}

/** The part of a file for one platform. */
interface OfPlatform extends NamedCaller {
  readonly value: JsonValue;
  /** Its place in the file; '' for the whole file. */
  readonly place: string;
}

function addParties(file: PartyFile, { value, place, caller, field }: OfPlatform, rules: PartyRules): void {
  file.callers.push({ caller, field });
  for (const [section, parties] of membersOf(file, value, place, Object.keys(sections))) {
    const where = place === '' ? section : `${place}.${section}`;
    const role = sections[section as keyof typeof sections];
    for (const [partyId, named] of membersOf(file, parties, where)) {
      const party = { role, partyId, providerIds: providerIdsIn(named, Object.keys(rules[role])) };
      for (const violation of checkParty(party, rules))
        addFault(file, fieldIn(placeIn(where, partyId), violation.field), violation.rule);
      file.parties.push({ ...party, caller });
    }
  }
}

/** The members of an object. If names are given, others are faults. */
function membersOf(file: PartyFile, value: JsonValue, place: string, names?: readonly string[]) {
  if (!(value instanceof Map)) {
    addFault(file, place, 'must be an object');
    return [];
  }
  const isKnown = (name: string) => names?.includes(name) ?? true;
  for (const name of value.keys())
    if (!isKnown(name))
      addFault(file, placeIn(place, name), `is unknown here, where there are only ${names?.join(' and ')}`);
  return [...value].filter(([name]) => isKnown(name));
}

/** The provider ids of a party. Values that are not strings become '', which fails every rule. */
function providerIdsIn(value: JsonValue, members: readonly string[]): ProviderIds {
  const text = (name: JsonValue) => (typeof name === 'string' ? name : '');
  if (value instanceof Map)
    return Object.fromEntries([...value].map(([member, name]) => [member, text(name)]));
  const [only, ...others] = members;
  return only !== undefined && others.length === 0 ? { [only]: text(value) } : {};
}

/** A member of the file in messages: `platforms["gallery"]`. */
const placeIn = (place: string, name: string): string => `${place}[${JSON.stringify(shownName(name))}]`;

/** A field of a party in messages. */
function fieldIn(place: string, field: string): string {
  if (field === 'partyId') return `the id of ${place}`;
  return field === 'providerIds' ? place : `${place}${field.slice('providerIds'.length)}`;
}

/** A position of the file in messages; `at` is in UTF-16 units. */
function lineOf(bytes: Uint8Array, at: number | undefined): string {
  if (at === undefined) return 'the file';
  const before = new TextDecoder().decode(bytes).slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}
