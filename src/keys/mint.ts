import { randomBytes } from 'node:crypto';
import type { Environment } from '../domain/caller.ts';
import { sha256 } from '../domain/sha256.ts';

const words = { sandbox: 'sandbox', production: 'live' } as const satisfies Record<Environment, string>;

const apiKeyPattern = new RegExp(`^ak_(${Object.values(words).join('|')})_[0-9a-f]{32}$`);

/** The prefix of the ids of links to evidence. Hex digits of `linkIdBytes` bytes follow. */
export const linkIdPrefix = 'el_';
/** The random bytes of such an id. */
export const linkIdBytes = 8;

const random = (bytes: number): string => randomBytes(bytes).toString('hex');

/** Makes an API key that names its environment: its public handle, the key that the platform sends, and the secret it signs with. */
export function mintKey(environment: Environment) {
  const word = words[environment];
  return {
    keyId: `key_${random(8)}`,
    apiKey: `ak_${word}_${random(16)}`,
    apiSecret: `sk_${word}_${random(32)}`,
  };
}

/** Whether a text has the form of an API key of any environment. */
export function isApiKey(text: string): boolean {
  return apiKeyPattern.test(text);
}

/** Whether a text begins as the API keys of sandboxes do. */
export const isSandboxKey = (text: string): boolean => text.startsWith(`ak_${words.sandbox}_`);

/** Makes a service token with its public handle. */
export function mintToken(environment: Environment) {
  return { tokenId: `tok_${random(8)}`, token: `it_${words[environment]}_${random(32)}` };
}

/** Makes the public handle of a webhook. */
export const mintWebhookId = (): string => `wh_${random(8)}`;

/** Makes the public handle of a link to evidence. */
export const mintLinkId = (): string => `${linkIdPrefix}${random(linkIdBytes)}`;

/** Makes the public handle of a pre-registration. */
export const mintRegistrationId = (): string => `rg_${random(8)}`;

/** Makes the token of a one-time link to an API key; base64url. */
export const mintAccessToken = (): string => randomBytes(32).toString('base64url');

/** Makes the id of a test event. */
export const mintTestEventId = (): string => `evt_${random(16)}`;

/** The SHA-256 by which a service token, or that of a one-time link, is stored and found. Its 256 random bits need no slower hash. */
export const tokenHash = (token: string): Uint8Array => sha256(token);
