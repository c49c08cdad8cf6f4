import {
  type ClientRequest,
  type ClientRequestArgs,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../domain/clock.ts';
import type { Network } from '../../lib/networks.ts';
import { withTimeout } from '../../lib/timing.ts';
import {
  type Connect,
  createConnect,
  createLookUp,
  createSecureConnect,
  DeliveryError,
  deliveryError,
  type LookUp,
  trusting,
} from './connect.ts';
import { checkTarget, createAddressPolicy } from './target.ts';

/** How long a request may take, from the name lookup to the end of the response, in milliseconds. */
const outgoingTimeoutMs = 15_000;
/** How long an idle connection is kept, in milliseconds. Servers keep it longer. */
const idleMs = 4_000;
/** How many connections are kept: as many as there are concurrent requests. */
const keptMax = 320;
/** How much of a response body is kept, in bytes. */
const responseBytesMax = 512;
/**
 * How much of a response may be read, in bytes, so that the connection can be used again. A longer response is cut off with its
 * connection. All bytes count, because the thread that serves API calls parses them: the body, endless informational
 * responses, the framing of tiny chunks.
 */
const readBytesMax = 65_536;
/** The longest response head, in bytes. */
const headBytesMax = 16_384;

/** A request to the endpoint of a platform, and the signal that aborts it. */
export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  readonly signal: AbortSignal;
}

/**
 * A response of any status, or none. `why` is for the platform, a clause about its endpoint ("it refuses connections").
 * `detail` is for the operator only: it may have addresses. A failed request may have arrived.
 */
export type OutgoingResult =
  | Awaited<ReturnType<typeof exchange>>
  | { readonly kind: 'FAILED'; readonly why: string; readonly detail: string | undefined };

/** See `createOutgoing`. */
export type Outgoing = ReturnType<typeof createOutgoing>;

/** The parts and settings of an `Outgoing`. */
export interface OutgoingDependencies {
  readonly clock: Clock;
  /** Networks that requests may go to although they are not public. */
  readonly networks: readonly Network[];
  /** Whether endpoints on this machine may have http URLs. */
  readonly plainLoopback: boolean;
  /** Forward proxy for all connections, http: or https:, with its user and password; undefined for none. */
  readonly proxy: URL | undefined;
  /** Certificate authorities for endpoints, PEM, in addition to those that Node trusts; undefined for none. */
  readonly authorities: string | undefined;
  /** By default uses the name servers of this machine. */
  readonly lookUp?: LookUp;
}

const timedOut = new DeliveryError(
  `it sent no complete response within ${outgoingTimeoutMs / 1_000} seconds`,
);

/**
 * Sends requests to URLs that platforms choose: only to addresses that the address policy allows, by POST over https with a
 * valid certificate, or over http to this machine if the settings allow it. Follows no redirect. Does not limit concurrency.
 */
