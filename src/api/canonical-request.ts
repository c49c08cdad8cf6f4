import { createHmac, hash, type KeyObject } from 'node:crypto';

/** What a signature covers. */
export interface CanonicalRequest {
  /** Upper case. */
  readonly method: string;
  /** The raw request target as sent, with its query if there is one. */
  readonly target: string;
  readonly body: Uint8Array;
  /** Unix seconds, ten digits. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** The message that is signed: method, target, hex SHA-256 of the raw body, timestamp and nonce, with nothing between. */
export function canonicalMessage({ method, target, body, timestamp, nonce }: CanonicalRequest): string {
  return `${method}${target}${hash('sha256', body, 'hex')}${timestamp}${nonce}`;
}

/** HMAC-SHA256 of the canonical message under the UTF-8 bytes of the whole issued secret, in lower-case hex. */
export function signature(request: CanonicalRequest, secret: string | KeyObject): string {
  return createHmac('sha256', secret).update(canonicalMessage(request)).digest('hex');
}
