import { ApiError } from '../domain/reason.ts';
import { isApiKey } from '../keys/mint.ts';

/** The four headers that identify and sign a call. */
export const credentialHeaders = {
  apiKey: 'X-Api-Key',
  timestamp: 'X-Timestamp',
  nonce: 'X-Nonce',
  signature: 'X-Signature',
} as const;

/** The values of the four headers. */
export type Credentials = { readonly [Part in keyof typeof credentialHeaders]: string };

/** All values sent for each header. */
export type SentCredentials = { readonly [Part in keyof Credentials]: readonly string[] };

/** Largest accepted difference between the client's and the server's clock, in seconds. */
export const clockDifferenceMaxS = 300;

/** The form of each header. `checkTimestamp` checks the timestamp, which has its own error code. */
const shapes: { readonly [Part in keyof Credentials]?: { pattern: RegExp; rule: string } } = {
  apiKey: { pattern: /^[\x21-\x7e]{1,128}$/, rule: 'must be the key as issued' },
  nonce: { pattern: /^[A-Za-z0-9._~+/=-]{1,64}$/, rule: 'must be 1 to 64 of A-Z a-z 0-9 . _ ~ + / = -' },
  signature: { pattern: /^[0-9a-f]{64}$/, rule: 'must be 64 lower-case hex digits' },
};

const unixSeconds = /^[1-9][0-9]{9}$/;

const parts = Object.keys(credentialHeaders) as (keyof Credentials)[];

/**
 * Reads the four headers. Throws AUTH_HEADER_MISSING for the first one that is absent or empty, then AUTH_HEADER_INVALID for
 * the first one that is repeated or malformed.
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
  const [apiKey = ''] = sent.apiKey;
  const [timestamp = ''] = sent.timestamp;
  const [nonce = ''] = sent.nonce;
  const [signature = ''] = sent.signature;
  return { apiKey, timestamp, nonce, signature };
}

/** The API key in the header, for the log; undefined if the value does not look like a key, because it may be a secret. */
export function claimedKey({ apiKey: [value = '', ...more] }: SentCredentials): string | undefined {
  return more.length === 0 && isApiKey(value) ? value : undefined;
}

/** Throws TIMESTAMP_EXPIRED unless the timestamp is Unix seconds within `clockDifferenceMaxS` of now. */
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
