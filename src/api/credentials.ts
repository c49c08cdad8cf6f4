import { ApiError } from '../domain/reason.ts';
import { isApiKey } from '../keys/mint.ts';

/** The four headers that identify and sign a call, by what they carry. */
export const credentialHeaders = {
  apiKey: 'X-Api-Key',
  timestamp: 'X-Timestamp',
  nonce: 'X-Nonce',
  signature: 'X-Signature',
} as const;

/** What the four headers carry. */
export type Credentials = { readonly [Part in keyof typeof credentialHeaders]: string };

/** Each header as often as it was sent. */
export type SentCredentials = { readonly [Part in keyof Credentials]: readonly string[] };

/** Accepted difference between a request's clock and the server's, inclusive, in seconds. */
export const clockDifferenceMaxS = 300;

/** What each header must look like; the timestamp has a check and a reason of its own. */
const shapes: { readonly [Part in keyof Credentials]?: { pattern: RegExp; rule: string } } = {
  apiKey: { pattern: /^[\x21-\x7e]{1,128}$/, rule: 'must be the key as issued' },
  nonce: { pattern: /^[A-Za-z0-9._~+/=-]{1,64}$/, rule: 'must be 1 to 64 of A-Z a-z 0-9 . _ ~ + / = -' },
  signature: { pattern: /^[0-9a-f]{64}$/, rule: 'must be 64 lower-case hex digits' },
};

const unixSeconds = /^[1-9][0-9]{9}$/;

const parts = Object.keys(credentialHeaders) as (keyof Credentials)[];

/**
 * Reads the four headers. Throws AUTH_HEADER_MISSING for the first one absent or empty, then
 * AUTH_HEADER_INVALID for the first one repeated or malformed; the timestamp's value is for checkTimestamp.
 */
export function readCredentials(sent: SentCredentials): Credentials {
  for (const part of parts) {
    if (sent[part].every((value) => value === '')) {
      throw new ApiError('AUTH_HEADER_MISSING', `The header ${credentialHeaders[part]} is required.`);
    }
  }
  for (const part of parts) {
    const { length, 0: value = '' } = sent[part];
    const shape = shapes[part];
    const repeated = length > 1 && 'was sent more than once';
    const broken = repeated || (shape !== undefined && !shape.pattern.test(value) && shape.rule);
    if (broken) throw new ApiError('AUTH_HEADER_INVALID', `The header ${credentialHeaders[part]} ${broken}.`);
  }
  const only = ([value = '']: readonly string[]) => value;
  return {
    apiKey: only(sent.apiKey),
    timestamp: only(sent.timestamp),
    nonce: only(sent.nonce),
    signature: only(sent.signature),
  };
}

/** The API key that a call claims to be signed with; undefined for anything that cannot be one, such as a secret. */
export function claimedKey({ apiKey: [value = '', ...more] }: SentCredentials): string | undefined {
  return more.length === 0 && isApiKey(value) ? value : undefined;
}

/** Throws TIMESTAMP_EXPIRED unless the timestamp is Unix seconds within clockDifferenceMaxS of now. */
export function checkTimestamp(timestamp: string, nowMs: number): void {
  const serverTimeS = Math.floor(nowMs / 1000);
  const sent = unixSeconds.test(timestamp);
  if (sent && Math.abs(Number(timestamp) - serverTimeS) <= clockDifferenceMaxS) return;
  const rule = sent
    ? `differs from the server's clock (${serverTimeS}) by more than ${clockDifferenceMaxS} seconds`
    : `must be Unix time in whole seconds, ten digits; the server's clock is ${serverTimeS}`;
  throw new ApiError('TIMESTAMP_EXPIRED', `The header ${credentialHeaders.timestamp} ${rule}.`, {
    serverTimeS,
  });
}
