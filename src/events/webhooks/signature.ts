// Webhook signatures of Standard Webhooks 1.0.0, with symmetric secrets.

import { createHmac, randomBytes } from 'node:crypto';

/** The headers of a webhook. */
export const webhookHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/** Length of the key in a secret, in bytes. */
export const webhookKeyBytes = { min: 24, max: 64 } as const;

const newKeyBytes = 32;
const secretPrefix = 'whsec_';

/** What one signature covers. */
interface SignedWebhook {
  /** The same in every attempt. Has no full stop, which separates the signed parts. */
  readonly id: string;
  /** Unix seconds of this attempt, as in the header. */
  readonly timestamp: string;
  /** Text is sent as UTF-8. */
  readonly body: string | Uint8Array;
}

interface WebhookAttempt extends Omit<SignedWebhook, 'timestamp'> {
  /** Unix seconds of this attempt. */
  readonly timestampS: number;
  /** `whsec_…`: the current one, and the previous one while it is valid. */
  readonly secrets: readonly string[];
}

/** Returns the secret with a key: `whsec_` and its base64. */
export function webhookSecretOf(key: Buffer): string {
  return secretPrefix + key.toString('base64');
}

/** Returns a new secret, with 32 random bytes. */
export function newWebhookSecret(): string {
  return webhookSecretOf(randomBytes(newKeyBytes));
}

/**
 * Returns the key in a secret. Throws a TypeError, without the secret, unless it is `whsec_` and padded base64 of a key whose
 * length `webhookKeyBytes` allows.
 */
export function parseWebhookSecret(secret: string): Buffer {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : '';
  const key = Buffer.from(encoded, 'base64');
  const { min, max } = webhookKeyBytes;
  // The decoder ignores characters that are not base64.
  if (key.length < min || key.length > max || key.toString('base64') !== encoded) {
    throw new TypeError(`A webhook secret is ${secretPrefix} and the base64 of ${min} to ${max} bytes.`);
  }
  return key;
}

/** Returns one entry of the signature header: `v1,` and the base64 of HMAC-SHA256 over id, timestamp and body, with full stops between. */
export function webhookSignature({ id, timestamp, body }: SignedWebhook, key: Uint8Array): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/** Returns the headers of an attempt, with one signature for each secret, in order. Throws a TypeError for a malformed secret. */
export function signatureHeaders({ id, timestampS, body, secrets }: WebhookAttempt) {
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
