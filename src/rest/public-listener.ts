import { randomUUIDv7 } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { asRefusal, Refusal, unavailable } from '../domain/reason.ts';
import { logCall, type Trace } from '../observe/trace.ts';
import { bodyBytesMax, bodyRefused, ClientGone } from './body.ts';
import { type Answer, refusalAnswer } from './envelope.ts';
import { createHeldRequests } from './held-requests.ts';
import { notificationCall, notificationPath, type TakeNotification } from './notification-call.ts';
import type { SignedCalls } from './signed-call.ts';

/** What the public listener works with. */
export interface PublicListenerDependencies {
  readonly signedCalls: SignedCalls;
  readonly takeNotification: TakeNotification;
  /** The OpenAPI document, served to anybody. */
  readonly openApi: Uint8Array;
  readonly log: Logger;
}

/** What is under way on a connection. */
interface Connection {
  /** Requests whose answers are not sent to their end yet. */
  calls: number;
  /** The request that came last. */
  latest: IncomingMessage;
  /** Nothing more can be read from it. */
  broken: boolean;
}

/** Connections at the same time; what comes on top is closed at once. Twice the calls that are carried out. */
const connectionsMax = 4_000;
/** Requests that a connection may send before it has read the answers to those before; what follows is refused. */
const requestsAheadMax = 16;
/** Requests that are held for a connection, those refused included. */
const requestsHeldMax = 32;
/**
 * How long a client may take over its headers, its whole request, and between two requests, and how long nothing
 * may move on its connection, in milliseconds. The last is longer than any call waits for its answer.
 */
const timeouts = {
  headersMs: 15_000,
  requestMs: 30_000,
  keepAliveMs: 60_000,
  stillMs: 90_000,
  checkEveryMs: 5_000,
  /** How long what is left of a refused body is read: before the answer to a small one, behind that to any other. */
  lingerMs: 2_000,
} as const;

