import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { CountedResponse, endWith, framingFault } from '../../http/listen/http1-server.ts';
import type { OpenCalls, OpenConnection } from '../../http/listen/open-calls.ts';
import type { Logger } from '../../lib/log.ts';
import { contentType, type Scrape } from './scrape.ts';

/** What the listener works with. */
export interface MetricsListenerDependencies {
  readonly scrape: Scrape;
  readonly openCalls: OpenCalls;
  readonly log: Logger;
  /** The host of the listen address. If it is a name, requests may use it. */
  readonly host: string;
}

type Socket = IncomingMessage['socket'];

const metricsPath = '/metrics';

/** Connections at the same time. One more cuts off the oldest. Prometheus has one. */
const connectionsMax = 32;
/** Bytes of the head of a request, at most. */
const headBytesMax = 8_192;
/**
 * The longest time to receive a request, and the longest idle time of a connection, in milliseconds. The second is longer than
 * the usual period of Prometheus.
 */
const timeouts = { requestMs: 5_000, keepAliveMs: 75_000, checkEveryMs: 5_000 } as const;

/**
 * Creates the HTTP/1.1 server of metrics, which needs no credentials. It does not listen yet. A connection that sends a second
 * request before its response is cut off.
 */
export function createMetricsListener({ scrape, openCalls, log, host }: MetricsListenerDependencies): Server {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = framingFault(request);
    if (fault !== undefined) {
      response.setHeader('Connection', 'close');
      return end(response, 400, `${fault}\n`);
    }
    if (!isOwnHost(request.headers.host ?? '', host)) {
      return end(response, 421, 'The header Host must be an IP address or a name of this machine.\n');
    }
    if (request.url?.replace(/\?.*$/s, '') !== metricsPath) {
      return end(response, 404, `Metrics are at ${metricsPath}.\n`);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return end(response, 405, 'This route takes GET and HEAD.\n');
    }
    try {
      end(response, 200, await scrape(), contentType);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      end(response, 500, 'The metrics cannot be read; the log says why.\n');
    }
  }

  /** The oldest first. */
  const connections = new Map<Socket, OpenConnection>();
  const server = createServer(
    {
      headersTimeout: timeouts.requestMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      maxHeaderSize: headBytesMax,
      ServerResponse: CountedResponse,
    },
    (request, response) => {
      // Node still passes on requests that it read before the connection was cut off.
      if (connections.get(request.socket)?.begin(request, response) === undefined) return;
      void answer(request, response);
    },
  );
  server.on('connection', (socket: Socket) => {
    const open = openCalls.connect({
      callsMax: 1,
      listener: 'metrics',
      clientOf: () => undefined,
      cutOff: () => socket.destroy(),
    });
    connections.set(socket, open);
    socket.once('close', () => {
      open.end();
      connections.delete(socket);
    });
    // If the new one were rejected instead, a client with all connections would block Prometheus.
    const [oldest] = connections.keys();
    if (connections.size > connectionsMax) oldest?.destroy();
  });
  return server;
}

function end(
  response: ServerResponse,
  status: number,
  text: string,
  type = 'text/plain; charset=utf-8',
): void {
  const headers = {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  };
  response.writeHead(status, headers);
  endWith(response, text);
}

/**
 * Whether a Host can only name this machine or its network: an IP address, a name without dots such as localhost, or the name
 * in the listen address. DNS rebinding: a site whose name resolves to this machine could otherwise read responses in a browser.
 */
function isOwnHost(sent: string, listenedOn: string): boolean {
  const name = URL.parse(`http://${sent}`)?.hostname ?? '';
  if (name === '') return false;
  return (
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || !name.includes('.') || name === listenedOn.toLowerCase()
  );
}
