import type { IssuedKey } from '../access/issuance.ts';
import { type Agreement, checkOverlap, overlapS, statusAt, type Tier, tiers } from '../domain/caller.ts';
import { refuseViolations } from '../domain/violation.ts';
import type { Registry } from '../registry.ts';
import { allOf, type StoredKey } from '../store/store.ts';
import { readWords, type Words } from './arguments.ts';
import { type Actions, type Command, runAction, type Terminal } from './command.ts';
import { withRegistry } from './registry.ts';

/** What `artseal key` can do. */
const actions: Actions = new Map(
  Object.entries<(words: string[], terminal: Terminal) => Promise<void>>({
    create: async (words, terminal) => {
      const read = readWords(words, 0, {
        name: { type: 'string' },
        tier: { type: 'string' },
        'monthly-quota': { type: 'string' },
        json: { type: 'boolean' },
      });
      const agreement = agreementOf(read);
      await withRegistry(terminal, async (registry) =>
        show(registry, await registry.issuance.issueKey(agreement), read, terminal),
      );
    },
    rotate: async (words, terminal) => {
      const read = readWords(words, 1, { overlap: { type: 'string' }, json: { type: 'boolean' } });
      const overlap = wholeNumber(read.text('overlap') ?? String(overlapS.default));
      refuseViolations(checkOverlap(overlap));
      await withRegistry(terminal, async (registry) => {
        const keyId = await keyIdOf(registry.store, read.positionals[0]);
        await show(registry, await registry.issuance.rotateKey(keyId, overlap), read, terminal);
      });
    },
    list: async (words, terminal) => {
      const read = readWords(words, 0, { json: { type: 'boolean' } });
      await withRegistry(terminal, async ({ store }) => {
        for await (const key of allOf(store.callers.listKeys))
          terminal.print(read.has('json') ? JSON.stringify(shown(key)) : line(key));
      });
    },
    suspend: (words, terminal) => setStatus(words, terminal, 'SUSPENDED'),
    resume: (words, terminal) => setStatus(words, terminal, 'ACTIVE'),
    revoke: (words, terminal) => setStatus(words, terminal, 'REVOKED'),
  }),
);

/** `artseal key` */
export const key: Command = {
  usage: 'key create|list|rotate|suspend|resume|revoke',
  summary: 'issue and govern the API keys of platforms',
  details: [
    `key create --name NAME --tier ${Object.keys(tiers).join('|')} [--monthly-quota N|unlimited] [--json]`,
    '    registers a platform; its secret is shown this once. ENTERPRISE needs --monthly-quota.',
    'key list [--json]',
    'key rotate KEY_ID [--overlap SECONDS] [--json]',
    `    issues a further key; the old one works on for ${overlapS.default} seconds unless --overlap says otherwise.`,
    'key suspend KEY_ID, key resume KEY_ID, key revoke KEY_ID',
    'KEY_ID is the keyId (key_…) or the API key itself. A running server honours changes at once.',
  ],
  run: (words, terminal) => runAction(actions, words, terminal),
};

/** The number that a word is in digits alone; NaN for any other word, an empty one too. */
function wholeNumber(word: string): number {
  return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}

function agreementOf(read: Words): Agreement {
  const tier = read.required('tier');
  const quota = read.text('monthly-quota');
  const unlimited = quota === 'unlimited';
  return {
    name: read.required('name'),
    tier: Object.keys(tiers).includes(tier) ? (tier as Tier) : undefined,
    monthlyQuota: quota === undefined || unlimited ? undefined : wholeNumber(quota),
    unlimited,
  };
}

async function show(
  { store }: Registry,
  { key, apiSecret }: IssuedKey,
  read: Words,
  { print }: Terminal,
): Promise<void> {
  await store.durable();
  const { keyId, apiKey, caller, tier } = key;
  const issued = { keyId, apiKey, apiSecret, caller, tier };
  if (read.has('json')) return print(JSON.stringify(issued));
  for (const [name, value] of Object.entries(issued)) print(`${name.padEnd(9)} ${value}`);
  print('The secret is shown this once; hand it over by a safe way.');
}

async function setStatus(words: string[], terminal: Terminal, status: StoredKey['status']): Promise<void> {
  const read = readWords(words, 1, { json: { type: 'boolean' } });
  await withRegistry(terminal, async ({ store }) => {
    const changed = await store.callers.setKeyStatus(await keyIdOf(store, read.positionals[0]), status);
    await store.durable();
    terminal.print(read.has('json') ? JSON.stringify(shown(changed)) : line(changed));
  });
}

/** The key's id, given that or the API key. */
async function keyIdOf(store: Registry['store'], word = ''): Promise<string> {
  return (await store.admission.findKey(word))?.keyId ?? word;
}

function shown(key: StoredKey) {
  const { keyId, apiKey, caller, tier, monthlyQuota, expiresAtS } = key;
  const status = statusAt(key, Date.now() / 1000);
  return { keyId, apiKey, caller, tier, monthlyQuota: monthlyQuota ?? 'unlimited', status, expiresAtS };
}

function line(key: StoredKey): string {
  const { keyId, caller, tier, monthlyQuota, status, expiresAtS } = shown(key);
  const expiry = expiresAtS === null ? '' : `  expires ${new Date(expiresAtS * 1000).toISOString()}`;
  return `${keyId}  ${status.padEnd(9)}  ${tier.padEnd(10)}  ${String(monthlyQuota).padStart(9)}  ${caller}${expiry}`;
}
