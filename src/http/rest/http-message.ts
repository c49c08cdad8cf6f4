import type { IncomingMessage } from 'node:http';
import type { Limits } from '../../api/admission.ts';
import { credentialHeaders, type SentCredentials } from '../../api/authentication.ts';
import { ApiError, reasons } from '../../domain/reason.ts';
import { framingFault } from '../listen/http1-server.ts';
import { bodyBytesMax } from '../listen/open-calls.ts';

/** The page that explains each error, under `#` and its code. */
export const errorsPath = '/docs/errors';

/** A response before it is written to a connection. Later steps may add headers. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string | Uint8Array;
}

/** The media type of every response of an operation. */
export const jsonType = 'application/json';

/** A response with an object as JSON. */
export function jsonResponse(
  status: number,
  value: object,
  headers: Record<string, string> = {},
): HttpResponse {
  headers['Content-Type'] = jsonType;
  return { status, headers, body: JSON.stringify(value) };
}

/** The response for an error, with its hints as headers. */
export function errorResponse({ reason, message, hints }: ApiError, requestId: string): HttpResponse {
  const headers: Record<string, string> = { Link: `<${errorsPath}#${reason}>; rel="help"` };
  if (hints.retryAfterS !== undefined) headers['Retry-After'] = String(hints.retryAfterS);
  if (hints.serverTimeS !== undefined) headers['X-Server-Time'] = String(hints.serverTimeS);
  if (hints.allow !== undefined) headers.Allow = hints.allow.join(', ');
  return jsonResponse(reasons[reason].http, { code: reason, message, requestId }, headers);
}

/**
 * The RateLimit-Policy and RateLimit headers (IETF draft-ietf-httpapi-ratelimit-headers): for each policy its quota q and
 * window w, the remaining calls r and the seconds t until it resets. A caller without quota has no monthly policy.
 */
export function rateLimitHeaders({ rate, quota }: Limits): Record<string, string> {
  const policy = `"qps";q=${rate.callsPerSecond};w=1`;
  const left = `"qps";r=${rate.remaining};t=${rate.resetS}`;
  if (quota.limit === undefined) return { 'RateLimit-Policy': policy, RateLimit: left };
  return {
    'RateLimit-Policy': `${policy}, "monthly";q=${quota.limit};w=${quota.monthS}`,
    RateLimit: `${left}, "monthly";r=${quota.remaining};t=${quota.resetS}`,
  };
}

const none: readonly string[] = [];

/** All values sent for a header; `name` is in lower case. Node's `headers` joins or drops repeated ones. */
export function sentHeader({ rawHeaders }: IncomingMessage, name: string): readonly string[] {
  let values = none;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] ?? '';
    if (sent.length !== name.length || sent.toLowerCase() !== name) continue;
    const value = rawHeaders[at + 1] ?? '';
    // Nearly always one value, and pushing to an array would reserve space for many.
    values = values === none ? [value] : [...values, value];
  }
  return values;
}

const credentialNames = {
  apiKey: credentialHeaders.apiKey.toLowerCase(),
  timestamp: credentialHeaders.timestamp.toLowerCase(),
  nonce: credentialHeaders.nonce.toLowerCase(),
  signature: credentialHeaders.signature.toLowerCase(),
} as const;

/** All values sent for the four headers of a signed call. */
export const sentCredentials = (request: IncomingMessage): SentCredentials => ({
  apiKey: sentHeader(request, credentialNames.apiKey),
  timestamp: sentHeader(request, credentialNames.timestamp),
  nonce: sentHeader(request, credentialNames.nonce),
  signature: sentHeader(request, credentialNames.signature),
});

/** Checks Host and Transfer-Encoding. Throws BAD_REQUEST_TARGET. */
export function checkHead(request: IncomingMessage): void {
  const hosts = sentHeader(request, 'host').length;
  if (hosts > 1) throw badRequest('The header Host must be sent once.');
  if (hosts === 0 && request.httpVersion === '1.1') {
    throw badRequest('An HTTP/1.1 request needs a Host header.');
  }
  const fault = framingFault(request);
  if (fault !== undefined) throw badRequest(fault);
}

/** The error of a request that breaks the rules of HTTP. */
export function badRequest(message: string): ApiError {
  return new ApiError('BAD_REQUEST_TARGET', message);
}

