// Signatures of webhooks as Standard Webhooks 1.0.0 has them, with symmetric secrets.

import { createHmac, randomBytes } from 'node:crypto';

/** The three headers of a webhook, by what they carry. */
export const webhookHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/** How long the key in a secret may be, in bytes. */
export const webhookKeyBytes = { min: 24, max: 64 } as const;

const newKeyBytes = 32;
const secretPrefix = 'whsec_';

/** What one signature covers. */
export interface SignedWebhook {
  /** The same in every attempt to deliver; without a full stop, which separates the signed parts. */
  readonly id: string;
  /** Unix seconds of this attempt, as in the header. */
  readonly timestamp: string;
  /** The bytes that are sent; text is sent as UTF-8. */
  readonly body: string | Uint8Array;
}

/** An attempt to deliver a webhook. */
export interface WebhookAttempt extends Omit<SignedWebhook, 'timestamp'> {
  /** Unix seconds of this attempt. */
  readonly timestampS: number;
  /** `whsec_…`: one, or two while one replaces the other. */
  readonly secrets: readonly string[];
}

/** A new secret: `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(): string {
  return secretPrefix + randomBytes(newKeyBytes).toString('base64');
}

/**
 * The key in a secret. Throws a TypeError, which does not repeat the secret, unless it is `whsec_` and the base64, with its
 * padding, of as many bytes as `webhookKeyBytes` allows.
 */
export function parseWebhookSecret(secret: string): Buffer {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : '';
  const key = Buffer.from(encoded, 'base64');
  const { min, max } = webhookKeyBytes;
  // Decoding passes over what is not base64.
  if (key.length < min || key.length > max || key.toString('base64') !== encoded) {
    throw new TypeError(`A webhook secret is ${secretPrefix} and the base64 of ${min} to ${max} bytes.`);
  }
  return key;
}

/** One entry of the signature header: `v1,` and the base64 of HMAC-SHA256 over id, timestamp and body, with full stops between. */
export function webhookSignature({ id, timestamp, body }: SignedWebhook, key: Uint8Array): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/** The headers that sign an attempt: one signature for each secret, in their order. Throws a TypeError for a malformed secret. */
export function signatureHeaders({
  id,
  timestampS,
  body,
  secrets,
}: WebhookAttempt): Record<(typeof webhookHeaders)[keyof typeof webhookHeaders], string> {
  const timestamp = String(timestampS);
  const signatures = secrets.map((secret) =>
    webhookSignature({ id, timestamp, body }, parseWebhookSecret(secret)),
  );
  return {
    [webhookHeaders.id]: id,
    [webhookHeaders.timestamp]: timestamp,
    [webhookHeaders.signature]: signatures.join(' '),
  };
}
