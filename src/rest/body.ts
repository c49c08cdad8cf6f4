import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal, unavailable } from '../domain/reason.ts';
import { jsonType } from './envelope.ts';

/** The largest request body, in bytes. */
export const bodyBytesMax = 65_536;
/** The bodies that are arriving at the same time, together, in bytes. */
const arrivingBytesMax = 512 * bodyBytesMax;

/** The client went away before its request was complete: there is nobody to answer. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

const noBytes = new Uint8Array();

/** The event by which a listener refuses a request whose body cannot be read to its end; it carries a Refusal. */
export const bodyRefused = 'artseal:body-refused';

/**
 * Keeps peers that send bodies slowly from holding memory, whoever they are: told of each request as it begins, it refuses
 * the body that is arriving longest as soon as all of them together may become too large. Each counts as much as it was
 * announced to have, and a chunked one as much as it may have. Were the new one refused instead, whoever sends slowly
 * would keep everybody else out.
 */
export function createBodyBound(): (request: IncomingMessage, response: ServerResponse) => void {
  const arriving = new Map<IncomingMessage, number>();
  let sum = 0;
  const forget = (request: IncomingMessage) => {
    sum -= arriving.get(request) ?? 0;
    arriving.delete(request);
  };
  return (request, response) => {
    const bytes = Math.min(announcedBytes(request), bodyBytesMax);
    if (bytes === 0) return;
    arriving.set(request, bytes);
    sum += bytes;
    request.once('end', () => forget(request));
    // A request that is answered before its body has come tells of no end of its own.
    response.once('close', () => forget(request));
    for (const [longest] of arriving) {
      if (sum <= arrivingBytesMax) break;
      forget(longest);
      longest.emit(bodyRefused, unavailable('Too many bodies are arriving, and this one takes longest.'));
    }
  };
}

/** What a request says of the length of its body; infinite if it does not say. */
function announcedBytes({ headers }: IncomingMessage): number {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding === undefined ? Number(length) : Number.POSITIVE_INFINITY;
}

/** Reads a request body as sent. Throws BODY_TOO_LARGE as soon as it is; what `bodyRefused` carries; ClientGone. */
export function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const announced = announcedBytes(request);
  if (announced === 0) return Promise.resolve(noBytes);
  if (announced > bodyBytesMax && announced < Number.POSITIVE_INFINITY) throw bodyTooLarge();
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  // One buffer for the whole body: chunks of a byte each, kept apart, would take a thousand times their size.
  let body = Buffer.alloc(0);
  let bytes = 0;
  const take = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return refuse(bodyTooLarge());
    if (body.length === 0) body = Buffer.allocUnsafe(Math.min(announced, bodyBytesMax));
    chunk.copy(body, bytes - chunk.length);
  };
  const refuse = (refusal: Refusal) => {
    reject(refusal);
    // What still comes is thrown away, and what came is not kept until it has.
    request.off('data', take);
    body = Buffer.alloc(0);
  };
  request.on('data', take);
  request.on('end', () => resolve(body.subarray(0, bytes)));
  request.on(bodyRefused, refuse);
  request.on('error', () => reject(new ClientGone()));
  request.on('close', () => request.complete || reject(new ClientGone()));
  return promise;
}

function bodyTooLarge(): Refusal {
  return new Refusal('BODY_TOO_LARGE', `The body must have at most ${bodyBytesMax} bytes.`);
}

const jsonTypePattern = new RegExp(`^${jsonType}[ \\t]*(;[ \\t]*charset=("?)utf-8\\2[ \\t]*)?$`, 'i');

/** Checks that a body is unencoded JSON in UTF-8, as it was read and signed. Throws UNSUPPORTED_MEDIA_TYPE. */
export function checkMediaType(headers: NodeJS.Dict<string[]>): void {
  const types = headers['content-type'] ?? [];
  const encodings = headers['content-encoding'] ?? [];
  const codings = headers['transfer-encoding'] ?? [];
  // The parser takes the chunks apart and leaves any other coding as it is.
  if (codings.length > 1 || codings.some((coding) => coding.toLowerCase() !== 'chunked')) {
    throw new Refusal(
      'UNSUPPORTED_MEDIA_TYPE',
      'The header Transfer-Encoding must be chunked alone, or absent: the body is sent as it is.',
    );
  }
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
