import { createHmac, hash, type KeyObject } from 'node:crypto';

/** The parts of a request that its signature covers. */
export interface CanonicalRequest {
  /** Upper case. */
  readonly method: string;
  /** The raw request target as sent, query included. */
  readonly target: string;
  readonly body: Uint8Array;
  /** Unix seconds, ten digits. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** The signed message: method, target, hex SHA-256 of the raw body, timestamp and nonce, without separators. */
export function canonicalMessage({ method, target, body, timestamp, nonce }: CanonicalRequest): string {
  return `${method}${target}${hash('sha256', body, 'hex')}${timestamp}${nonce}`;
}

/** HMAC-SHA256 of the canonical message in lower-case hex. The key is the UTF-8 bytes of the whole issued secret. */
export function signature(request: CanonicalRequest, secret: string | KeyObject): string {
  return createHmac('sha256', secret).update(canonicalMessage(request)).digest('hex');
}
