import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { listenLocally } from '../support/local-server.ts';
import { findInstruction } from '../support/openapi.ts';

/** A request that arrived at a proxy. */
export interface Arrival {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
}

/** A request in the hands of a proxy. */
export interface Exchange {
  /** 1 for the first request of the proxy. */
  readonly count: number;
  readonly response: ServerResponse;
  /** Lets the service carry the request out. Resolves with what sends its response to the client. */
  forward(): Promise<() => void>;
}

/** What a proxy does with a request. */
export type Fault = (exchange: Exchange) => unknown;

/** Sends a response of its own. */
export function respond(
  { response }: Exchange,
  status: number,
  headers: Record<string, string>,
  body: string | { readonly code: string },
): void {
  const content =
    typeof body === 'string' ? body : JSON.stringify({ ...body, message: 'No.', requestId: 'r-1' });
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(content);
}

/** The first requests meet these faults, one each; the others pass. */
export const first =
  (...faults: readonly Fault[]): Fault =>
  async (exchange) => {
    const fault = faults[exchange.count - 1];
    await (fault === undefined ? pass(exchange) : fault(exchange));
  };

const pass: Fault = async ({ forward }) => (await forward())();

/**
 * Starts a proxy in front of a service. It adds a member to each open response, as a later release would; `extended` lists the
 * operations whose responses it extended.
 */
export async function startProxy(t: Pick<TestContext, 'after'>, serviceUrl: string, fault: Fault = pass) {
  const arrivals: Arrival[] = [];
  const extended: string[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = '', url: target = '', headers } = incoming;
    const body = await buffer(incoming);
    const count = arrivals.push({ method, target, headers });
    const forward = async () => {
      const forwarded = request(serviceUrl + target, { method, headers });
      forwarded.end(body);
      const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
      const { statusCode = 500, headers: answered } = answer;
      let content = await text(answer);
      const { operationId = '', responses } = findInstruction(method, target) ?? {};
      const schema = responses?.[statusCode]?.content['application/json']?.schema;
      if (schema?.additionalProperties === true) {
        content = JSON.stringify({ ...JSON.parse(content), laterMember: { of: ['a', 'later', 'release'] } });
        extended.push(operationId);
      }
      const { 'content-length': _, ...kept } = answered;
      return () => void response.writeHead(statusCode, kept).end(content);
    };
    await fault({ count, response, forward });
  });
  const url = await listenLocally(t, server, () => server.closeAllConnections());
  return { url, arrivals, extended };
}