/** The HTTP/1.1 server of external platforms. It does not listen yet. */
export function createPublicListener(dependencies: PublicListenerDependencies): Server {
  const { signedCalls, takeNotification, openApi, log } = dependencies;
  const server = createServer({
    // A request without Host is answered here, in the envelope.
    requireHostHeader: false,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
  });
  server.maxConnections = connectionsMax;
  // Whoever reads no answer is timed by nothing else.
  server.timeout = timeouts.stillMs;
  const connections = new WeakMap<Socket, Connection>();
  const held = createHeldRequests((socket) =>
    cutOff(
      socket,
      { requestId: randomUUIDv7() },
      'Too much is held, and this connection has held on longest.',
    ),
  );

  async function answerTo(request: IncomingMessage, trace: Trace, isAhead: boolean): Promise<Answer> {
    const refuse = (refusal: Refusal) => {
      trace.refusal = refusal;
      return refusalAnswer(refusal, trace.requestId);
    };
    if (isAhead) return refuse(unavailable('Too many requests were sent ahead of their answers.'));
    const hosts = request.headersDistinct.host?.length ?? 0;
    if (hosts > 1) return refuse(new Refusal('BAD_REQUEST_TARGET', 'The header Host must be sent once.'));
    if (hosts === 0 && request.httpVersion === '1.1') {
      return refuse(new Refusal('BAD_REQUEST_TARGET', 'An HTTP/1.1 request needs a Host header.'));
    }
    if (request.url === '/openapi.yaml' && (request.method === 'GET' || request.method === 'HEAD')) {
      return { status: 200, headers: { 'Content-Type': 'application/yaml' }, body: openApi };
    }
    if (request.url === notificationPath) return notificationCall(request, trace, takeNotification);
    return signedCalls(request, trace);
  }

  /** Counts a request among those that its connection waits for. */
  function begin(request: IncomingMessage, response: ServerResponse): Connection {
    const { socket } = request;
    const connection = connections.get(socket) ?? { calls: 0, latest: request, broken: false };
    connections.set(socket, connection);
    connection.latest = request;
    connection.calls += 1;
    response.once('close', () => {
      connection.calls -= 1;
    });
    return connection;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedMs = performance.now();
    const trace: Trace = { requestId: randomUUIDv7() };
    const { socket } = request;
    // What was read before its connection was cut off is still handed over.
    if (socket.destroyed) return;
    // Whoever listened for its failure may have gone by the time that the client breaks off.
    request.on('error', () => {});
    const connection = begin(request, response);
    if (connection.calls > requestsHeldMax) {
      return cutOff(socket, trace, 'Far too many requests were sent ahead of their answers.');
    }
    held.add(request, response);
    let status = 0;
    const send = async (answer: Answer) => {
      if (!request.complete && !connection.broken && hasSmallBody(request)) await restOf(request);
      const isLast = connection.broken && connection.latest === request;
      write(request, response, answer, trace.requestId, isLast);
      status = answer.status;
    };
    try {
      await send(await answerTo(request, trace, connection.calls > requestsAheadMax));
    } catch (error) {
      if (!(error instanceof ClientGone)) trace.refusal = asRefusal(error);
      // Nobody is there to be answered, or what is half answered cannot be taken back.
      if (error instanceof ClientGone || response.headersSent) socket.destroy();
      else await send(refusalAnswer(asRefusal(error), trace.requestId));
    } finally {
      logCall(log, trace, status, performance.now() - startedMs);
    }
  }

  /** Ends a connection at once: only so is let go of what it sent. */
  function cutOff(socket: Socket, trace: Trace, why: string): void {
    socket.destroy();
    trace.refusal = unavailable(why);
    logCall(log, trace, 0, 0);
  }

  function write(
    request: IncomingMessage,
    response: ServerResponse,
    answer: Answer,
    requestId: string,
    isLast: boolean,
  ): void {
    const headers: Record<string, string | number> = {
      ...answer.headers,
      'Content-Length': Buffer.byteLength(answer.body),
      'X-Request-Id': requestId,
      'Cache-Control': 'no-store',
    };
    // A body that never came to its end would be timed, and answered a second time.
    // Behind an Upgrade, which is not made here, the parser reads no further request.
    const isReadable = request.complete && request.headers.upgrade === undefined;
    const isClosing = isLast || !server.listening || !isReadable;
    if (isClosing) headers.Connection = 'close';
    response.writeHead(answer.status, headers);
    if (isClosing && !isLast && !request.complete) endBehindBody(request, response, answer.body);
    else response.end(answer.body);
  }

  /**
   * Answers a request whose body is still being sent, and reads and throws away what follows of it for a while:
   * closing before would reset the connection, and take the answer away from a client or proxy that reads it last.
   */
  function endBehindBody(request: IncomingMessage, response: ServerResponse, body: Answer['body']): void {
    response.write(body);
    const end = () => response.end();
    const patience = setTimeout(end, timeouts.lingerMs);
    request.once('end', end).resume();
    response.once('close', () => clearTimeout(patience));
  }

  /** Refuses bytes that are not HTTP, headers that are too long, and what comes too slowly. */
  function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
    const refusal = connectionRefusal(error.code);
    const connection = connections.get(socket);
    if (connection !== undefined && connection.calls > 0) {
      // The calls before are answered first; one that waits for the rest of its body is answered with this.
      connection.broken = true;
      if (!connection.latest.complete) connection.latest.emit(bodyRefused, refusal);
    } else if (socket.writable && error.code !== 'ECONNRESET') {
      answerConnection(refusal, socket);
    } else {
      socket.destroy();
    }
  }

  /** Answers on a connection that has no request to answer to. */
  function answerConnection(refusal: Refusal, socket: Socket): void {
    const requestId = randomUUIDv7();
    const { status, headers, body } = refusalAnswer(refusal, requestId);
    const head = Object.entries({
      ...headers,
      'Content-Length': Buffer.byteLength(body),
      'X-Request-Id': requestId,
      Connection: 'close',
    });
    socket.end(
      `HTTP/1.1 ${status} Refused\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
    );
    // A peer that keeps its side open would keep the socket for ever.
    socket.setTimeout(timeouts.lingerMs, () => socket.destroy());
    logCall(log, { requestId, refusal }, status, 0);
  }

  server.on('connection', (socket: Socket) => socket.once('close', () => held.forget(socket)));
  server.on('request', handle);
  server.on('checkExpectation', handle);
  server.on('connect', (_request, socket: Socket) => {
    // The server gave this socket up, its error listener included.
    socket.on('error', () => socket.destroy());
    socket.setTimeout(server.timeout, () => socket.destroy());
    refuseConnection(new Error('CONNECT'), socket);
  });
  server.on('clientError', refuseConnection);
  return server;
}

function hasSmallBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= bodyBytesMax;
}

/** Reads and throws away what is left of a body, for a moment: behind its end the connection can be used again. */
async function restOf(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ['end', 'close', bodyRefused]) request.once(event, () => resolve());
  const patience = setTimeout(resolve, timeouts.lingerMs);
  request.resume();
  await promise;
  clearTimeout(patience);
}

function connectionRefusal(code: string | undefined): Refusal {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal(
        'TIMEOUT',
        `The request was not complete within ${timeouts.requestMs / 1000} seconds.`,
      );
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('BAD_REQUEST_TARGET', 'The request line and headers are longer than 16 KiB.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('BODY_TOO_LARGE', 'The chunk extensions of the body are too long.');
    default:
      return new Refusal(
        'BAD_REQUEST_TARGET',
        'The bytes received are not an HTTP/1.1 request that this service takes.',
      );
  }
}
