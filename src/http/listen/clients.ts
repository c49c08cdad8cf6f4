import { isIP, type Socket } from 'node:net';
import { canonical, listOf, type Network } from '../../lib/networks.ts';

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
