import { randomBytes } from 'node:crypto';
import { credentialHeaders, signature } from '../api/authentication.ts';

/** The credentials of a platform. */
export interface ApiCredentials {
  readonly apiKey: string;
  readonly apiSecret: string;
}

/** A request to sign. */
export interface Unsigned {
  /** Upper case. */
  readonly method: string;
  /** Path with its query, as it will be sent. */
  readonly target: string;
  readonly body?: Uint8Array | string;
}

const nonceBytes = 16;

/** Returns the four headers that sign a request. Sign every attempt: a nonce is valid once. */
export function signedHeaders(
  { apiKey, apiSecret }: ApiCredentials,
  { method, target, body = '' }: Unsigned,
): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const nonce = randomBytes(nonceBytes).toString('hex');
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const signed = signature({ method, target, body: bytes, timestamp, nonce }, apiSecret);
  return {
    [credentialHeaders.apiKey]: apiKey,
    [credentialHeaders.timestamp]: timestamp,
    [credentialHeaders.nonce]: nonce,
    [credentialHeaders.signature]: signed,
  };
}
