import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../domain/reason.ts';
import { bodyBytesMax } from '../listen/request-head.ts';
import { jsonType } from './envelope.ts';
import { sentHeader } from './sent-headers.ts';

/** The client closed its connection before its request was complete, so nobody reads a response. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

const noBytes = new Uint8Array();

/** The listener emits this event, with an ApiError, on a request whose body cannot be read to its end. */
export const bodyRejected = 'artseal:body-rejected';

/** Reads a request body. Throws BODY_TOO_LARGE as soon as it is too large, the error of `bodyRejected`, and ClientGone. */
export function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (Number(length) > bodyBytesMax) throw bodyTooLarge();
  if (length === '0' && encoding === undefined) return Promise.resolve(noBytes);
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  // One buffer for the whole body: separate chunks of one byte would take a thousand times their size.
  let body = Buffer.alloc(0);
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return reject(bodyTooLarge());
    if (body.length === 0) body = Buffer.allocUnsafe(encoding === undefined ? Number(length) : bodyBytesMax);
    chunk.copy(body, bytes - chunk.length);
  });
  request.on('end', () => resolve(body.subarray(0, bytes)));
  request.on(bodyRejected, reject);
  request.on('close', () => request.complete || reject(new ClientGone()));
  return promise;
}

function bodyTooLarge(): ApiError {
  return new ApiError('BODY_TOO_LARGE', `The body must have at most ${bodyBytesMax} bytes.`);
}

const jsonTypePattern = new RegExp(`^${jsonType}[ \\t]*(;[ \\t]*charset=("?)utf-8\\2[ \\t]*)?$`, 'i');

/** Checks that the headers declare unencoded JSON in UTF-8. Throws UNSUPPORTED_MEDIA_TYPE. */
export function checkMediaType(request: IncomingMessage): void {
  const types = sentHeader(request, 'content-type');
  const encodings = sentHeader(request, 'content-encoding');
  if (encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) {
    throw new ApiError(
      'UNSUPPORTED_MEDIA_TYPE',
      'The header Content-Encoding must be absent: the body is sent as it is.',
    );
  }
  if (types.length !== 1 || !jsonTypePattern.test(types[0] ?? '')) {
    const rule = `must be ${jsonType}, sent once; charset=utf-8 is allowed`;
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', `The header Content-Type ${rule}.`);
  }
}
