import { providers } from '../config/payment-providers.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import { checkParty, nobodyRegistered, type PartyNames, partyRoles } from '../domain/party.ts';
import { refuseViolations, ValidationError } from '../domain/violation.ts';
import type { ProviderKind } from '../payments/provider.ts';
import { allOf } from '../store/paging.ts';
import type { Imported, Party } from '../store/party-commands.ts';
import { localActor } from './actor.ts';
import {
  type Action,
  type CommandGroup,
  exitCodes,
  type Terminal,
  UsageError,
  type Words,
} from './command.ts';
import { readBounded } from './files.ts';
import { timestampsOf } from './instant.ts';
import { partiesPerFileMax, partyFileBytesMax, readPartyFile } from './party-file.ts';
import { changeRegistry, withRegistry } from './registry.ts';

const add: Action = {
  usage:
    'party add --platform NAME --role BUYER|SELLER --id ID --names MEMBER=NAME,… [--reason TEXT] [--json]',
  details: [
    'registers the buyer or seller that a platform calls ID, or replaces it. --names are, by the provider that is set:',
    ...providers.flatMap(namesAt),
  ],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ execute }, { provider, timeZone }) => {
      const [by, names] = [localActor(words, terminal), namesOf(words.required('names'))];
      const party = { ...partyOf(words), names };
      refuseViolations(checkParty(party, provider.parties));
      const caller = words.required('platform');
      show(await execute({ kind: 'AddParty', by, caller, party }), words, terminal, timestampsOf(timeZone));
    }),
};

const list: Action = {
  usage: 'party list [--platform NAME] [--role BUYER|SELLER] [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const filter = {
        caller: words.text('platform'),
        role: words.text('role') === undefined ? undefined : roleOf(words),
      };
      const parties = allOf((page) => execute({ kind: 'ListParties', filter, page }));
      for await (const found of parties) show(found, words, terminal, timestampsOf(timeZone));
    }),
};

const remove: Action = {
  usage: 'party remove --platform NAME --role BUYER|SELLER --id ID [--reason TEXT] [--json]',
  details: ['has orders refused that name it from now on; open ones go on with it.'],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ execute }, { timeZone }) => {
      const [by, caller] = [localActor(words, terminal), words.required('platform')];
      show(
        await execute({ kind: 'RemoveParty', by, caller, ...partyOf(words) }),
        words,
        terminal,
        timestampsOf(timeZone),
      );
    }),
};

const importing: Action = {
  usage: 'party import FILE [--platform NAME] [--dry-run] [--reason TEXT] [--json]',
  details: [
    'registers the parties of a JSON file, or of standard input for -: all of them or none. It replaces those that are there by',
    'other names, and removes none:',
    '  {"platforms": {"NAME": {"buyers": {"ID": {"MEMBER": "NAME"}}, "sellers": {"ID": {"MEMBER": "NAME"}}}}}',
    '--platform NAME  takes {"buyers": …, "sellers": …}, all of it of one platform.',
    '--dry-run        only tells what it would come to, and what is wrong.',
    `A file has at most ${partiesPerFileMax} parties, since a server that runs waits until they are written.`,
  ],
  run: async (words, terminal) => {
    const [file, by] = [words.required('FILE'), localActor(words, terminal)];
    const bytes = await readParties(file);
    try {
      return await changeRegistry(terminal, async ({ execute }, { provider: { parties: rules } }) => {
        if (rules === undefined) return refuseViolations([nobodyRegistered]);
        const read = readPartyFile(bytes, words.text('platform'), rules);
        const isTrial = words.has('dry-run');
        const counts = await execute({ kind: 'ImportParties', by, ...read, isTrial });
        terminal.print(words.has('json') ? JSON.stringify(counts) : toldOf(counts, isTrial));
      });
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      for (const fault of faultsOf(error)) terminal.printError(`artseal: ${file}: ${fault}`);
      return exitCodes.failed;
    }
  },
};

/** Reads a file, or what comes through a pipe. Throws an Error for more than a file of parties may have. */
async function readParties(file: string): Promise<Uint8Array> {
  const bytes = await readBounded(file, partyFileBytesMax);
  if (bytes.length <= partyFileBytesMax) return bytes;
  throw new Error(
    `${file} has more than ${partyFileBytesMax / 1_048_576} MiB, the most that is read: split it`,
  );
}

const toldOf = ({ added, replaced, unchanged }: Imported, isTrial: boolean): string =>
  `${added} added, ${replaced} replaced, ${unchanged} unchanged${isTrial ? ' (a trial: nothing was written)' : ''}`;

/** A line for each fault that an error names, and one for the others. */
const faultsOf = ({ violations, more }: ValidationError): string[] => [
  ...violations.map(({ field, rule }) => `${field} ${rule}`),
  ...(more > 0 ? [`and ${more} more`] : []),
];

/** `artseal party` */
export const party: CommandGroup = {
  summary: 'say who the buyers and sellers of platforms are at the payment provider',
  actions: [add, list, remove, importing],
  details: [
    'NAME is that of the platform or internal system that filed the artwork. A change is effective when the command returns.',
    'An open order goes on with the parties that it was opened for. artseal audit-log shows who changed what, and the --reason.',
  ],
};

/** The names that parties have at a provider, a line for each role. */
function namesAt({ name, parties }: ProviderKind): string[] {
  return Object.entries(parties ?? {}).map(([role, rules]) => {
    const members = Object.keys(rules).map((member) => `${member}=…`);
    return `  ${name}, ${role}: ${members.join(',')}`;
  });
}

/** The names that a word gives, such as customer=cus_1,paymentMethod=pm_1. Throws UsageError. */
function namesOf(word: string): PartyNames {
  const names = new Map<string, string>();
  for (const pair of word.split(',')) {
    const [member = '', ...rest] = pair.split('=').map((part) => part.trim());
    if (names.has(member)) throw new UsageError(`takes ${member} once in --names`);
    names.set(member, rest.join('='));
  }
  return Object.fromEntries(names);
}

function partyOf(words: Words): { readonly role: PartyRole; readonly partyId: string } {
  return { role: roleOf(words), partyId: words.required('id') };
}

/** The role that a word names, in capitals or not. Throws UsageError. */
function roleOf(words: Words): PartyRole {
  const role = partyRoles.find((known) => known === words.text('role')?.toUpperCase());
  if (role === undefined)
    throw new UsageError(`takes --role ${partyRoles.join('|')}, not '${words.text('role')}'`);
  return role;
}

function show(
  { caller, role, partyId, names, addedAtS }: Party,
  words: Words,
  { print }: Terminal,
  timestamp: ReturnType<typeof timestampsOf>,
): void {
  const told = Object.entries(names).map(([member, name]) => `${member}=${name}`);
  const columns = [role.padEnd(6), partyId, told.join(','), caller];
  print(
    words.has('json')
      ? JSON.stringify({ platform: caller, role, partyId, names, addedAt: timestamp(addedAtS) })
      : columns.join('  '),
  );
}
