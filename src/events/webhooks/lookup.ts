import { Resolver } from 'node:dns/promises';
import { DeliveryError } from './delivery-error.ts';

/** Finds the addresses of a name, at least one. Rejects with DeliveryError; an aborted signal gives it up. */
export type LookUp = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** How long a name server may take for an answer, and how often it is asked. */
const timeout = { timeout: 2_500, tries: 2 };

/**
 * Asks name servers, each `address` or `address:port`, by default those of this machine. Neither /etc/hosts nor search domains are
 * looked at: getaddrinfo, which does, waits in one of few threads, so that two names whose servers are silent would hold up all others.
 */
export function createLookUp(servers?: readonly string[]): LookUp {
  return async (name, signal) => {
    const resolver = new Resolver(timeout);
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.removeEventListener('abort', cancel);
    const addresses = found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    throw notFound((found[0] as PromiseRejectedResult).reason);
  };
}

function notFound({ code, message }: NodeJS.ErrnoException): DeliveryError {
  const isKnown = code === 'ENOTFOUND' || code === 'ENODATA';
  return new DeliveryError(isKnown ? 'its host has no address' : 'its host could not be looked up', message);
}
