import { isAbsolute } from 'node:path';
import { createCalendar } from '../domain/calendar.ts';
import { isEmail } from '../domain/registration.ts';
import { readWitnessKey, type Witness } from '../evidence/log/witness.ts';
import type { ListenAddress, TcpAddress } from '../http/listen/address.ts';
import { socketPathBytesMax } from '../http/listen/address.ts';
import { type Network, parseNetwork } from '../lib/networks.ts';
import { durationMs } from '../lib/timing.ts';
import { SettingError } from '../payments/provider.ts';

// Each function reads the text of one setting. It throws SettingError with the rule that the text breaks.

/** Reads host:port, or unix: and a path. */
export function parseInternalAddress(text: string): ListenAddress {
  const path = /^unix:(.*)$/s.exec(text)?.[1];
  if (path === undefined) return parseAddress(text);
  const isGood = isAbsolute(path) && Buffer.byteLength(path) <= socketPathBytesMax && !/\s/.test(path);
  if (!isGood)
    throw new SettingError(
      `must be unix: and an absolute path of at most ${socketPathBytesMax} bytes without blanks`,
    );
  return { path };
}

/** Reads addresses and networks, separated by commas. */
export function parseNetworks(text: string): Network[] {
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const network = parseNetwork(part.trim());
      if (network === undefined)
        throw new SettingError('must be addresses and networks such as 127.0.0.1,10.0.0.0/8,fd00::/8');
      return network;
    });
}

/** Reads the URL of a forward proxy. */
export function parseProxy(text: string): URL {
  const url = URL.parse(text);
  const isGood =
    (url?.protocol === 'http:' || url?.protocol === 'https:') && url.port !== '0' && hasReadableUser(url);
  if (isGood && url.pathname === '/' && url.search === '' && url.hash === '') return url;
  throw new SettingError('must be the address of a proxy, http://host:port or https://, without a path');
}

/** Whether user and password of a URL can be read: what is escaped in them has to be UTF-8. */
function hasReadableUser({ username, password }: URL): boolean {
  try {
    decodeURIComponent(`${username}:${password}`);
    return true;
  } catch {
    return false;
  }
}

/** Reads the URL of a database on PostgreSQL. The engine checks its parts when it connects. */
export function parseDatabaseUrl(text: string): string {
  if (/^[^:]*:\/\/[^@]*:[^@]*@|[?&]password=/.test(text))
    throw new SettingError(
      'must not contain a password: write it into a file, and name that in ARTSEAL_DATABASE_PASSWORD_FILE',
    );
  if (/^postgres(ql)?:\/\//.test(text)) return text;
  throw new SettingError('must be the URL of a database, such as postgres://artseal@db.example.com/artseal');
}

/** Reads the URL of a mail server. */
export function parseSmtpUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && url.password !== '')
    throw new SettingError(
      'must not contain a password: write it into a file, and name that in ARTSEAL_SMTP_PASSWORD_FILE',
    );
  const isGood =
    (url?.protocol === 'smtp:' || url?.protocol === 'smtps:') && url.hostname !== '' && hasReadableUser(url);
  if (isGood && ['', '/'].includes(url.pathname) && url.search === '' && url.hash === '') return url;
  throw new SettingError(
    'must be smtp://USER@HOST:PORT or smtps://, such as smtps://artseal@mail.example.com',
  );
}

/** Reads an e-mail address. */
export function parseEmail(text: string): string {
  if (isEmail(text)) return text;
  throw new SettingError('must be an e-mail address such as registry@example.com');
}

/** Reads host:port. */
export function parseAddress(text: string): TcpAddress {
  const [, host = '', digits = ''] = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === '' || port > 65_535) throw new SettingError('must be host:port with a port up to 65535');
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

/** Returns a reader of whole numbers within these bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const isShort = text.length <= String(max).length;
    const number = isShort && /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new SettingError(`must be a whole number from ${min} to ${max}`);
  };
}

/** Returns a reader of periods within these bounds, as milliseconds. */
export function period(min: string, max: string): (text: string) => number {
  return (text) => {
    const ms = durationMs(text);
    if (ms >= durationMs(min) && ms <= durationMs(max)) return ms;
    throw new SettingError(`must be a period such as 90m, 12h or 7d, from ${min} to ${max}`);
  };
}

/** Reads a number of items, at least one. */
export const parseCount = wholeNumber(1, Number.MAX_SAFE_INTEGER);

/** Reads the period of backups, as milliseconds. */
export const parseBackupPeriod = period('1m', '20d');

/** Reads the number of backups to keep. */
export const parseBackupsKept = wholeNumber(1, 1_000);

const logOriginMax = 200;

/** Reads the name of an evidence log. */
export function parseLogOrigin(text: string): string {
  const isGood = /^[!-*,-~]+$/.test(text) && !text.includes('://') && text.length <= logOriginMax;
  if (isGood) return text;
  throw new SettingError(
    `must be a URL without its scheme, of ASCII without blanks and +, of at most ${logOriginMax} characters`,
  );
}

/** Reads an IANA time zone. */
export function parseTimeZone(name: string): string {
  try {
    // An offset or a whole date-time would be taken as well, but neither knows of changes to come.
    if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) throw new RangeError('not a name');
    createCalendar(name);
    return name;
  } catch {
    throw new SettingError('must be an IANA time zone such as Asia/Shanghai');
  }
}

/** Reads an ISO 4217 code. */
export function parseCurrency(code: string): string {
  if (!Intl.supportedValuesOf('currency').includes(code))
    throw new SettingError('must be an ISO 4217 code such as CNY');
  return code;
}

/** The most witnesses of a log: the server asks each one for each checkpoint. */
export const witnessesMax = 16;

/**
 * Reads a file of witnesses: a verifier key, a blank and a submission prefix a line. Empty lines and lines that begin with #
 * are skipped. Throws an Error that names the line.
 */
export function parseWitnesses(text: string): readonly Witness[] {
  const witnesses: Witness[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    try {
      witnesses.push(parseWitness(line.trim()));
    } catch (error) {
      throw new Error(`line ${index + 1}: ${(error as Error).message}`);
    }
  }
  if (witnesses.length === 0) throw new Error('it names no witness');
  if (witnesses.length > witnessesMax) throw new Error(`it names more than ${witnessesMax} witnesses`);
  const names = witnesses.map(({ key }) => key.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`it names ${twice} twice`);
  return witnesses;
}

function parseWitness(line: string): Witness {
  const [vkey = '', url = '', ...more] = line.split(/\s+/);
  if (url === '' || more.length > 0) throw new Error('has to be a verifier key, a space and a URL');
  return { key: readWitnessKey(vkey), url: parseHttpUrl(url).replace(/\/$/, '') };
}

/** Reads the URL of a server. Witnesses and time-stamping authorities sign what they send, so http is enough. */
export function parseHttpUrl(text: string): string {
  const url = URL.parse(text);
  const isGood =
    (url?.protocol === 'https:' || url?.protocol === 'http:') && url.username === '' && url.password === '';
  if (isGood && url.search === '' && url.hash === '') return url.href;
  throw new SettingError('must be a URL with https:// or http://, without a password, ? and #');
}
