import type { Clock } from '../../domain/clock.ts';
import type { Network } from '../../lib/networks.ts';
import { withTimeout } from '../../lib/timing.ts';
import { createAddressPolicy } from './addresses.ts';
import { connectingBy, createKeepingAgent, createSecureConnect } from './agent.ts';
import { createConnect } from './connect.ts';
import { DeliveryError, deliveryError } from './delivery-error.ts';
import { type EndpointResponse, exchange, type OutgoingRequest, StaleConnectionError } from './exchange.ts';
import { createLookUp, type LookUp } from './lookup.ts';
import { checkTarget } from './target.ts';
import { trusting } from './trust.ts';

/** How long a request may take, from the name lookup to the end of the response, in milliseconds. */
export const outgoingTimeoutMs = 15_000;

/**
 * A response of any status, or none. `why` is for the platform, a clause about its endpoint ("it refuses connections").
 * `detail` is for the operator only: it may have addresses. A failed request may have arrived.
 */
export type OutgoingResult =
  | ({ readonly kind: 'ANSWERED' } & EndpointResponse)
  | { readonly kind: 'FAILED'; readonly why: string; readonly detail: string | undefined };

/**
 * Sends requests to URLs that platforms choose: only to addresses that the address policy allows, by POST over https with a
 * valid certificate, or over http to this machine if the settings allow it. Follows no redirect. Does not limit concurrency.
 */
export interface Outgoing {
  /** Never rejects. */
  post(request: OutgoingRequest): Promise<OutgoingResult>;
  /** Aborts all requests and closes all connections. */
  close(): void;
}

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

export function createOutgoing({
  clock,
  networks,
  plainLoopback,
  proxy,
  authorities,
  lookUp,
}: OutgoingDependencies): Outgoing {
  const policy = createAddressPolicy(networks);
  const secureContext = trusting(authorities);
  const connect = createConnect({ policy, lookUp: lookUp ?? createLookUp(), proxy, secureContext });
  const plain = { createConnection: connectingBy(connect) };
  const secure = { createConnection: connectingBy(createSecureConnect(connect, secureContext)) };
  const agent = createKeepingAgent(secure.createConnection);
  const closed = new AbortController();

  async function send(request: OutgoingRequest, signal: AbortSignal): Promise<EndpointResponse> {
    if (URL.parse(request.url)?.protocol === 'http:') return exchange(plain, { ...request, signal });
    try {
      return await exchange({ agent }, { ...request, signal });
    } catch (error) {
      if (!(error instanceof StaleConnectionError)) throw error;
      return exchange(secure, { ...request, signal });
    }
  }

  return {
    post: async (request) => {
      const fault = checkTarget(request.url, { policy, plainLoopback });
      if (fault !== undefined) return { kind: 'FAILED', why: `its URL ${fault}`, detail: undefined };
      const stopped = AbortSignal.any([request.signal, closed.signal]);
      const timeout = { ms: outgoingTimeoutMs, reason: timedOut, stopped };
      try {
        const response = await withTimeout(clock, timeout, (signal) => send(request, signal));
        return { kind: 'ANSWERED', ...response };
      } catch (error) {
        const { message, detail } = deliveryError(error);
        return { kind: 'FAILED', why: message, detail };
      }
    },
    close: () => {
      closed.abort(new DeliveryError('the server is stopping'));
      agent.destroy();
    },
  };
}
