import { createHash, createHmac, randomBytes } from 'node:crypto';
import { type IncomingHttpHeaders, request } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { text } from 'node:stream/consumers';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { assertDocumented } from './openapi.ts';

/** A request, and where its signature differs from a valid one. */
export interface SignedRequest {
  readonly method?: string;
  readonly target: string;
  readonly body?: string | Uint8Array;
  /** X-Timestamp. */
  readonly timestamp?: string;
  /** X-Nonce. */
  readonly nonce?: string;
  /** X-Signature; by default the valid one. */
  readonly signature?: string;
  /** Further headers. An array is sent once for each value; undefined removes a header. */
  readonly headers?: Record<string, string | readonly string[] | undefined>;
}

/** A response of the public API. */
export interface RestAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; undefined if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: responses have every shape.
  readonly json: any;
}

/** Returns an unused nonce. */
export const newNonce = (): string => randomBytes(16).toString('hex');

/** The signature as documented, made without code of the service. */
export function documentedSignature(
  secret: string,
  {
    method,
    target,
    body = '',
    timestamp,
    nonce,
  }: Required<Pick<SignedRequest, 'method' | 'target' | 'timestamp' | 'nonce'>> & Pick<SignedRequest, 'body'>,
): string {
  const bodyHash = createHash('sha256').update(body).digest('hex');
  return createHmac('sha256', secret)
    .update(method + target + bodyHash + timestamp + nonce)
    .digest('hex');
}

/** The headers of a signed request. */
export function headersOf(
  credentials: ApiCredentials,
  sent: SignedRequest,
): Record<string, string | string[]> {
  const { target, body } = sent;
  const method = methodOf(sent);
  const timestamp = sent.timestamp ?? String(Math.floor(Date.now() / 1000));
  const nonce = sent.nonce ?? newNonce();
  const signed = documentedSignature(credentials.apiSecret, {
    method,
    target,
    timestamp,
    nonce,
    ...(body === undefined ? {} : { body }),
  });
  const headers: Record<string, string | readonly string[] | undefined> = {
    'X-Api-Key': credentials.apiKey,
    'X-Timestamp': timestamp,
    'X-Nonce': nonce,
    'X-Signature': sent.signature ?? signed,
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...sent.headers,
  };
  const kept = Object.entries(headers).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}

/** Sends a signed request over a new connection. Asserts that the response is documented. */
export async function send(
  baseUrl: string,
  credentials: ApiCredentials,
  sent: SignedRequest,
): Promise<RestAnswer> {
  const answer = await exchange(baseUrl, credentials, sent);
  assertDocumented(methodOf(sent), sent.target, answer);
  return answer;
}

function methodOf({ method, body }: SignedRequest): string {
  return method ?? (body === undefined ? 'GET' : 'POST');
}

function exchange(baseUrl: string, credentials: ApiCredentials, sent: SignedRequest): Promise<RestAnswer> {
  const method = methodOf(sent);
  const { protocol, hostname, port } = new URL(baseUrl);
  const { promise, resolve, reject } = Promise.withResolvers<RestAnswer>();
  const headers = headersOf(credentials, sent);
  const outgoing = (protocol === 'https:' ? requestSecurely : request)(
    { hostname, port, method, path: sent.target, headers, agent: false },
    (incoming) => {
      const { statusCode: status = 0, headers: received } = incoming;
      const answered = (body: string) =>
        resolve({ status, headers: received, text: body, json: parsed(body) });
      text(incoming).then(answered, reject);
    },
  );
  outgoing.on('error', reject);
  outgoing.end(sent.body);
  return promise;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
