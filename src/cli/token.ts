import { isScope, scopes, type TokenTerms, tokenStatusAt } from '../domain/token.ts';
import type { StoredToken } from '../store/caller-commands.ts';
import { allOf } from '../store/paging.ts';
import { localActor } from './actor.ts';
import { type Action, type CommandGroup, type Terminal, UsageError, type Words } from './command.ts';
import { readInstant, timestampsOf } from './instant.ts';
import { changeRegistry, withRegistry } from './registry.ts';

const create: Action = {
  usage:
    'token create --name NAME [--scopes SCOPE,…] [--operator] [--expires DATE|DURATION] [--platform NAME] [--reason TEXT] [--json]',
  details: [
    'issues a token, shown this once. Without --scopes or --operator it may do nothing.',
    '--scopes    what it may do, as in read,file: read (filings, provenance, orders, events), file (artworks), escrow (open,',
    '            release and refund orders), webhook (have events sent to endpoints), link (make links to evidence, which anybody may',
    '            open, and revoke them), operate (AdminService).',
    '--operator  grants all of them.',
    '--expires   ends it at the beginning of a day of ARTSEAL_TIME_ZONE, at a time (2027-01-01T09:00:00+08:00), or after 90d.',
    "--platform  has it act as that platform: it sees and files what is that platform's, without rate and quota, and is",
    '            refused while the platform is suspended. It cannot have operate.',
  ],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ issuance }, { timeZone }) => {
      const by = localActor(words, terminal);
      const { stored, token } = await issuance.issueToken(termsOf(words, timeZone), by);
      const { tokenId, status: _, revokedAt: _1, ...rest } = shown(stored, timestampsOf(timeZone));
      if (words.has('json')) terminal.print(JSON.stringify({ tokenId, token, ...rest }));
      else {
        const { name, platform, expiresAt } = rest;
        const lines = { tokenId, token, name, scopes: may(stored), platform, expires: expiresAt };
        for (const [label, value] of Object.entries(lines))
          if (value !== null) terminal.print(`${label.padEnd(10)} ${value}`);
        terminal.print('The token is shown this once; only its SHA-256 is stored.');
      }
      if (stored.scopes.length === 0)
        terminal.printError(
          `artseal: ${tokenId} may do nothing: --scopes ${scopes.join(',')} says what a token may do`,
        );
    }),
};

const list: Action = {
  usage: 'token list [--json]',
  details: ['what each may do, for which platform, until when, and whether it has ended.'],
  run: (words, terminal) =>
    withRegistry(terminal, async ({ execute }, { timeZone }) => {
      const tokens = allOf((page) => execute({ kind: 'ListTokens', page }));
      for await (const found of tokens) show(found, words, terminal, timestampsOf(timeZone));
    }),
};

const revoke: Action = {
  usage: 'token revoke TOKEN_ID [--reason TEXT] [--json]',
  details: ['refuses the token for ever.'],
  run: (words, terminal) =>
    changeRegistry(terminal, async ({ execute }, { timeZone }) => {
      const [by, tokenId] = [localActor(words, terminal), words.required('TOKEN_ID')];
      const revoked = await execute({ kind: 'RevokeToken', by, tokenId });
      show(revoked, words, terminal, timestampsOf(timeZone));
    }),
};

/** `artseal token` */
export const token: CommandGroup = {
  summary: 'issue and revoke the bearer tokens of internal systems',
  actions: [create, list, revoke],
  details: ['A change is effective when the command returns.'],
};

const nowS = (): number => Math.floor(Date.now() / 1000);

/** What a command line asks for. Throws UsageError. */
function termsOf(words: Words, timeZone: string): TokenTerms {
  const chosen = words.text('scopes');
  if (chosen !== undefined && words.has('operator'))
    throw new UsageError('takes only one of --scopes, --operator');
  const named = chosen?.split(',') ?? [];
  if (named.some((word) => !isScope(word)))
    throw new UsageError(`takes --scopes of ${scopes.join(', ')}, not '${chosen}'`);
  return {
    name: words.required('name'),
    scopes: words.has('operator') ? scopes : named,
    expiresAtS: readInstant(words, 'expires', 'AFTER', { timeZone, nowS: nowS() }),
    platform: words.text('platform'),
  };
}

type Timestamp = ReturnType<typeof timestampsOf>;

function show(found: StoredToken, words: Words, { print }: Terminal, timestamp: Timestamp): void {
  print(words.has('json') ? JSON.stringify(shown(found, timestamp)) : line(found, timestamp));
}

function shown(found: StoredToken, timestamp: Timestamp) {
  const { tokenId, caller: name, scopes, platform, expiresAtS, revokedAtS } = found;
  const status = tokenStatusAt(found, nowS());
  const at = (atS: number | null) => (atS === null ? null : timestamp(atS));
  const ends = { expiresAt: at(expiresAtS), revokedAt: at(revokedAtS) };
  return { tokenId, name, scopes, platform: platform?.caller ?? null, status, ...ends };
}

function line(found: StoredToken, timestamp: Timestamp): string {
  const { tokenId, name, platform, status, expiresAt } = shown(found, timestamp);
  const columns = [tokenId, status.padEnd(7), may(found).padEnd(scopes.join(',').length), name];
  if (platform !== null) columns.push(`for ${platform}`);
  if (found.platform?.status === 'SUSPENDED') columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  return columns.join('  ');
}

const may = ({ scopes: granted }: StoredToken): string => granted.join(',') || 'nothing';
