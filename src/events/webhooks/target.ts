import { isIP } from 'node:net';
import { deceptiveCharacterRule } from '../../domain/text.ts';
import { canonical, isLoopback, listOf, type Network, parseNetwork } from '../../lib/networks.ts';

/**
 * Returns undefined if requests may go to an IP address; else what it is, to follow "it is": "in a private network". An IPv4
 * address in IPv6 (::ffff:192.0.2.1) is treated as that IPv4 address. Text that is no address is forbidden.
 */
export type AddressPolicy = (address: string) => string | undefined;

/**
 * Forbidden networks: all special-purpose addresses (RFC 6890) that are not globally reachable. They include the prefixes that
 * carry an IPv4 address (6to4, Teredo), where no endpoint is.
 */
const forbidden: Readonly<Record<string, readonly string[]>> = {
  'this machine': ['0.0.0.0/8', '127.0.0.0/8', '::', '::1'],
  'in a private network': [
    ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16'],
    ...['fc00::/7', 'fec0::/10'],
  ],
  'on this link': ['169.254.0.0/16', 'fe80::/10'],
  // A public address that only machines of Azure reach, and that serves their configuration.
  'a service of the cloud for its machines': ['168.63.129.16'],
  'for multicast': ['224.0.0.0/4', 'ff00::/8'],
  'for special purposes': [
    ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '198.18.0.0/15', '198.51.100.0/24'],
    ...['203.0.113.0/24', '240.0.0.0/4'],
    ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
  ],
};

/** All globally reachable IPv6 addresses. NAT64, for example, is outside. */
const globalUnicast = listOfTexts(['2000::/3']);

/** The operator allows the networks in `allowed`, forbidden or not. */
export function createAddressPolicy(allowed: readonly Network[]): AddressPolicy {
  const allowedList = listOf(allowed);
  const kinds = Object.entries(forbidden).map(([kind, texts]) => ({ kind, list: listOfTexts(texts) }));
  return (text) => {
    const address = canonical(text);
    const version = isIP(address);
    if (version === 0) return 'no address';
    const family = version === 4 ? 'ipv4' : 'ipv6';
    if (allowedList.check(address, family)) return undefined;
    const found = kinds.find(({ list }) => list.check(address, family));
    if (found !== undefined) return found.kind;
    return version === 4 || globalUnicast.check(address, family) ? undefined : 'for special purposes';
  };
}

function listOfTexts(texts: readonly string[]) {
  return listOf(texts.map(parseNetwork).filter((network) => network !== undefined));
}

/** The longest URL of an endpoint, in characters. */
const targetMax = 2_048;

/** The addresses of localhost and all names below it, without a lookup (RFC 6761). */
const localhost = ['127.0.0.1', '::1'];

/** Stricter than the URL parser, which accepts more and finds another host in it than other parsers do. */
const absoluteForm = /^https?:\/\/[^/\s\p{Cc}\\][^\s\p{Cc}\\]*$/iu;

/** What `checkTarget` accepts. */
interface TargetRules {
  readonly policy: AddressPolicy;
  /** Whether an endpoint on this machine may have an http URL. */
  readonly plainLoopback: boolean;
}

/**
 * Returns the rule that the URL of an endpoint breaks, to follow the name of its field; undefined if it is accepted. Any port is
 * accepted. A name is not looked up: its addresses are checked for each connection.
 */
export function checkTarget(text: string, { policy, plainLoopback }: TargetRules): string | undefined {
  const deceptiveRule = deceptiveCharacterRule(text);
  if (deceptiveRule !== undefined) return deceptiveRule;
  const url = text.length <= targetMax && absoluteForm.test(text) ? URL.parse(text) : null;
  const known = url === null ? [] : (knownAddresses(hostOf(url)) ?? []);
  const isAllowed = url?.protocol === 'https:' || (plainLoopback && known.some(isLoopback));
  if (url === null || !isAllowed) {
    const plain = plainLoopback ? ', or http:// at localhost, 127.0.0.1 or [::1]' : '';
    return `must be an absolute https:// URL of at most ${targetMax} characters${plain}`;
  }
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password';
  if (text.includes('#')) return 'must have no #';
  if (url.port === '0') return 'must have a port from 1 to 65535';
  const kinds = known.map(policy);
  if (kinds.length === 0 || kinds.includes(undefined)) return undefined;
  return `must have a host at a public address: ${url.hostname} is ${kinds[0]}`;
}

/** The host of a URL in the form that sockets need: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** The addresses of a host that needs no lookup, an address or localhost; undefined for other names. */
export function knownAddresses(host: string): readonly string[] | undefined {
  if (isIP(host) !== 0) return [host];
  return /(^|\.)localhost\.?$/.test(host) ? localhost : undefined;
}
