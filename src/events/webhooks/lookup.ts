import { Resolver } from 'node:dns/promises';
import { DeliveryError } from './delivery-error.ts';

/** Returns the addresses of a name, at least one. Rejects with DeliveryError. The signal aborts it. */
export type LookUp = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** How long a name server may take to respond, in milliseconds, and how often it is queried. */
const limits = { timeout: 2_500, tries: 2 };

/**
 * Queries name servers, each `address` or `address:port`, by default those of this machine. Does not read /etc/hosts or search
 * domains: getaddrinfo does, but blocks one of few threads, and two names with silent servers would delay all other lookups.
 */
export function createLookUp(servers?: readonly string[]): LookUp {
  return async (name, signal) => {
    const resolver = new Resolver(limits);
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.removeEventListener('abort', cancel);
    const addresses = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (addresses.length > 0) return addresses;
    throw notFound((found[0] as PromiseRejectedResult).reason);
  };
}

function notFound({ code, message }: NodeJS.ErrnoException): DeliveryError {
  const isKnown = code === 'ENOTFOUND' || code === 'ENODATA';
  return new DeliveryError(isKnown ? 'its host has no address' : 'its host could not be looked up', message);
}
