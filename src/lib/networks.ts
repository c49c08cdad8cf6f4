import { BlockList, isIP, SocketAddress } from 'node:net';

/** Addresses that have their first bits in common. */
export interface Network {
  readonly family: 'ipv4' | 'ipv6';
  readonly address: string;
  /** How many bits. */
  readonly bits: number;
}

/** An address in its one form; that of IPv4 where it is an IPv4 address in IPv6 (::ffff:192.0.2.1). */
export function canonical(address: string): string {
  if (isIP(address) !== 6) return address;
  const { address: text } = new SocketAddress({ address: address.replace(/%.*$/, ''), family: 'ipv6' });
  const mapped = text.replace(/^::ffff:/, '');
  return isIP(mapped) === 4 ? mapped : text;
}

/**
 * What one client may have of all addresses: an IPv4 address, or the network of 48 bits of an IPv6 address, as sites are given
 * it. Anything else is returned as it is.
 */
export function givenNetwork(address: string): string {
  const text = canonical(address);
  if (isIP(text) !== 6) return text;
  const [left = [], right = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 3).join(':')}::/48`;
}

/** Whether an IP address is one of this machine alone: 127.0.0.0/8 or ::1. */
export function isLoopback(address: string): boolean {
  return canonical(address) === '::1' || /^127(\.\d+){3}$/.test(canonical(address));
}

/** Reads an address or a network such as 192.0.2.0/24; undefined if it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  if (isIP(host) === 0 || host.includes('%')) return undefined;
  const address = canonical(host);
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  const width = family === 'ipv4' ? 32 : 128;
  // The bits of an IPv4 address in IPv6 are counted with the 96 before it.
  const before = family === 'ipv4' && isIP(host) === 6 ? 96 : 0;
  const bits = digits === undefined ? width : Number(digits) - before;
  return bits >= 0 && bits <= width ? { family, address, bits } : undefined;
}

/** The addresses that a machine has for itself alone. */
export const loopback: readonly Network[] = [
  { family: 'ipv4', address: '127.0.0.0', bits: 8 },
  { family: 'ipv6', address: '::1', bits: 128 },
];

/** The addresses of these networks, to check others against. */
export function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { family, address, bits } of networks) list.addSubnet(address, bits, family);
  return list;
}
