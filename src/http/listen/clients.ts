import { isIP, type Socket } from 'node:net';
import { canonical, listOf, type Network } from '../../lib/networks.ts';

/** Tells the address of who made a request: of the peer of its connection, or whom a proxy names that is trusted. */
export type ClientOf = (socket: Socket, headers: Headers) => string | undefined;

/** Headers by their names in lower case, as Node has them: several of a name in one text, separated by commas. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What a connection over a Unix socket has in place of an address. */
const unixPeer = 'unix';
/** How many proxies a request may have passed; whom the next one names is not looked at. */
const proxiesMax = 16;
/** How much of X-Forwarded-For is looked at, from its end, in characters. */
const forwardedMax = 1_024;

/** Who is at the other end of a connection. */
interface Peer {
  readonly address: string | undefined;
  readonly isProxy: boolean;
}

/**
 * Tells clients where these networks are those of proxies: their X-Forwarded-For is read from its end, where the last
 * proxy has put whom it got the request from, up to the first address that is not a proxy's. What stands before that
 * anybody may have written. An entry that is no address ends it, too: nothing but addresses is ever told.
 */
export function createClientOf(proxies: readonly Network[]): ClientOf {
  const trusted = listOf(proxies);
  const peers = new WeakMap<Socket, Peer>();
  const isProxy = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  function meet(socket: Socket): Peer {
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
    const { address, isProxy } = peers.get(socket) ?? meet(socket);
    const forwarded = isProxy ? headers['x-forwarded-for'] : undefined;
    return address === undefined || forwarded === undefined ? address : namedBy(address, String(forwarded));
  };
}

/** The name of a peer without an address: that of a Unix socket, or undefined for one that was gone before it was asked. */
function localName(socket: Socket): string | undefined {
  return socket.localFamily === undefined && !socket.destroyed ? unixPeer : undefined;
}

/** The address that an entry of X-Forwarded-For has, with or without a port; undefined where it has none. */
function addressIn(entry: string): string | undefined {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d{1,5})?$|^([\d.]+):\d{1,5}$/.exec(entry) ?? [];
  const text = bracketed ?? withPort ?? entry;
  // An IPv6 address with a zone may carry any text.
  return isIP(text) === 0 || text.includes('%') ? undefined : canonical(text);
}
