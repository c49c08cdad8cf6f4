import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { listenLocally } from './local-server.ts';

/** What goes wrong with a request to a stand-in. A stand-in can have faults of its own besides. */
export type RequestFault =
  /** The connection breaks before the request is carried out. */
  | 'lose-request'
  /** The connection breaks after the request was carried out. */
  | 'lose-answer'
  /** The response is 500, stored under the idempotency key; nothing is done. */
  | 'fail-and-save'
  /** The response is 500, stored under the idempotency key; everything is done. */
  | 'do-and-fail'
  /** Waits, with the key in use, before the request is carried out. */
  | { readonly until: () => Promise<void> }
  /** Waits before the request arrives at all, even if it is lost. */
  | { readonly onTheWay: () => Promise<void> };

/** One request as it arrived. */
export interface ArrivedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly text: string;
  readonly idempotencyKey: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** A response of a stand-in. */
export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Starts the HTTP server of a stand-in, closed after the test. `read` reads a request, or returns the response to one that is
 * neither listed nor has faults. `respond` gets the fault that the test chose for the request.
 */
export async function startStandIn<Seen extends Pick<ArrivedRequest, 'method' | 'path'>, Fault>(
  test: Pick<TestContext, 'after'>,
  read: (arrived: ArrivedRequest) => Seen | Answer,
  respond: (seen: Seen, fault: Fault | RequestFault | undefined) => Answer | Promise<Answer>,
) {
  const faults: { readonly pattern: RegExp; readonly fault: Fault | RequestFault }[] = [];
  /** The requests that arrived, the newest last. */
  const requests: Seen[] = [];

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request;
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://stand-in');
    const key = headers['idempotency-key'];
    const idempotencyKey = typeof key === 'string' ? key : undefined;
    const seen = read({ method, path, query, text: await text(request), idempotencyKey, headers });
    if ('status' in seen) return send(response, seen);
    const index = faults.findIndex(({ pattern }) => pattern.test(`${seen.method} ${seen.path}`));
    const fault = index < 0 ? undefined : faults.splice(index, 1)[0]?.fault;
    if (fault === 'lose-request') return void response.destroy();
    if (typeof fault === 'object' && fault !== null && 'onTheWay' in fault) await fault.onTheWay();
    requests.push(seen);
    const answer = await respond(seen, fault);
    if (fault === 'lose-answer') return void response.destroy();
    send(response, answer);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  return {
    url: await listenLocally(test, server, () => server.closeAllConnections()),
    requests,
    /** What happens to the next request whose method and path match, such as /^POST .*capture$/. */
    failNext: (pattern: RegExp, fault: Fault | RequestFault): void => void faults.push({ pattern, fault }),
  };
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(body));
}
