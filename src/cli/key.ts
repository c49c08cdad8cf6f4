import { type Agreement, checkOverlap, type KeyStatus, overlapS, statusAt } from '../domain/caller.ts';
import { refuseViolations } from '../domain/violation.ts';
import type { IssuedKey } from '../keys/issuance.ts';
import type { Registry } from '../operations/registry.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import { limitsOf, tierChoice, tierOf, wholeNumber } from './agreement.ts';
import type { Action, CommandGroup, Terminal, Words } from './command.ts';
import { timestampsOf } from './instant.ts';
import { changeRegistry, withRegistry } from './registry.ts';
import { refuseUnknownToServing } from './sealing.ts';

const create: Action = {
  usage: `key create --name NAME --tier ${tierChoice} [--monthly-quota N|unlimited] [--filing-cap N] [--reason TEXT] [--json]`,
  details: [
    'registers a platform; its secret is shown this once. ENTERPRISE needs --monthly-quota. --filing-cap limits the filing numbers',
    'that it may use of each year.',
  ],
  run: async (words, terminal) => {
    const agreement = agreementOf(words);
    return changeRegistry(terminal, async (registry, { dataDir }) => {
      refuseUnknownToServing(dataDir, registry);
      const by = localActor(words, terminal);
      showIssued(await registry.issuance.issueKey(agreement, by), words, terminal);
    });
  },
};

const list: Action = {
  usage: 'key list [--json]',
  details: [],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const keys = allOf((page) => execute({ kind: 'ListKeys', page }));
      for await (const found of keys) show(found, words, terminal, timestampsOf(timeZone));
    }),
};

const rotate: Action = {
  usage: 'key rotate KEY_ID [--overlap SECONDS] [--reason TEXT] [--json]',
  details: [
    `issues a further key; the old one works on for ${overlapS.default} seconds unless --overlap says otherwise.`,
    'The new key of a suspended one is suspended, too.',
  ],
  run: async (words, terminal) => {
    const overlap = wholeNumber(words.text('overlap') ?? String(overlapS.default));
    refuseViolations(checkOverlap(overlap));
    return changeRegistry(terminal, async (registry, { dataDir }) => {
      const { store, issuance } = registry;
      refuseUnknownToServing(dataDir, registry);
      const rotated = await issuance.rotateKey(keyIdOf(store, words), overlap, localActor(words, terminal));
      const { status, platformStatus } = rotated.key;
      showIssued(rotated, words, terminal, { status, platformStatus });
    });
  },
};

/** An action that gives a key a status. */
function setting(word: string, status: KeyStatus, detail: string): Action {
  return {
    usage: `key ${word} KEY_ID [--reason TEXT] [--json]`,
    details: [detail],
    run: (words, terminal) =>
      changeRegistry(terminal, async ({ store, execute }, { timeZone }) => {
        const [by, keyId] = [localActor(words, terminal), keyIdOf(store, words)];
        const changed = await execute({ kind: 'SetKeyStatus', by, keyId, status });
        show(changed, words, terminal, timestampsOf(timeZone));
      }),
  };
}

/** `artseal key` */
export const key: CommandGroup = {
  summary: 'issue and govern the API keys of platforms',
  actions: [
    create,
    list,
    rotate,
    setting('suspend', 'SUSPENDED', 'refuses the key until it is resumed.'),
    setting('resume', 'ACTIVE', 'lets it in again.'),
    setting('revoke', 'REVOKED', 'refuses it for ever.'),
  ],
  details: [
    'KEY_ID is the keyId (key_…) or the API key itself. A change is effective when the command returns.',
    'A whole platform is suspended by platform suspend NAME. artseal audit-log shows who changed what, and the --reason.',
  ],
};

const agreementOf = (words: Words): Agreement => ({
  name: words.required('name'),
  tier: tierOf(words),
  ...limitsOf(words),
});

/** Shows a key that is stored; `more` are members of the JSON besides, which lines say in words. */
function showIssued(
  { key: { keyId, apiKey, caller, tier, status, platformStatus }, apiSecret }: IssuedKey,
  words: Words,
  { print }: Terminal,
  more: Partial<StoredKey> = {},
): void {
  const issued = { keyId, apiKey, apiSecret, caller, tier };
  if (words.has('json')) {
    print(JSON.stringify({ ...issued, ...more }));
    return;
  }
  for (const [name, value] of Object.entries(issued)) print(`${name.padEnd(9)} ${value}`);
  print('The secret is shown this once; hand it over by a safe way.');
  if (status === 'SUSPENDED') print(`Suspended like the key before it: key resume ${keyId} lets it in.`);
  if (platformStatus === 'SUSPENDED') print('The platform is suspended: platform resume lets it in.');
}

/** The id of the key that KEY_ID names, which may be the API key itself. */
function keyIdOf(store: Registry['store'], words: Words): string {
  const word = words.required('KEY_ID');
  return store.findKey(word)?.keyId ?? word;
}

type Timestamp = ReturnType<typeof timestampsOf>;

function show(found: StoredKey, words: Words, { print }: Terminal, timestamp: Timestamp): void {
  const told = shown(found, timestamp);
  print(words.has('json') ? JSON.stringify(told) : line(told));
}

function shown(found: StoredKey, timestamp: Timestamp) {
  const { keyId, apiKey, caller, tier, monthlyQuota, expiresAtS, platformStatus } = found;
  const expiresAt = expiresAtS === null ? null : timestamp(expiresAtS);
  const status = statusAt(found, Date.now() / 1000);
  const agreed = { tier, monthlyQuota: monthlyQuota ?? 'unlimited' };
  return { keyId, apiKey, caller, ...agreed, status, expiresAt, platformStatus };
}

function line(told: ReturnType<typeof shown>): string {
  const { keyId, caller, tier, monthlyQuota, status, expiresAt, platformStatus } = told;
  const columns = [keyId, status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), caller];
  if (platformStatus === 'SUSPENDED') columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  return columns.join('  ');
}
