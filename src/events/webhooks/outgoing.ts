import type { Clock } from '../../domain/clock.ts';
import type { Network } from '../../lib/networks.ts';
import { createAddressPolicy } from './addresses.ts';
import { createAgent, createPlainAgent } from './agent.ts';
import { createConnect } from './connect.ts';
import { DeliveryError, unsent } from './delivery-error.ts';
import { type Answered, exchange, StaleConnectionError } from './exchange.ts';
import { createLookUp, type LookUp } from './lookup.ts';
import { checkTarget } from './target.ts';
import { trusting } from './trust.ts';

/** How long a request may take with everything, from looking the name up to what is read of the answer, in milliseconds. */
export const outgoingTimeoutMs = 15_000;

/** A request to the endpoint of a platform. */
export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** Gives it up. */
  readonly signal: AbortSignal;
}

/**
 * What became of a request: an answer, that of a redirection among them, or none. Then `why` is for the platform, a clause about
 * its endpoint ("it refuses connections"), and `detail` for the operator alone, since it has addresses. It may have arrived all the same.
 */
export type Answer =
  | ({ readonly kind: 'ANSWERED' } & Answered)
  | { readonly kind: 'FAILED'; readonly why: string; readonly detail: string | undefined };

/**
 * Sends requests to where platforms say: by POST over https to a valid certificate, or over http to this machine where that is allowed, to addresses alone that may be sent to, and
 * nowhere that an answer redirects to. It has as many under way as it is given.
 */
export interface Outgoing {
  /** Never rejects. */
  post(request: OutgoingRequest): Promise<Answer>;
  /** Gives up what is under way and ends all connections. */
  close(): void;
}

/** What requests are sent with. */
export interface OutgoingDependencies {
  readonly clock: Clock;
  /** Networks that may be sent to although they are not public. */
  readonly networks: readonly Network[];
  /** Whether endpoints on this machine may be reached without TLS. */
  readonly plainLoopback: boolean;
  /** The forward proxy that connections are made through, http: or https:, with its user and password; undefined for none. */
  readonly proxy: URL | undefined;
  /** PEM: certificates that vouch for receivers, beside those that Node trusts; undefined for none. */
  readonly authorities: string | undefined;
  /** By default the name servers of this machine are asked. */
  readonly lookUp?: LookUp;
}

const outOfTime = new DeliveryError(`it gave no complete answer within ${outgoingTimeoutMs / 1_000} seconds`);

export function createOutgoing({
  clock,
  networks,
  plainLoopback,
  proxy,
  authorities,
  lookUp,
}: OutgoingDependencies): Outgoing {
  const judge = createAddressPolicy(networks);
  const secureContext = trusting(authorities);
  const connect = createConnect({ judge, lookUp: lookUp ?? createLookUp(), proxy, secureContext });
  const keeping = createAgent({ connect, secureContext, keepAlive: true });
  const single = createAgent({ connect, secureContext, keepAlive: false });
  const plain = createPlainAgent(connect);
  const closed = new AbortController();

  async function send(request: OutgoingRequest, signal: AbortSignal): Promise<Answered> {
    if (URL.parse(request.url)?.protocol === 'http:') return exchange(plain, { ...request, signal });
    try {
      return await exchange(keeping, { ...request, signal });
    } catch (error) {
      if (!(error instanceof StaleConnectionError)) throw error;
      return exchange(single, { ...request, signal });
    }
  }

  return {
    post: async (request) => {
      const fault = checkTarget(request.url, { judge, plainLoopback });
      if (fault !== undefined) return { kind: 'FAILED', why: `its URL ${fault}`, detail: undefined };
      const timeout = new AbortController();
      const forget = clock.after(outgoingTimeoutMs, () => timeout.abort(outOfTime));
      const signal = AbortSignal.any([request.signal, closed.signal, timeout.signal]);
      try {
        return { kind: 'ANSWERED', ...(await send(request, signal)) };
      } catch (error) {
        const { message, detail } = unsent(signal.aborted ? signal.reason : error);
        return { kind: 'FAILED', why: message, detail };
      } finally {
        forget();
      }
    },
    close: () => {
      closed.abort(new DeliveryError('this service stops'));
      keeping.destroy();
      single.destroy();
      plain.destroy();
    },
  };
}
