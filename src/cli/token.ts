import { isScope, scopes, type TokenTerms, tokenStatusAt } from '../domain/token.ts';
import type { StoredToken } from '../store/caller-commands.ts';
import {
  type Action,
  type CommandGroup,
  fieldLines,
  readInstant,
  UsageError,
  type Words,
} from './command.ts';
import { changeRegistry, changes, nowS, reads, type Session } from './session.ts';

const create: Action = {
  usage:
    'token create --name NAME [--scopes SCOPE,…] [--operator] [--expires DATE|DURATION] [--platform NAME] [--reason TEXT] [--json]',
  details: [
    'Creates a token and shows it once. Without --scopes and --operator it has no permissions.',
    '--scopes    grants some of: read (filings, provenance, orders, events, webhooks), file (artworks), escrow (open, release and refund',
    '            orders), webhook (manage webhook endpoints), link (create public links to evidence, and revoke them),',
    '            operate (AdminService and ReviewService). Example: read,file',
    '--operator  grants all scopes.',
    '--expires   takes a day of ARTSEAL_TIME_ZONE, a time (2027-01-01T09:00:00+08:00) or a duration (90d).',
    '--platform  binds the token to a platform: it sees and files only what belongs to the platform, without rate limit and',
    '            quota. It is rejected while the platform is suspended, and cannot have operate.',
  ],
  run: (words, terminal) =>
    changeRegistry(words, terminal, async (session) => {
      const terms = termsOf(words, session.config.timeZone);
      const { stored, token } = await session.issuance.issueToken(terms, session.actor());
      const { tokenId, status: _, revokedAt: _1, ...rest } = shown(stored, session);
      const { name, platform, expiresAt } = rest;
      session.show(
        { tokenId, token, ...rest },
        ...fieldLines({ tokenId, token, name, scopes: granted(stored), platform, expires: expiresAt }, 10),
        'The token is shown only once: the server stores only its SHA-256.',
      );
      if (stored.scopes.length === 0)
        terminal.printError(
          `artseal: ${tokenId} has no permissions: grant some with --scopes ${scopes.join(',')}`,
        );
    }),
};

const list: Action = {
  usage: 'token list [--json]',
  details: ['Lists all tokens with their status, scopes, platform and end.'],
  run: reads(({ execute, showAll }) => showAll((page) => execute({ kind: 'ListTokens', page }), show)),
};

const revoke: Action = {
  usage: 'token revoke TOKEN_ID [--reason TEXT] [--json]',
  details: ['Rejects calls with the token for ever.'],
  run: changes(async (session) => {
    const [by, tokenId] = [session.actor(), session.words.required('TOKEN_ID')];
    show(await session.execute({ kind: 'RevokeToken', by, tokenId }), session);
  }),
};

/** `artseal token` */
export const token: CommandGroup = {
  summary: 'create, list and revoke the bearer tokens of internal systems',
  actions: [create, list, revoke],
  details: ['A change is effective when the command returns.'],
};

/** Reads the terms of a new token. Throws UsageError. */
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
    expiresAtS: readInstant(words, 'expires', 'AFTER', timeZone),
    platform: words.text('platform'),
  };
}

function show(found: StoredToken, session: Session): void {
  const token = shown(found, session);
  const { tokenId, name, platform, status, expiresAt } = token;
  const columns = [tokenId, status.padEnd(7), granted(found).padEnd(scopes.join(',').length), name];
  if (platform !== null) columns.push(`for ${platform}`);
  if (found.platform?.status === 'SUSPENDED') columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  session.show(token, columns.join('  '));
}

function shown(found: StoredToken, { timestamp }: Session) {
  const { tokenId, caller: name, scopes, platform, expiresAtS, revokedAtS } = found;
  const status = tokenStatusAt(found, nowS());
  const at = (atS: number | null) => (atS === null ? null : timestamp(atS));
  const ends = { expiresAt: at(expiresAtS), revokedAt: at(revokedAtS) };
  return { tokenId, name, scopes, platform: platform?.caller ?? null, status, ...ends };
}

const granted = ({ scopes }: StoredToken): string => scopes.join(',') || 'nothing';
