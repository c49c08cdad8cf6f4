import {
  AdminService,
  type CreateKeyRequest,
  type CreateKeyResponse,
  type Key,
  Key_Status,
  Key_Tier,
  Platform_Status,
  type RotateKeyResponse,
} from '../../gen/artseal/v1/admin_pb.ts';
import { oneOf } from '../config/settings.ts';
import { overlapS, type Tier, tiers } from '../domain/caller.ts';
import { type Action, type CommandGroup, fieldLines, numberOf, readFlag, type Words } from './command.ts';
import { type CallSession, calls, present, wordIn } from './session.ts';

/** The largest number of 32 bits. The service has the real bound. */
const int32Max = 2_147_483_647;

/** The tiers in a usage line. */
export const tierChoice = Object.keys(tiers).join('|');

const create: Action = {
  usage: `key create --name NAME --tier ${tierChoice} [--monthly-quota N|unlimited] [--filing-cap N] [--reason TEXT] [--json]`,
  details: [
    'Registers a platform and creates its key. The secret is shown once. ENTERPRISE needs --monthly-quota. --filing-cap limits',
    'how many filings the platform may make in a year.',
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const agreement = { name: words.required('name'), tier: tierOf(words), ...limitsOf(words) };
    showIssued(await client(AdminService).createKey({ ...agreement, reason }), session);
  }),
};

const list: Action = {
  usage: 'key list [--json]',
  details: ['Lists all keys, the oldest first.'],
  ...calls(({ client, showAll }) => showAll('keys', (page) => client(AdminService).listKeys(page), show)),
};

const rotate: Action = {
  usage: 'key rotate KEY_ID [--overlap SECONDS] [--reason TEXT] [--json]',
  details: [
    `Creates another key. The old one stays valid for ${overlapS.default} seconds, or for --overlap.`,
    'If the old key is suspended, the new one is, too.',
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const overlap = words.text('overlap');
    const request = {
      keyId: words.required('KEY_ID'),
      reason,
      ...(overlap && { overlapSeconds: Math.min(numberOf(overlap), int32Max) }),
    };
    const rotated = await client(AdminService).rotateKey(request);
    showIssued(rotated, session, statusesOf(present(rotated.key)));
  }),
};

function setting(word: string, method: 'suspendKey' | 'resumeKey' | 'revokeKey', detail: string): Action {
  return {
    usage: `key ${word} KEY_ID [--reason TEXT] [--json]`,
    details: [detail],
    ...calls(async (session) => {
      const { client, words, reason } = session;
      show(
        present((await client(AdminService)[method]({ keyId: words.required('KEY_ID'), reason })).key),
        session,
      );
    }),
  };
}

/** `artseal key` */
export const key: CommandGroup = {
  summary: 'create, list, rotate, suspend and revoke the API keys of platforms',
  actions: [
    create,
    list,
    rotate,
    setting('suspend', 'suspendKey', 'Rejects calls with the key until it is resumed.'),
    setting('resume', 'resumeKey', 'Accepts calls with a suspended key again.'),
    setting('revoke', 'revokeKey', 'Rejects calls with the key for ever.'),
  ],
  details: [
    'KEY_ID is the keyId (key_…) or the API key. A change is effective when the command returns.',
    'To suspend a whole platform, use platform suspend NAME. artseal audit-log lists who changed what, and the --reason.',
  ],
};

/** Reads `--tier`; unspecified without it. Throws UsageError. */
export const tierOf = (words: Words): Key_Tier =>
  Key_Tier[readFlag(words, 'tier', oneOf(Object.keys(tiers) as Tier[])) ?? 'TIER_UNSPECIFIED'];

/** Reads `--monthly-quota N|unlimited` and `--filing-cap N`; only the members of given flags. */
export function limitsOf(words: Words): Pick<CreateKeyRequest, 'monthlyQuota' | 'unlimited' | 'filingCap'> {
  const unlimited = words.text('monthly-quota') === 'unlimited';
  const [quota, cap] = [unlimited ? undefined : words.text('monthly-quota'), words.text('filing-cap')];
  return {
    unlimited,
    ...(quota && { monthlyQuota: BigInt(numberOf(quota)) }),
    ...(cap && { filingCap: BigInt(numberOf(cap)) }),
  };
}

const statusesOf = ({ status, platformStatus }: Key) => ({
  status: wordIn(Key_Status, status),
  platformStatus: wordIn(Platform_Status, platformStatus),
});

/** Shows a new key; only JSON has the members of `more`. */
function showIssued(
  response: CreateKeyResponse | RotateKeyResponse,
  session: CallSession,
  more: object = {},
): void {
  const key = present(response.key);
  const { keyId, apiKey, caller, tier, status, platformStatus } = key;
  const issued = { keyId, apiKey, apiSecret: response.apiSecret, caller, tier: wordIn(Key_Tier, tier) };
  const lines = [
    ...fieldLines(issued, 9),
    'The secret is shown only once. Hand it over by a secure channel.',
  ];
  if (status === Key_Status.SUSPENDED)
    lines.push(`The key is suspended like the old one: key resume ${keyId} lets it in.`);
  if (platformStatus === Platform_Status.SUSPENDED)
    lines.push('The platform is suspended: platform resume lets it in.');
  session.show({ ...issued, ...more }, ...lines);
}

function show(key: Key, { show }: CallSession): void {
  const { keyId, apiKey, caller } = key;
  const { status, platformStatus } = statusesOf(key);
  const [tier, monthlyQuota] = [wordIn(Key_Tier, key.tier), quotaShown(key)];
  const expiresAt = key.expiresAt || null;
  const columns = [keyId, status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), caller];
  if (platformStatus === 'SUSPENDED') columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  show({ keyId, apiKey, caller, tier, monthlyQuota, status, expiresAt, platformStatus }, columns.join('  '));
}

/** A monthly quota as commands show it. */
export const quotaShown = ({ monthlyQuota }: Pick<Key, 'monthlyQuota'>): number | 'unlimited' =>
  monthlyQuota === undefined ? 'unlimited' : Number(monthlyQuota);
