import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AdminService,
  type ImportedPartySchema,
  type Party,
  Party_Role,
} from '../../gen/artseal/v1/admin_pb.ts';
import { providers } from '../config/payment-providers.ts';
import { oneOf } from '../config/settings.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import { type ProviderIds, partiesPerImportMax, partyRoles } from '../domain/party.ts';
import { rejectViolations, ValidationError, type Violation } from '../domain/violation.ts';
import { JsonError, type JsonValue, parseJsonObject, shownName } from '../lib/strict-json.ts';
import type { ProviderKind } from '../payments/provider.ts';
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
import { type CallSession, calls, present, wordIn } from './session.ts';

/** The largest file, in bytes: room for so many parties with the longest ids. */
export const partyFileBytesMax = 8_388_608;

const add: Action = {
  usage:
    'party add --platform NAME --role BUYER|SELLER --id ID --provider-ids MEMBER=VALUE,… [--reason TEXT] [--json]',
  details: [
    'Registers or replaces the buyer or seller that a platform calls ID. --provider-ids has, for each payment provider:',
    ...providers.flatMap(providerIdsOf),
  ],
  ...calls(async (session) => {
    const { client, words, reason } = session;
    const providerIds = providerIdList(words.required('provider-ids'));
    const { party } = await client(AdminService).addParty({ ...partyOf(words), providerIds, reason });
    show(present(party), session);
  }),
};

const list: Action = {
  usage: 'party list [--platform NAME] [--role BUYER|SELLER] [--json]',
  details: ['Lists buyers and sellers.'],
  ...calls(({ client, showAll, words }) => {
    const role = readFlag(words, 'role', parseRole) ?? Party_Role.ROLE_UNSPECIFIED;
    const filter = { caller: words.text('platform') ?? '', role };
    return showAll('parties', (page) => client(AdminService).listParties({ ...filter, ...page }), show);
  }),
};