/** A parsed request target, decoded once. */
export interface RequestTarget {
  /** Path segments without their slashes. */
  readonly segments: readonly string[];
  /** Query parameters in the order sent. A stray & gives one without a name; a ? with nothing after it gives none. */
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** The longest target, in bytes. */
export const targetBytesMax = 2_048;

const visibleAscii = /^[\x21-\x7e]*$/;
const dotSegment = /\/(\.|%2e){1,2}(\/|$)/i;
/**
 * A signed message has no separators, so a target that ends like a hash could also be read as a shorter target and the first
 * digits of a body's hash. With at most half a hash at the end of a target, nobody can find a body that fits.
 */
const endsLikeHash = /[0-9a-f]{33}$/;
const encodedSlashOrNul = /%(2f|00)/i;

/**
 * Parses a raw target. Throws BAD_REQUEST_TARGET for a target that a proxy could understand differently: absolute form, dot
 * segments, empty segments, encoded slashes, NUL, fragments, bad escapes.
 */
export function parseRequestTarget(raw: string): RequestTarget {
  const reject = (rule: string): never => {
    throw new ApiError('BAD_REQUEST_TARGET', `The request target ${rule}.`);
  };
  if (!raw.startsWith('/')) reject('must begin with / (origin form)');
  if (raw.length > targetBytesMax) reject(`must have at most ${targetBytesMax} bytes`);
  if (!visibleAscii.test(raw)) reject('must be ASCII; percent-encode everything else');
  if (/[#\\]/.test(raw)) reject('must not contain # or \\');
  const queryAt = raw.indexOf('?');
  const path = queryAt < 0 ? raw : raw.slice(0, queryAt);
  const query = queryAt < 0 ? '' : raw.slice(queryAt + 1);
  if (raw.includes('//')) reject('must not contain //');
  if (encodedSlashOrNul.test(raw)) reject('must not contain %2F or %00');
  if (endsLikeHash.test(raw)) reject('must not end in more than 32 lower-case hex digits');
  if (dotSegment.test(path)) reject('must not contain dot segments');
  const decode = (text: string): string => {
    if (!text.includes('%')) return text;
    try {
      return decodeURIComponent(text);
    } catch {
      return reject('has an escape that is not % and two hex digits of UTF-8');
    }
  };
  const parameters = query === '' ? [] : query.split('&').map((pair) => splitPair(pair).map(decode));
  return {
    segments: path.slice(1).split('/').map(decode),
    query: parameters.map(([name = '', value = '']) => [name, value]),
  };
}

function splitPair(pair: string): [string, string] {
  const at = pair.indexOf('=');
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}

/** The client closed its connection before its request was complete, so nobody reads a response. */
export class ClientGone extends Error {
  override name = 'ClientGone';
}

const noBytes: Uint8Array = new Uint8Array();

/** The listener emits this event, with an ApiError, on a request whose body cannot be read to its end. */
export const bodyRejected = 'artseal:body-rejected';

/** Reads a request body. Throws BODY_TOO_LARGE as soon as it is too large, the error of `bodyRejected`, and ClientGone. */
export function readBody(request: IncomingMessage): Promise<Uint8Array> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (Number(length) > bodyBytesMax) throw bodyTooLarge();
  if (length === '0' && encoding === undefined) return Promise.resolve(noBytes);
  const bytesMax = encoding === undefined ? Number(length) : bodyBytesMax;
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let body = noBytes;
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return reject(bodyTooLarge());
    // Most bodies are one chunk. For others one buffer: chunks of one byte would take a thousand times their size.
    if (chunk.length === bytesMax) body = chunk;
    else {
      if (body.length === 0) body = Buffer.allocUnsafe(bytesMax);
      body.set(chunk, bytes - chunk.length);
    }
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

/** How long the server reads and discards the rest of a small body, in milliseconds. */
const skipMs = 2_000;

/**
 * Discards the rest of a body that is small enough to read to its end, so that the connection stays open for the next request.
 * Resolves at its end, after `skipMs`, or at once for a larger body.
 */
export async function skipSmallBody(request: IncomingMessage): Promise<void> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined || Number(length) > bodyBytesMax) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ['end', 'close', bodyRejected]) request.once(event, () => resolve());
  const timeout = setTimeout(resolve, skipMs);
  request.resume();
  await promise;
  clearTimeout(timeout);
}
