import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Scrape } from './scrape.ts';

/** What the listener works with. */
export interface MetricsListenerDependencies {
  readonly scrape: Scrape;
  readonly log: Logger;
}

/** Where figures are. */
const metricsPath = '/metrics';

/** Connections at the same time; what comes on top is closed at once. A Prometheus has one. */
const connectionsMax = 32;
/** Bytes of the head of a request, at most. */
const headBytesMax = 8_192;
/**
 * How long a request may take to arrive, how long a connection may stay idle between two, and how long nothing may move on
 * it, in milliseconds. The second is longer than Prometheus usually waits between two scrapes.
 */
const timeouts = {
  requestMs: 5_000,
  keepAliveMs: 75_000,
  stillMs: 90_000,
  checkEveryMs: 5_000,
} as const;

/** The HTTP/1.1 server of figures, for anybody who reaches it. It does not listen yet. */
export function createMetricsListener({ scrape, log }: MetricsListenerDependencies): Server {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url?.replace(/\?.*$/s, '') !== metricsPath) {
      return end(response, 404, `Figures are at ${metricsPath}.\n`);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return end(response, 405, 'This route takes GET and HEAD.\n');
    }
    try {
      const { contentType, text } = await scrape();
      end(response, 200, text, contentType);
    } catch (error) {
      log.error({ err: error }, 'the figures cannot be read');
      end(response, 500, 'The figures cannot be read; the log says why.\n');
    }
  }

  const server = createServer(
    {
      headersTimeout: timeouts.requestMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      maxHeaderSize: headBytesMax,
    },
    (request, response) => void answer(request, response),
  );
  server.maxConnections = connectionsMax;
  server.timeout = timeouts.stillMs;
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
  response.end(text);
}