const remove: Action = {
  usage: 'party remove --platform NAME --role BUYER|SELLER --id ID [--reason TEXT] [--json]',
  details: ['Removes a buyer or seller: new orders with it are rejected. Open orders keep it.'],
  ...calls(async (session) => {
    const { client, words, reason } = session;
    const { party } = await client(AdminService).removeParty({ ...partyOf(words), reason });
    show(present(party), session);
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
    `A file has at most ${partiesPerImportMax} parties, because other writes wait until they are stored.`,
  ],
  ...calls(async ({ client, words, reason, show, printError }) => {
    const name = words.required('FILE');
    const tooLong = new Error(`${name} is larger than ${partyFileBytesMax / 1_048_576} MiB: split it`);
    const file = readPartyFile(await readBounded(name, partyFileBytesMax, tooLong), words.text('platform'));
    const dryRun = words.has('dry-run');
    try {
      rejectViolations(file.violations);
      const counts = await client(AdminService).importParties({ parties: file.parties, dryRun, reason });
      const { added, replaced, unchanged } = counts;
      const trial = dryRun ? ' (dry run: nothing was written)' : '';
      const text = `${added} added, ${replaced} replaced, ${unchanged} unchanged${trial}`;
      show({ added, replaced, unchanged }, text);
      return exitCodes.done;
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      for (const fault of faultsOf(error, file)) printError(`artseal: ${name}: ${fault}`);
      return exitCodes.failed;
    }
  }),
};

/** A line for each named fault, and one for the others. */
function faultsOf({ violations, more }: ValidationError, file: PartyFile): string[] {
  const faults = new Set(violations.map(({ field, rule }) => `${placeOf(field, file)} ${rule}`));
  return [...faults, ...(more > 0 ? [`and ${more} more`] : [])];
}

/** The place in the file of a field of the request, such as `parties[3].providerIds.customer`. */
function placeOf(field: string, { places }: PartyFile): string {
  const [, index, member = ''] = /^parties\[(\d+)\]\.?(.*)$/.exec(field) ?? [];
  const found = places[Number(index)];
  if (found === undefined) return field === 'parties' ? 'the parties of the file' : field;
  if (member === 'caller') return found.platform;
  if (member === 'partyId') return `the id of ${found.party}`;
  return `${found.party}${member.replace(/^providerIds/, '')}`;
}

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
const parseRole = (text: string): Party_Role => Party_Role[oneOf(partyRoles)(text.toUpperCase())];

const partyOf = (words: Words) => ({
  caller: words.required('platform'),
  role: readRequired(words, 'role', parseRole),
  partyId: words.required('id'),
});

function show(party: Party, { show }: CallSession): void {
  const { caller, partyId, providerIds, addedAt } = party;
  const role = wordIn(Party_Role, party.role);
  const ids = Object.entries(providerIds).map(([member, id]) => `${member}=${id}`);
  show(
    { platform: caller, role, partyId, providerIds, addedAt },
    [role.padEnd(6), partyId, ids.join(','), caller].join('  '),
  );
}

/** The parties of a file, their places in it, and what is wrong with its form. */
interface PartyFile {
  readonly parties: MessageInitShape<typeof ImportedPartySchema>[];
  readonly places: { readonly platform: string; readonly party: string }[];
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
function readPartyFile(bytes: Uint8Array, platform: string | undefined): PartyFile {
  const file: PartyFile = { parties: [], places: [], violations: [] };
  try {
    const value = parseJsonObject(bytes);
    if (platform === undefined) addPlatforms(file, value);
    else addParties(file, value, { place: '', caller: platform, field: '--platform' });
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    file.violations.push({ field: lineOf(bytes, error.at), rule: `is invalid: ${error.what}` });
  }
  return file;
}

/** Adds the parties under `platforms`. */
function addPlatforms(file: PartyFile, value: JsonValue): void {
  if (!(value instanceof Map && value.has('platforms')))
    file.violations.push({ field: 'platforms', rule: 'is required without --platform' });
  for (const [, platforms] of membersOf(file, value, '', ['platforms']))
    for (const [caller, parties] of membersOf(file, platforms, 'platforms')) {
      const place = placeIn('platforms', caller);
      addParties(file, parties, { place, caller, field: place });
    }
}

/** A platform, its place in the file ('' for the whole file), and how messages name it. */
interface NamedPlatform {
  readonly caller: string;
  readonly place: string;
  readonly field: string;
}

function addParties(file: PartyFile, value: JsonValue, { place, caller, field }: NamedPlatform): void {
  for (const [section, parties] of membersOf(file, value, place, Object.keys(sections))) {
    const where = place === '' ? section : `${place}.${section}`;
    const role = Party_Role[sections[section as keyof typeof sections]];
    for (const [partyId, ids] of membersOf(file, parties, where)) {
      file.parties.push({ caller, role, partyId, providerIds: providerIdsIn(ids) });
      file.places.push({ platform: field, party: placeIn(where, partyId) });
    }
  }
}

/** The members of an object. If names are given, others are faults. */
function membersOf(file: PartyFile, value: JsonValue, place: string, names?: readonly string[]) {
  if (!(value instanceof Map)) {
    file.violations.push({ field: place, rule: 'must be an object' });
    return [];
  }
  const isKnown = (name: string) => names?.includes(name) ?? true;
  const rule = `is unknown here, where there are only ${names?.join(' and ')}`;
  for (const name of value.keys())
    if (!isKnown(name)) file.violations.push({ field: placeIn(place, name), rule });
  return [...value].filter(([name]) => isKnown(name));
}

/** The provider ids of a party; the only one needs no name. Values that are not strings become '', which fails every rule. */
function providerIdsIn(value: JsonValue): Record<string, string> {
  const text = (id: JsonValue) => (typeof id === 'string' ? id : '');
  if (!(value instanceof Map)) return { '': text(value) };
  return Object.fromEntries([...value].map(([member, id]) => [member, text(id)]));
}

/** A member of the file in messages: `platforms["gallery"]`. */
const placeIn = (place: string, name: string): string => `${place}[${JSON.stringify(shownName(name))}]`;

/** A position of the file in messages; `at` is in UTF-16 units. */
function lineOf(bytes: Uint8Array, at: number | undefined): string {
  if (at === undefined) return 'the file';
  const before = new TextDecoder().decode(bytes).slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}
