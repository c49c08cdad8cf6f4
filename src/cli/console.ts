import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import { readInternalUrl } from '../config/config.ts';
import { consoleTokens, isScope, scopes } from '../domain/token.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { type Command, UsageError } from './command.ts';
import { userName } from './connection.ts';
import { calls, present } from './session.ts';
import { scopeNumber } from './token.ts';

/** The scopes of a session by default: all that the console uses. */
const defaultScopes = 'read,escrow,operate';

/** Where an SSH tunnel to a Unix socket begins. */
const tunnel = 'http://127.0.0.1:8081';

/** `artseal console` */
export const consoleCommand: Command = {
  usage: 'console [--scopes SCOPE,…] [--reason TEXT] [--json]',
  summary: 'print a link that opens the console in a browser, once',
  details: [
    'The link works once, within ten minutes. The session that it opens ends after eight hours, or when you sign out. Anyone who opens',
    'the link first gets its rights: do not send or log it.',
    `--scopes  grants some of ${scopes.join(', ')}; the default is ${defaultScopes}. --scopes read makes`,
    '          a session that changes nothing.',
    'Without --url, the link leads to ARTSEAL_INTERNAL_ADDR on this machine: open it here, or through an SSH tunnel.',
  ],
  ...calls(async ({ words, env, client, reason, show }) => {
    const named = (words.text('scopes') ?? defaultScopes).split(',');
    if (!named.every(isScope))
      throw new UsageError(`takes --scopes of ${scopes.join(', ')}, not '${named.join(',')}'`);
    const url = words.text('url');
    const address = url === undefined || url.startsWith('unix:') ? readInternalUrl(env) : url;
    const socket = address.startsWith('unix:') ? address.slice('unix:'.length) : undefined;
    const { prefix, validS } = consoleTokens.link;
    const response = await client(AdminService).createToken({
      name: `${prefix}${userName(env)}`,
      scopes: named.map(scopeNumber),
      expiresAt: utcTimestamp(Date.now() + validS * 1_000),
      reason,
    });
    const { tokenId, expiresAt } = present(response.token);
    const origin = socket === undefined ? address.replace(/\/$/, '') : tunnel;
    const link = `${origin}/console#link=${response.text}`;
    const where =
      socket === undefined
        ? ''
        : `The internal API listens on a Unix socket. Run ssh -L 8081:${socket} SERVER on your machine first, or replace ${tunnel} by the address of your proxy. `;
    show(
      { link, tokenId, scopes: named, expiresAt },
      link,
      `${where}It opens the console once, until ${expiresAt}.`,
    );
  }),
};
