import { type IncomingMessage, ServerResponse } from 'node:http';
import { type Http2ServerRequest, Http2ServerResponse } from 'node:http2';
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

/** Writes a body and ends the response: a large body in pieces, each after the kernel has accepted the one before it. */
export function endWith(response: ServerResponse, body: Body): void {
  if (Buffer.byteLength(body) <= pieceBytes) {
    response.end(body);
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  // The whole body stays in memory until its last piece is written.
  if (response instanceof CountedResponse) response.openCall?.hold(bytes.length);
  let at = 0;
  const writeNext: OnSent = (error) => {
    if (error) return;
    if (at >= bytes.length) return response.end();
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
