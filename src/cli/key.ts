import { oneOf } from '../config/settings.ts';
import {
  type AgreedLimits,
  checkOverlap,
  type KeyStatus,
  overlapS,
  statusAt,
  type Tier,
  tiers,
} from '../domain/caller.ts';
import { rejectViolations } from '../domain/violation.ts';
import type { IssuedKey } from '../keys/issuance.ts';
import type { StoredKey } from '../store/caller-commands.ts';
import { type Action, type CommandGroup, fieldLines, numberOf, readFlag, type Words } from './command.ts';
import { changes, reads, refuseUnknownToServing, type Session } from './session.ts';

/** The tiers in a usage line. */
export const tierChoice = Object.keys(tiers).join('|');

const create: Action = {
  usage: `key create --name NAME --tier ${tierChoice} [--monthly-quota N|unlimited] [--filing-cap N] [--reason TEXT] [--json]`,
  details: [
    'Registers a platform and creates its key. The secret is shown once. ENTERPRISE needs --monthly-quota. --filing-cap limits',
    'how many filings the platform may make in a year.',
  ],
  run: changes(async (session) => {
    const { words, issuance, actor } = session;
    refuseUnknownToServing(session);
    const agreement = { name: words.required('name'), tier: tierOf(words), ...limitsOf(words) };
    showIssued(await issuance.issueKey(agreement, actor()), session);
  }),
};

const list: Action = {
  usage: 'key list [--json]',
  details: ['Lists all keys, the oldest first.'],
  run: reads(({ execute, showAll }) => showAll((page) => execute({ kind: 'ListKeys', page }), show)),
};

const rotate: Action = {
  usage: 'key rotate KEY_ID [--overlap SECONDS] [--reason TEXT] [--json]',
  details: [
    `Creates another key. The old one stays valid for ${overlapS.default} seconds, or for --overlap.`,
    'If the old key is suspended, the new one is, too.',
  ],
  run: changes(async (session) => {
    const { words, issuance, actor } = session;
    const overlap = numberOf(words.text('overlap') ?? String(overlapS.default));
    rejectViolations(checkOverlap(overlap));
    refuseUnknownToServing(session);
    const rotated = await issuance.rotateKey(keyIdOf(session), overlap, actor());
    const { status, platformStatus } = rotated.key;
    showIssued(rotated, session, { status, platformStatus });
  }),
};

/** An action that sets the status of a key. */
function setting(word: string, status: KeyStatus, detail: string): Action {
  return {
    usage: `key ${word} KEY_ID [--reason TEXT] [--json]`,
    details: [detail],
    run: changes(async (session) => {
      const [by, keyId] = [session.actor(), keyIdOf(session)];
      show(await session.execute({ kind: 'SetKeyStatus', by, keyId, status }), session);
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
    setting('suspend', 'SUSPENDED', 'Rejects calls with the key until it is resumed.'),
    setting('resume', 'ACTIVE', 'Accepts calls with a suspended key again.'),
    setting('revoke', 'REVOKED', 'Rejects calls with the key for ever.'),
  ],
  details: [
    'KEY_ID is the keyId (key_…) or the API key. A change is effective when the command returns.',
    'To suspend a whole platform, use platform suspend NAME. artseal audit-log lists who changed what, and the --reason.',
  ],
};

/** Reads `--tier`; undefined without it. Throws UsageError. */
export const tierOf = (words: Words): Tier | undefined =>
  readFlag(words, 'tier', oneOf(Object.keys(tiers) as Tier[]));

/** Reads `--monthly-quota N|unlimited` and `--filing-cap N`; the members of missing flags are undefined. */
export function limitsOf(words: Words): Omit<AgreedLimits, 'tier'> {
  const [quota, cap] = [words.text('monthly-quota'), words.text('filing-cap')];
  const unlimited = quota === 'unlimited';
  const monthlyQuota = quota === undefined || unlimited ? undefined : numberOf(quota);
  return { monthlyQuota, unlimited, filingCap: cap === undefined ? undefined : numberOf(cap) };
}

/** Shows a new key; only JSON has the members of `more`. */
function showIssued(
  { key: { keyId, apiKey, caller, tier, status, platformStatus }, apiSecret }: IssuedKey,
  session: Session,
  more: Partial<StoredKey> = {},
): void {
  const issued = { keyId, apiKey, apiSecret, caller, tier };
  const lines = [
    ...fieldLines(issued, 9),
    'The secret is shown only once. Hand it over by a secure channel.',
  ];
  if (status === 'SUSPENDED')
    lines.push(`The key is suspended like the old one: key resume ${keyId} lets it in.`);
  if (platformStatus === 'SUSPENDED') lines.push('The platform is suspended: platform resume lets it in.');
  session.show({ ...issued, ...more }, ...lines);
}

/** The id of the key that KEY_ID names: an id, or the API key itself. */
function keyIdOf({ store, words }: Session): string {
  const word = words.required('KEY_ID');
  return store.findKey(word)?.keyId ?? word;
}

function show(found: StoredKey, { timestamp, show }: Session): void {
  const { keyId, apiKey, caller, tier, expiresAtS, platformStatus } = found;
  const expiresAt = expiresAtS === null ? null : timestamp(expiresAtS);
  const status = statusAt(found, Date.now() / 1000);
  const monthlyQuota = found.monthlyQuota ?? 'unlimited';
  const columns = [keyId, status.padEnd(9), tier.padEnd(10), String(monthlyQuota).padStart(9), caller];
  if (platformStatus === 'SUSPENDED') columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  const key = { keyId, apiKey, caller, tier, monthlyQuota, status, expiresAt, platformStatus };
  show(key, columns.join('  '));
}
