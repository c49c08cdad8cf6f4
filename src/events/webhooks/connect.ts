import { once } from 'node:events';
import { isIP, isIPv4, isIPv6, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AddressPolicy } from './addresses.ts';
import { DeliveryError } from './delivery-error.ts';
import type { LookUp } from './lookup.ts';
import { connectThrough } from './proxy.ts';
import { knownAddresses } from './target.ts';

/** How many addresses of a name are tried. */
const addressesMax = 8;

/** Connects to a host at an address that may be sent to, without TLS yet. Rejects where it cannot, and with the reason of the signal. */
export type Connect = (host: string, port: number, signal: AbortSignal) => Promise<Socket>;

/** What connections are made with. */
export interface ConnectDependencies {
  readonly judge: AddressPolicy;
  readonly lookUp: LookUp;
  /** Undefined for none. */
  readonly proxy: URL | undefined;
  /** For a proxy that speaks TLS. */
  readonly secureContext: SecureContext;
}

/**
 * A name is looked up once for a connection, and what was judged is what is connected to: that it stands for another address a moment
 * later changes nothing. A proxy is told such an address, too, never the name.
 */
export function createConnect({ judge, lookUp, proxy, secureContext }: ConnectDependencies): Connect {
  /** What a platform is told does not say which addresses a name has: those of a private network are none of its business. */
  function refused(host: string, addresses: readonly string[]): DeliveryError {
    const found = addresses.map((address) => `${address} is ${judge(address)}`);
    return new DeliveryError('its host has no public address', `${host}: ${found.join(', ')}`);
  }

  async function judgedAddresses(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const found = knownAddresses(host) ?? (await orAborted(lookUp(host, signal), signal));
    const addresses = found.slice(0, addressesMax).filter((address) => judge(address) === undefined);
    if (addresses.length === 0) throw refused(host, found.slice(0, addressesMax));
    return addresses;
  }

  async function connectTo(host: string, port: number, addresses: readonly string[], signal: AbortSignal) {
    const socket = netConnect({ host, port, lookup: giving(addresses), autoSelectFamily: true });
    try {
      await once(socket, 'connect', { signal });
      // Whatever was judged before: where the connection leads is what counts, and nothing has been written to it.
      const { remoteAddress = '' } = socket;
      if (judge(remoteAddress) !== undefined) throw refused(host, [remoteAddress]);
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  return async (host, port, signal) => {
    signal.throwIfAborted();
    const addresses = await judgedAddresses(host, signal);
    if (proxy === undefined) return connectTo(host, port, addresses, signal);
    // Few proxies reach IPv6.
    const address = addresses.find(isIPv4) ?? `[${addresses.find(isIPv6)}]`;
    return connectThrough(proxy, `${address}:${port}`, secureContext, signal);
  };
}

/** Has sockets find these addresses, all of which they then try. */
function giving(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, _options, callback) => callback(null, all);
}

/** Waits until the signal and no longer, with whose reason it then rejects. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const give = () => reject(signal.reason);
  signal.addEventListener('abort', give, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', give);
  }
}
