import { providers } from '../config/payment-providers.ts';
import type { PartyRole } from '../domain/escrow-terms.ts';
import { checkParty, nobodyRegistered, type ProviderIds, partyRoles } from '../domain/party.ts';
import { rejectViolations, ValidationError } from '../domain/violation.ts';
import type { ProviderKind } from '../payments/provider.ts';
import type { Imported, Party } from '../store/party-commands.ts';
import { type Action, type CommandGroup, exitCodes, UsageError, type Words } from './command.ts';
import { readBounded } from './files.ts';
import { partiesPerFileMax, partyFileBytesMax, readPartyFile } from './party-file.ts';
import { changeRegistry, changes, localActor, reads, type Session } from './session.ts';

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
    const role = words.text('role') === undefined ? undefined : roleOf(words);
    const filter = { caller: words.text('platform'), role };
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
    const bytes = await readParties(file);
    try {
      return await changeRegistry(words, terminal, async ({ execute, config, actor, show }) => {
        const rules = config.provider.parties;
        if (rules === undefined) return rejectViolations([nobodyRegistered]);
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

/** Reads a file of parties. Throws an Error if it is too long. */
async function readParties(file: string): Promise<Uint8Array> {
  const bytes = await readBounded(file, partyFileBytesMax);
  if (bytes.length <= partyFileBytesMax) return bytes;
  throw new Error(`${file} is larger than ${partyFileBytesMax / 1_048_576} MiB: split it`);
}

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

function partyOf(words: Words): { readonly role: PartyRole; readonly partyId: string } {
  return { role: roleOf(words), partyId: words.required('id') };
}

/** Reads `--role`, in any case. Throws UsageError. */
function roleOf(words: Words): PartyRole {
  const role = partyRoles.find((known) => known === words.text('role')?.toUpperCase());
  if (role === undefined)
    throw new UsageError(`takes --role ${partyRoles.join('|')}, not '${words.text('role')}'`);
  return role;
}

function show({ caller, role, partyId, providerIds, addedAtS }: Party, { show, timestamp }: Session): void {
  const ids = Object.entries(providerIds).map(([member, id]) => `${member}=${id}`);
  show(
    { platform: caller, role, partyId, providerIds, addedAt: timestamp(addedAtS) },
    [role.padEnd(6), partyId, ids.join(','), caller].join('  '),
  );
}
