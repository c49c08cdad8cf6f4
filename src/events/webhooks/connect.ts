import { once } from 'node:events';
import { isIP, isIPv4, isIPv6, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { AddressPolicy } from './addresses.ts';
import { DeliveryError } from './delivery-error.ts';
import type { LookUp } from './lookup.ts';
import { connectThrough } from './proxy.ts';
import { knownAddresses } from './target.ts';

/** How many addresses of a name may be tried. */
const addressesMax = 8;

/** Connects to a host, at an address that the policy allows, without TLS. Rejects with the reason of the signal if it is aborted. */
export type Connect = (host: string, port: number, signal: AbortSignal) => Promise<Socket>;

interface ConnectDependencies {
  readonly policy: AddressPolicy;
  readonly lookUp: LookUp;
  /** Undefined for none. */
  readonly proxy: URL | undefined;
  /** For an https: proxy. */
  readonly secureContext: SecureContext;
}

/**
 * Looks a name up once for each connection and connects to the address that the policy checked. A name that gets another
 * address in between (DNS rebinding) has no effect. A proxy gets the checked address too, never the name.
 */
export function createConnect({ policy, lookUp, proxy, secureContext }: ConnectDependencies): Connect {
  /** The message has no addresses: platforms must not learn those of a private network. */
  function forbidden(host: string, addresses: readonly string[]): DeliveryError {
    const found = addresses.map((address) => `${address} is ${policy(address)}`);
    return new DeliveryError('its host has no public address', `${host}: ${found.join(', ')}`);
  }

  async function allowedAddresses(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const found = knownAddresses(host) ?? (await lookUp(host, signal));
    signal.throwIfAborted();
    const addresses = found.slice(0, addressesMax).filter((address) => policy(address) === undefined);
    if (addresses.length === 0) throw forbidden(host, found.slice(0, addressesMax));
    return addresses;
  }

  async function connectTo(host: string, port: number, addresses: readonly string[], signal: AbortSignal) {
    const socket = netConnect({ host, port, lookup: lookupOf(addresses), autoSelectFamily: true });
    try {
      await once(socket, 'connect', { signal });
      // The address of the connection itself is checked again before anything is written to it.
      const { remoteAddress = '' } = socket;
      if (policy(remoteAddress) !== undefined) throw forbidden(host, [remoteAddress]);
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  return async (host, port, signal) => {
    signal.throwIfAborted();
    const addresses = await allowedAddresses(host, signal);
    if (proxy === undefined) return connectTo(host, port, addresses, signal);
    // Few proxies reach IPv6.
    const address = addresses.find(isIPv4) ?? `[${addresses.find(isIPv6)}]`;
    return connectThrough(proxy, `${address}:${port}`, secureContext, signal);
  };
}

/** Makes sockets try these addresses instead of a lookup. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, _options, callback) => callback(null, all);
}