export function createOutgoing(dependencies: OutgoingDependencies) {
  const { clock, networks, plainLoopback, proxy, authorities, lookUp = createLookUp() } = dependencies;
  const policy = createAddressPolicy(networks);
  const secureContext = trusting(authorities);
  const connect = createConnect({ policy, lookUp, proxy, secureContext });
  const plain = { createConnection: connectingBy(connect) };
  const secure = { createConnection: connectingBy(createSecureConnect(connect, secureContext)) };
  const agent = createKeepingAgent(secure.createConnection);
  const closed = new AbortController();

  async function send(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingResult> {
    if (URL.parse(request.url)?.protocol === 'http:') return exchange(plain, { ...request, signal });
    try {
      return await exchange({ agent }, { ...request, signal });
    } catch (error) {
      if (!(error instanceof StaleConnectionError)) throw error;
      return exchange(secure, { ...request, signal });
    }
  }

  return {
    /** Never rejects. */
    post: async (request: OutgoingRequest): Promise<OutgoingResult> => {
      const fault = checkTarget(request.url, { policy, plainLoopback });
      if (fault !== undefined) return { kind: 'FAILED', why: `its URL ${fault}`, detail: undefined };
      const stopped = AbortSignal.any([request.signal, closed.signal]);
      const timeout = { ms: outgoingTimeoutMs, reason: timedOut, stopped };
      try {
        return await withTimeout(clock, timeout, (signal) => send(request, signal));
      } catch (error) {
        const { message, detail } = deliveryError(error);
        return { kind: 'FAILED', why: message, detail };
      }
    },
    /** Aborts all requests and closes all connections. */
    close: (): void => {
      closed.abort(new DeliveryError('the server is stopping'));
      agent.destroy();
    },
  };
}

/** Options of a request. Node does not pass on `signal`, which has to abort connecting too. */
interface ConnectingOptions extends ClientRequestArgs {
  readonly connectSignal: AbortSignal;
}

type CreateConnection = NonNullable<ClientRequestArgs['createConnection']>;

/** Makes requests connect by `connect`. */
function connectingBy(connect: Connect): CreateConnection {
  return (options, done) => {
    const { host, port, connectSignal } = options as ConnectingOptions;
    connect(host as string, Number(port), connectSignal).then(
      (socket) => done(null, socket),
      (error) => done(error, undefined as never),
    );
    return undefined;
  };
}

/** Keeps connections for further requests to the same host and port. */
function createKeepingAgent(createConnection: CreateConnection): Agent {
  const agent = new Agent({ keepAlive: true, timeout: idleMs, maxFreeSockets: keptMax });
  const keep = agent.keepSocketAlive.bind(agent);
  const kept = new Set<Duplex>();
  agent.createConnection = createConnection as Agent['createConnection'];
  agent.keepSocketAlive = (socket) => {
    if (!kept.has(socket)) {
      if (kept.size >= keptMax) return false;
      kept.add(socket);
      socket.once('close', () => kept.delete(socket));
    }
    return keep(socket);
  };
  return agent;
}

/** The endpoint closed a kept connection, perhaps before it read the request: a new connection may work. */
class StaleConnectionError extends Error {}

/**
 * Sends a POST request, over http or https as the URL says: with an agent that keeps connections, or with a new connection.
 * Rejects with StaleConnectionError or DeliveryError, and with any error after the signal was aborted.
 */
async function exchange(
  connecting: Pick<ClientRequestArgs, 'agent' | 'createConnection'>,
  { url, headers, body, signal }: OutgoingRequest,
) {
  const options: ConnectingOptions = {
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    maxHeaderSize: headBytesMax,
    ...{ ...connecting, signal, connectSignal: signal },
  };
  const request = new URL(url).protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, options);
  const responding = responseTo(request);
  limitRead(request);
  request.end(body);
  const response = await responding;
  return {
    kind: 'ANSWERED' as const,
    status: response.statusCode as number,
    /** The first `responseBytesMax` bytes, not decompressed. */
    body: await firstBytes(response),
    /** The header, unparsed. */
    retryAfter: response.headers['retry-after'],
  };
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // An endpoint that switches protocols gets here.
  const ended = () => reject(new DeliveryError('it sent no response'));
  request
    .on('response', (response) => {
      request.off('close', ended);
      resolve(response);
    })
    .on('error', (error: NodeJS.ErrnoException) => {
      const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      reject(isStale ? new StaleConnectionError() : deliveryError(error, request.socket));
    })
    .on('close', ended);
  return promise;
}

/** Closes the connection of a request that has read too much. */
function limitRead(request: ClientRequest): void {
  request.once('socket', (socket) => {
    let readBytes = 0;
    const count = (part: Buffer) => {
      readBytes += part.length;
      if (readBytes > readBytesMax) socket.destroy(new DeliveryError('its response is too long'));
    };
    socket.on('data', count);
    request.once('close', () => socket.off('data', count));
  });
}

/** Returns the first bytes of the body when it is complete, or was cut off after them. */
function firstBytes(response: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let first = Buffer.alloc(0);
  response
    .on('data', (part: Buffer) => {
      if (first.length < responseBytesMax)
        first = Buffer.concat([first, part.subarray(0, responseBytesMax - first.length)]);
    })
    .on('end', () => resolve(first))
    // The rest would not have been kept.
    .on('error', (error) =>
      first.length < responseBytesMax ? reject(deliveryError(error)) : resolve(first),
    );
  return promise;
}
