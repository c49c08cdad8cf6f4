import { BlockList, isIP, SocketAddress } from 'node:net';

/** The addresses with the same first bits. */
export interface Network {
  readonly family: 'ipv4' | 'ipv6';
  readonly address: string;
  /** The number of common bits. */
  readonly bits: number;
}

/** The canonical text of an address, without zone; an IPv4-mapped address (::ffff:192.0.2.1) becomes IPv4. */
export function canonical(address: string): string {
  if (isIP(address) !== 6) return address;
  const { address: text } = new SocketAddress({ address: address.replace(/%.*$/, ''), family: 'ipv6' });
  const mapped = text.replace(/^::ffff:/, '');
  return isIP(mapped) === 4 ? mapped : text;
}

/**
 * The network that one client controls: an IPv4 address, or the /48 of an IPv6 address, which is what a site is assigned. Any
 * other text is returned as it is.
 */
export function givenNetwork(address: string): string {
  const text = canonical(address);
  if (isIP(text) !== 6) return text;
  const [left = [], right = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 3).join(':')}::/48`;
}

/** Whether an IP address is a loopback address: 127.0.0.0/8 or ::1. */
export function isLoopback(address: string): boolean {
  return canonical(address) === '::1' || /^127(\.\d+){3}$/.test(canonical(address));
}

/** Parses an address or a network such as 192.0.2.0/24; undefined for any other text. */
export function parseNetwork(text: string): Network | undefined {
  const [, host = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  if (isIP(host) === 0 || host.includes('%')) return undefined;
  const address = canonical(host);
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
  const width = family === 'ipv4' ? 32 : 128;
  // An IPv4-mapped network counts the 96 bits of its prefix, too.
  const before = family === 'ipv4' && isIP(host) === 6 ? 96 : 0;
  const bits = digits === undefined ? width : Number(digits) - before;
  return bits >= 0 && bits <= width ? { family, address, bits } : undefined;
}

/** The loopback networks. */
export const loopback: readonly Network[] = [
  { family: 'ipv4', address: '127.0.0.0', bits: 8 },
  { family: 'ipv6', address: '::1', bits: 128 },
];

/** Makes a list to check addresses against. */
export function listOf(networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const { family, address, bits } of networks) list.addSubnet(address, bits, family);
  return list;
}
