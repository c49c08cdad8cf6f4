import { isLoopback } from '../../lib/networks.ts';
import { DatabaseError } from '../engine/failure.ts';

/** Where a database is, and as whom to connect. */
export interface Address {
  readonly user: string;
  readonly database: string;
  /** In the order in which they are tried. */
  readonly hosts: readonly Host[];
}

/** A server. */
export interface Host {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly usesTls: boolean;
}

const example = 'postgres://artseal@db.example.com/artseal?sslmode=verify-full';

const pattern = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/;

/**
 * Parses the URL of a database, which may name several hosts: `postgres://user@host1,host2:5433/name?sslmode=verify-full`. The folder
 * of a Unix socket is percent-encoded in place of the host, or given as `?host=`. Throws DatabaseError, whose message does not repeat
 * the URL: it may contain a password.
 */
export function parseUrl(url: string): Address {
  // Also in a URL that is malformed, such as one whose password contains a slash.
  if (/^[^:]*:\/\/[^@]*:[^@]*@/.test(url)) refuseUrl('contains a password: put it into the password file');
  const [, user = '', authority = '', database = '', query = ''] = pattern.exec(url) ?? [];
  const params = new URLSearchParams(query);
  if (params.has('password')) refuseUrl('contains a password: put it into the password file');
  if (!pattern.test(url)) refuseUrl(`is not the URL of a database, such as ${example}`);
  const unknown = [...params.keys()].find((name) => !['host', 'port', 'sslmode'].includes(name));
  if (unknown !== undefined) refuseUrl(`has the unknown parameter ${unknown}: remove it`);
  if (user === '' || database === '') refuseUrl(`must name a user and a database, such as ${example}`);
  return { user: decoded(user), database: decoded(database), hosts: hostsOf(authority, params) };
}

function hostsOf(authority: string, params: URLSearchParams): Host[] {
  const named = params.get('host');
  if (authority !== '' && named !== null) refuseUrl('names hosts twice: remove the parameter host');
  const port = params.get('port') ?? '5432';
  const mode = params.get('sslmode');
  if (mode !== null && mode !== 'verify-full' && mode !== 'disable')
    refuseUrl('has a parameter sslmode that is neither verify-full nor disable');
  // A port follows a host of the authority alone.
  const hosts = named === null ? authority.split(',') : named.split(',').map(encodeURIComponent);
  return hosts.map((text) => hostOf(text, port, mode));
}

function hostOf(text: string, defaultPort: string, mode: string | null): Host {
  const [, v6, name = v6, port = defaultPort] =
    /^(?:\[([\da-fA-F:.]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  if (name === undefined) refuseUrl(`must name a host, such as ${example}`);
  const host = decoded(name);
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    refuseUrl('has a port that is not a number from 1 to 65535');
  const isSocket = host.startsWith('/');
  const isLocal = isSocket || host === 'localhost' || isLoopback(host);
  if (mode === 'disable' && !isLocal)
    refuseUrl(`must have sslmode=verify-full, since ${host} is another machine`);
  return { host, port: Number(port), usesTls: !isSocket && (mode === 'verify-full' || !isLocal) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuseUrl('has a % that does not begin an encoded character: encode it as %25');
  }
}

function refuseUrl(rule: string): never {
  throw new DatabaseError(`the URL of the database ${rule}.`);
}
