import { isIP } from 'node:net';
import { canonical, listOf, type Network, parseNetwork } from '../../lib/networks.ts';

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
