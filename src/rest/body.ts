import type { IncomingMessage } from 'node:http';
import { Refusal } from '../domain/reason.ts';
import { jsonType } from './envelope.ts';

/** The largest request body, in bytes. */
export const bodyBytesMax = 65_536;

/** The client went away before its request was complete: there is nobody to answer. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

/** How long a body may take to arrive behind its headers, in milliseconds. */
export const bodyTimeoutMs = 10_000;

/** Reads a request body as sent. Throws BODY_TOO_LARGE as soon as it is; TIMEOUT; ClientGone if it breaks off. */
export function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  if (Number(request.headers['content-length'] ?? 0) > bodyBytesMax) throw bodyTooLarge();
  const tooSlow = () =>
    reject(new Refusal('TIMEOUT', `The body must arrive within ${bodyTimeoutMs / 1000} seconds.`));
  const timer = setTimeout(tooSlow, bodyTimeoutMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) reject(bodyTooLarge());
    else chunks.push(chunk);
  });
  request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
  request.on('error', () => reject(new ClientGone()));
  request.on('close', () => reject(new ClientGone()));
  return promise.finally(() => clearTimeout(timer));
}

function bodyTooLarge(): Refusal {
  return new Refusal('BODY_TOO_LARGE', `The body must have at most ${bodyBytesMax} bytes.`);
}

const jsonTypePattern = new RegExp(`^${jsonType}[ \\t]*(;[ \\t]*charset=("?)utf-8\\2[ \\t]*)?$`, 'i');

/** Checks that a body is unencoded JSON in UTF-8. Throws UNSUPPORTED_MEDIA_TYPE. */
export function checkMediaType(headers: NodeJS.Dict<string[]>): void {
  const types = headers['content-type'] ?? [];
  const encodings = headers['content-encoding'] ?? [];
  if (encodings.some((encoding) => encoding.toLowerCase() !== 'identity')) {
    throw new Refusal(
      'UNSUPPORTED_MEDIA_TYPE',
      'The header Content-Encoding must be absent: the body is sent as it is.',
    );
  }
  if (types.length !== 1 || !jsonTypePattern.test(types[0] ?? '')) {
    const rule = `must be ${jsonType}, sent once; charset=utf-8 is allowed`;
    throw new Refusal('UNSUPPORTED_MEDIA_TYPE', `The header Content-Type ${rule}.`);
  }
}
