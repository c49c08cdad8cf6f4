import {
  AdminService,
  Platform_Status,
  type Token,
  Token_Scope,
  Token_Status,
} from '../../gen/artseal/v1/admin_pb.ts';
import { readTimeZone } from '../config/config.ts';
import { isScope, type Scope, scopes } from '../domain/token.ts';
import { utcTimestamp } from '../domain/utc.ts';
import {
  type Action,
  type CommandGroup,
  fieldLines,
  readInstant,
  UsageError,
  type Words,
} from './command.ts';
import { type CallSession, calls, present, wordIn } from './session.ts';

const create: Action = {
  usage:
    'token create --name NAME [--scopes SCOPE,…] [--operator] [--expires DATE|DURATION] [--platform NAME] [--reason TEXT] [--json]',
  details: [
    'Creates a token and shows it once. Without --scopes and --operator it has no permissions.',
    '--scopes    grants some of: read (filings, provenance, orders, events, webhooks), file (artworks), escrow (open, release and refund',
    '            orders), webhook (manage webhook endpoints), link (create public links to evidence, and revoke them),',
    '            operate (all that operators do). Example: read,file',
    '--operator  grants all scopes.',
    '--expires   takes a day of ARTSEAL_TIME_ZONE, a time (2027-01-01T09:00:00+08:00) or a duration (90d).',
    '--platform  binds the token to a platform: it sees and files only what belongs to the platform, without rate limit and',
    '            quota. It is rejected while the platform is suspended, and cannot have operate.',
  ],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const request = { name: words.required('name'), ...termsOf(words, readTimeZone(session.env)), reason };
    const response = await client(AdminService).createToken(request);
    const { tokenId, status: _, revokedAt: _1, ...rest } = shown(present(response.token));
    const { name, scopes: granted, platform, expiresAt } = rest;
    const token = response.text;
    session.show(
      { tokenId, token, ...rest },
      ...fieldLines({ tokenId, token, name, scopes: grantedText(granted), platform, expires: expiresAt }, 10),
      'The token is shown only once: the server stores only its SHA-256.',
    );
    if (granted.length > 0) return undefined;
    session.printError(
      `artseal: ${tokenId} has no permissions: grant some with --scopes ${scopes.join(',')}`,
    );
    return undefined;
  }),
};

const list: Action = {
  usage: 'token list [--json]',
  details: ['Lists all tokens with their status, scopes, platform and end.'],
  ...calls(({ client, showAll }) => showAll('tokens', (page) => client(AdminService).listTokens(page), show)),
};

const revoke: Action = {
  usage: 'token revoke TOKEN_ID [--reason TEXT] [--json]',
  details: ['Rejects calls with the token for ever.'],
  ...calls(async (session) => {
    const { words, client, reason } = session;
    const request = { tokenId: words.required('TOKEN_ID'), reason };
    show(present((await client(AdminService).revokeToken(request)).token), session);
  }),
};

/** `artseal token` */
export const token: CommandGroup = {
  summary: 'create, list and revoke the bearer tokens of internal systems',
  actions: [create, list, revoke],
  details: ['A change is effective when the command returns.'],
};

/** Reads the terms of a new token besides its name. Throws UsageError. */
function termsOf(words: Words, timeZone: string) {
  const chosen = words.text('scopes');
  if (chosen !== undefined && words.has('operator'))
    throw new UsageError('takes only one of --scopes, --operator');
  const named = chosen?.split(',') ?? [];
  if (!named.every(isScope)) throw new UsageError(`takes --scopes of ${scopes.join(', ')}, not '${chosen}'`);
  const expiresAtS = readInstant(words, 'expires', 'AFTER', timeZone);
  return {
    scopes: (words.has('operator') ? scopes : named).map(scopeNumber),
    expiresAt: expiresAtS === undefined ? '' : utcTimestamp(expiresAtS * 1_000),
    platform: words.text('platform') ?? '',
  };
}

/** The number of a scope in messages. */
export const scopeNumber = (scope: Scope) => Token_Scope[scope.toUpperCase() as Uppercase<Scope>];

function show(found: Token, session: CallSession): void {
  const token = shown(found);
  const { tokenId, name, platform, status, expiresAt } = token;
  const granted = grantedText(token.scopes);
  const columns = [tokenId, status.padEnd(7), granted.padEnd(scopes.join(',').length), name];
  if (platform !== null) columns.push(`for ${platform}`);
  if (found.platformStatus === Platform_Status.SUSPENDED) columns.push('(platform suspended)');
  if (expiresAt !== null) columns.push(`expires ${expiresAt}`);
  session.show(token, columns.join('  '));
}

function shown({ tokenId, name, scopes: granted, platform, status, expiresAt, revokedAt }: Token) {
  return {
    ...{ tokenId, name, scopes: granted.map((scope) => wordIn(Token_Scope, scope).toLowerCase()) },
    ...{ platform: platform || null, status: wordIn(Token_Status, status) },
    ...{ expiresAt: expiresAt || null, revokedAt: revokedAt || null },
  };
}

const grantedText = (granted: readonly string[]): string => granted.join(',') || 'nothing';
