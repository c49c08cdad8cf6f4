import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { request } from 'node:http';
import { isIP, isIPv4, isIPv6, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import {
  createSecureContext,
  getCACertificates,
  type SecureContext,
  TLSSocket,
  connect as tlsConnect,
} from 'node:tls';
import { type AddressPolicy, hostOf, knownAddresses } from './target.ts';

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

/** Connects by `connect`, then TLS. The certificate has to be valid for the host. */
export function createSecureConnect(connect: Connect, secureContext: SecureContext): Connect {
  return async (host, port, signal) =>
    tlsConnect({
      ...{ socket: await connect(host, port, signal), host, servername: isIP(host) === 0 ? host : '' },
      // Explicit, because the environment can turn it off.
      ...{ ALPNProtocols: ['http/1.1'], secureContext, rejectUnauthorized: true },
    });
}

/** Makes sockets try these addresses instead of a lookup. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, _options, callback) => callback(null, all);
}

/** Returns the addresses of a name, at least one. Rejects with DeliveryError. The signal aborts it. */
export type LookUp = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** How long a name server may take to respond, in milliseconds, and how often it is queried. */
const lookUpLimits = { timeout: 2_500, tries: 2 };

/**
 * Queries name servers, each `address` or `address:port`, by default those of this machine. Does not read /etc/hosts or search
 * domains: getaddrinfo does, but blocks one of few threads, and two names with silent servers would delay all other lookups.
 */
export function createLookUp(servers?: readonly string[]): LookUp {
  return async (name, signal) => {
    const resolver = new Resolver(lookUpLimits);
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

/** TLS 1.2 or 1.3, with the certificate authorities that Node trusts and `authorities`, PEM. */
export function trusting(authorities: string | undefined): SecureContext {
  const ca = authorities === undefined ? undefined : [...getCACertificates('default'), authorities];
  return createSecureContext({ minVersion: 'TLSv1.2', ca });
}

/** The longest head of a response of a proxy, in bytes. */
const proxyHeadBytesMax = 16_384;

/**
 * Connects to `target`, an address and a port, through a forward proxy: http: or https:, with its user and password if it needs
 * them. Rejects with DeliveryError.
 */
function connectThrough(
  proxy: URL,
  target: string,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const fail = (why: string) =>
    reject(new DeliveryError('the proxy of the server did not connect to it', why));
  request({
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...authorization(proxy) },
    createConnection: () => connectToProxy(proxy, secureContext),
    maxHeaderSize: proxyHeadBytesMax,
    signal,
  })
    .on('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) return resolve(socket as Socket);
      socket.destroy();
      fail(`it answered ${statusCode} to CONNECT ${target}`);
    })
    .on('error', ({ message }) => fail(message))
    .end();
  return promise;
}

/**
 * Connects to a proxy and closes the connection at once. Rejects if the connection fails or the certificate is not valid, and
 * with the reason of the signal if it is aborted.
 */
export async function reachProxy(
  proxy: URL,
  secureContext: SecureContext,
  signal: AbortSignal,
): Promise<void> {
  const socket = connectToProxy(proxy, secureContext);
  try {
    await once(socket, proxy.protocol === 'https:' ? 'secureConnect' : 'connect', { signal });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    socket.destroy();
  }
}

function connectToProxy(proxy: URL, secureContext: SecureContext): Socket {
  const { protocol, port } = proxy;
  const host = hostOf(proxy);
  if (protocol === 'http:') return netConnect({ host, port: Number(port || 80) });
  const servername = isIP(host) === 0 ? host : '';
  return tlsConnect({ host, port: Number(port || 443), servername, secureContext, rejectUnauthorized: true });
}

function authorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const credentials = [username, password].map(decodeURIComponent).join(':');
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/**
 * A request that got no response. The message is a clause about the endpoint, for its platform and the operator. `detail` is
 * for the operator only: it may have addresses.
 */
export class DeliveryError extends Error {
  readonly detail: string | undefined;

  constructor(message: string, detail?: string) {
    super(message);
    this.detail = detail;
  }
}

/** The longest message, in characters: messages quote certificates, which receivers write. */
const messageMax = 300;

const ended = 'it ended the connection before its response was complete';
const unreachable = 'it cannot be reached';

/** Messages by error codes of the system and of Node. */
const messages: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ECONNRESET: ended,
  EPIPE: ended,
  ETIMEDOUT: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  // From a firewall of this machine.
  EACCES: unreachable,
  EPERM: unreachable,
  HPE_HEADER_OVERFLOW: 'its response headers are too long',
};

/** Converts what went wrong with a request, and with its connection if there was one. Messages of the system have addresses. */
export function deliveryError(error: unknown, socket?: Socket | null): DeliveryError {
  if (error instanceof DeliveryError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const known = typeof code === 'string' ? code : '';
  return new DeliveryError(
    printable(messages[known] ?? messageOf(known, message, socket)),
    printable(message),
  );
}

function messageOf(code: string, message: string, socket?: Socket | null): string {
  if (socket instanceof TLSSocket && socket.authorizationError)
    // After a semicolon Node says what the server could do.
    return `its certificate is not valid: ${message.split(';')[0]}`;
  if (code.startsWith('HPE_')) return 'its response is not HTTP';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) return 'it does not speak TLS 1.2 or 1.3';
  return `the request failed: ${code || message}`;
}

/** Receivers can put control characters into it, and terminals show it. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, messageMax);
}
