import { type IncomingMessage, ServerResponse } from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { OpenCall } from './open-calls.ts';

/** How much of a larger body is written at a time, in bytes: so it shows whether the client takes any of it. */
const pieceBytes = 16_384;

type Body = string | Uint8Array;
// biome-ignore lint/suspicious/noExplicitAny: Node declares the error of the two responses differently.
type OnSent = (error?: any) => void;

/** A response over HTTP/1.1 that counts what the kernel has not taken of it. */
export class CountedResponse extends ServerResponse<IncomingMessage> {
  /** The call that it answers. */
  openCall: OpenCall | undefined;

  override write(chunk: Body, encoding?: BufferEncoding | OnSent, onSent?: OnSent): boolean {
    if (typeof encoding === 'function') return this.write(chunk, undefined, encoding);
    return super.write(chunk, encoding as BufferEncoding, counted(this.openCall, chunk, onSent));
  }

  override end(chunk?: Body | (() => void), ...more: unknown[]): this {
    // Taken when the response is over, which ends the call.
    if (chunk !== undefined && typeof chunk !== 'function') this.openCall?.send(Buffer.byteLength(chunk));
    return Reflect.apply(super.end, this, [chunk, ...more]);
  }
}

/** A response over HTTP/2 that counts what the kernel has not taken of it. */
export class CountedHttp2Response extends Http2ServerResponse<Http2ServerRequest> {
  /** The call that it answers. */
  openCall: OpenCall | undefined;

  // `end` writes by this, too.
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

/** Writes a body, and ends the response. */
export function endWith(response: ServerResponse, body: Body): void {
  if (Buffer.byteLength(body) <= pieceBytes) response.end(body);
  else writeInPieces(response, body, () => response.end());
}

/** Writes a body, each piece when the kernel has taken the one before; calls back when it has taken the last one. */
export function writeInPieces(response: ServerResponse, body: Body, onSent: () => void): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  // All of it is in memory until its last piece is not needed any more.
  if (response instanceof CountedResponse) response.openCall?.hold(bytes.length);
  let at = 0;
  const writeNext: OnSent = (error) => {
    if (error) return;
    if (at >= bytes.length) return onSent();
    const piece = bytes.subarray(at, at + pieceBytes);
    at += pieceBytes;
    response.write(piece, writeNext);
  };
  writeNext();
}

/** The chunks of a body, larger ones in pieces. */
export async function* inPieces(
  body: AsyncIterable<Uint8Array>,
  call: OpenCall | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    if (chunk.length <= pieceBytes) {
      yield chunk;
      continue;
    }
    // All of it is in memory until its last piece is not needed any more.
    call?.hold(chunk.length);
    for (let at = 0; at < chunk.length; at += pieceBytes) yield chunk.subarray(at, at + pieceBytes);
    call?.release(chunk.length);
  }
}
