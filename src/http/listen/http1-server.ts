import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import type { OpenCall } from './open-calls.ts';

/** Larger bodies are written in pieces of this many bytes, which shows whether the client reads. */
const pieceBytes = 16_384;

type Body = string | Uint8Array;
// biome-ignore lint/suspicious/noExplicitAny: Node declares the error of the two responses differently.
type OnSent = (error?: any) => void;

/** An HTTP/1.1 response that counts the bytes that the kernel has not accepted yet. */
export class CountedResponse extends ServerResponse<IncomingMessage> {
  openCall: OpenCall | undefined;

  override write(chunk: Body, encoding?: BufferEncoding | OnSent, onSent?: OnSent): boolean {
    if (typeof encoding === 'function') return this.write(chunk, undefined, encoding);
    return super.write(chunk, encoding as BufferEncoding, counted(this.openCall, chunk, onSent));
  }

  override end(chunk?: Body | (() => void), ...more: unknown[]): this {
    // The end of the response ends the call, which counts them no more.
    if (chunk !== undefined && typeof chunk !== 'function') this.openCall?.send(Buffer.byteLength(chunk));
    return Reflect.apply(super.end, this, [chunk, ...more]);
  }
}

/** An HTTP/2 response that counts the bytes that the kernel has not accepted yet. */
export class CountedHttp2Response extends Http2ServerResponse<Http2ServerRequest> {
  openCall: OpenCall | undefined;

  // `end` calls this, too.
  override write(chunk: Body, encoding?: BufferEncoding | OnSent, onSent?: OnSent): boolean {
    if (typeof encoding === 'function') return this.write(chunk, undefined, encoding);
    return super.write(chunk, encoding as BufferEncoding, counted(this.openCall, chunk, onSent));
  }
}

function counted(call: OpenCall | undefined, chunk: Body, onSent?: OnSent): OnSent {
  const bytes = Buffer.byteLength(chunk);
  call?.send(bytes);
  return (error) => {
    call?.sent(bytes);
    onSent?.(error);
  };
}

/** What `endWith` needs of a response, of either HTTP version. */
interface BodyWriter {
  readonly openCall?: OpenCall | undefined;
  write(piece: Body, onSent: OnSent): unknown;
  end(body?: Body): unknown;
}

/** Writes a body and ends the response: a large body in pieces, each after the kernel has accepted the one before it. */
export function endWith(response: BodyWriter, body: Body): void {
  if (Buffer.byteLength(body) <= pieceBytes) {
    response.end(body);
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  // The whole body stays in memory until its last piece is written.
  response.openCall?.hold(bytes.length);
  let at = 0;
  const writeNext: OnSent = (error) => {
    if (error) return;
    if (at >= bytes.length) return void response.end();
    const piece = bytes.subarray(at, at + pieceBytes);
    at += pieceBytes;
    response.write(piece, writeNext);
  };
  writeNext();
}

/** Yields the chunks of a body, larger ones in pieces. */
export async function* inPieces(
  body: AsyncIterable<Uint8Array>,
  call: OpenCall | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    if (chunk.length <= pieceBytes) {
      yield chunk;
      continue;
    }
    // The whole body stays in memory until its last piece is written.
    call?.hold(chunk.length);
    for (let at = 0; at < chunk.length; at += pieceBytes) yield chunk.subarray(at, at + pieceBytes);
    call?.release(chunk.length);
  }
}

/** How long a client may take to close its connection after the server has ended it, in milliseconds. */
export const lingerMs = 2_000;

/** What an HTTP/1.1 server has besides Node's own options. */
export interface Http1ServerOptions extends ServerOptions {
  /** Open connections. Further ones are closed at once. */
  readonly connectionsMax: number;
  /** Handles each request that gets a response: none after the last one of its connection. */
  readonly handle: (request: IncomingMessage, response: CountedResponse) => void;
}

/** Connections whose last request was received: it was misframed, or its response closes the connection. */
const ending = new WeakSet<Socket>();

/** Creates an HTTP/1.1 server, which does not listen yet. Its connections linger; see `LingeringResponse`. */
export function createHttp1Server({ connectionsMax, handle, ...options }: Http1ServerOptions): Server {
  function handleFramed(request: IncomingMessage, response: CountedResponse): void {
    const { socket } = request;
    if (ending.has(socket)) {
      // A client that keeps sending requests would fill the memory.
      socket.pause();
      return;
    }
    if (framingFault(request) !== undefined) ending.add(socket);
    handle(request, response);
  }
  const server = createServer({ ...options, ServerResponse: LingeringResponse });
  server.maxConnections = connectionsMax;
  // Not in Node's types. Without it Node closes a connection when the client closes its half, and its calls get no response.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('request', handleFramed);
  server.on('checkExpectation', handleFramed);
  return server;
}

/**
 * The fault in how an HTTP/1 request states the end of its body; undefined if there is none. Request smuggling: a proxy may see
 * another end if there is more than a single `chunked`, or any with HTTP/1.0, and take the following bytes for a request of
 * another client (RFC 9112, 6.1 and 11.2). Close the connection of such a request.
 */
export function framingFault({
  httpVersion,
  headers,
}: Pick<IncomingMessage, 'httpVersion' | 'headers'>): string | undefined {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (httpVersion !== '1.1') return `A request of HTTP/${httpVersion} must have no Transfer-Encoding.`;
  return coding.toLowerCase() === 'chunked'
    ? undefined
    : 'The header Transfer-Encoding must be chunked alone, sent once, or absent.';
}

/**
 * An HTTP/1.1 response that is the last on its connection if its request was misframed, or not read to the end, because the
 * rest comes before the next request. In that case the connection lingers (RFC 9112, section 9.6): closing it with unread bytes
 * would reset it, and the client or a proxy that sends everything before it reads would lose the response.
 */
class LingeringResponse extends CountedResponse {
  override writeHead(...head: unknown[]): this {
    const { req, socket } = this;
    if (socket !== null && (!req.complete || framingFault(req) !== undefined)) {
      this.setHeader('Connection', 'close');
      linger(socket, req);
    }
    return Reflect.apply(super.writeHead, this, head);
  }
}

/**
 * Lets the client close its connection after the response, and closes it after `lingerMs` in any case. What a client sends after
 * the response cannot be answered, so it is not carried out (RFC 9112, section 9.6).
 */
function linger(socket: Socket, request: IncomingMessage): void {
  ending.add(socket);
  // Node calls this when the response is sent.
  socket.destroySoon = () => {
    socket.end();
    // The reader of the request may have stopped: read the rest and discard it.
    request.push = () => true;
    socket.resume();
    destroyAfterLinger(socket);
  };
}

/** Sends a response on a connection that waits for no other one, and ends it. */
export function endConnection(
  socket: Socket,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): void {
  const all = { ...headers, 'Content-Length': Buffer.byteLength(body), Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  // Head and body in one write: the client may still send, and a second write would come too late if that ends the socket.
  socket.cork();
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`);
  socket.end(body);
  destroyAfterLinger(socket);
}

/** Closes a connection that its client does not close within `lingerMs`. The timer keeps no closed socket in memory. */
function destroyAfterLinger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}
