import { BlockList, isIP, type Socket, SocketAddress } from 'node:net';

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

/** Returns the address of a request's client: the peer of the connection, or the client that a trusted proxy names. */
export type ClientOf = (socket: Socket, headers: Headers) => string | undefined;

/** Headers by lower-case name, as Node has them: repeated ones are joined by commas. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** The client of a connection over a Unix socket. */
const unixPeer = 'unix';
/** How many entries of X-Forwarded-For are read, from its end. */
const proxiesMax = 16;
/** How many characters of X-Forwarded-For are read, from its end. */
const forwardedMax = 1_024;

interface Peer {
  readonly address: string | undefined;
  readonly isProxy: boolean;
}

/**
 * Finds clients behind proxies in these networks. X-Forwarded-For is read from its end, where the last proxy appends its client,
 * up to the first address that is not a proxy's: a client can write anything before that. Reading also stops at an entry that
 * is no address, so the result is always an address.
 */
export function createClientOf(proxies: readonly Network[]): ClientOf {
  const trusted = listOf(proxies);
  const peers = new WeakMap<Socket, Peer>();
  const isProxy = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  function peerOf(socket: Socket): Peer {
    const { remoteAddress } = socket;
    const address = remoteAddress === undefined ? undefined : canonical(remoteAddress);
    const peer = {
      address: address ?? localName(socket),
      isProxy: address !== undefined && isProxy(address),
    };
    peers.set(socket, peer);
    return peer;
  }

  function namedBy(proxy: string, forwarded: string): string {
    const named = forwarded.slice(-forwardedMax).split(',').slice(-proxiesMax).reverse();
    let client = proxy;
    for (const entry of named) {
      const address = addressIn(entry.trim());
      if (address === undefined) return client;
      client = address;
      if (!isProxy(client)) return client;
    }
    return client;
  }

  return (socket, headers) => {
    const { address, isProxy } = peers.get(socket) ?? peerOf(socket);
    const forwarded = isProxy ? headers['x-forwarded-for'] : undefined;
    return address === undefined || forwarded === undefined ? address : namedBy(address, String(forwarded));
  };
}

/** The name of a peer without an address: `unix`, or undefined if the connection is already closed. */
function localName(socket: Socket): string | undefined {
  return socket.localFamily === undefined && !socket.destroyed ? unixPeer : undefined;
}

/** The address in an entry of X-Forwarded-For, which may have a port; undefined if there is none. */
function addressIn(entry: string): string | undefined {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(entry) ?? [];
  const text = bracketed ?? withPort ?? entry;
  // The zone of an IPv6 address can be any text.
  return isIP(text) === 0 || text.includes('%') ? undefined : canonical(text);
}
