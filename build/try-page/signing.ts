import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';

/** An operation of openapi.yaml, with what the page shows of it. */
export interface Operation {
  /** Its operationId. */
  readonly id: string;
  readonly method: string;
  /** As in openapi.yaml: /api/v1/filing/{filingNo}. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly isSigned: boolean;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: 'path' | 'query' | 'header';
    readonly required: boolean;
    readonly description: string;
    /** '' if there is none. */
    readonly example: string;
  }[];
  /** Bodies; none if it takes no body. */
  readonly examples: readonly { readonly name: string; readonly value: object }[];
}

/** The five parts of the signed message in their order, and how they are named. */
export const partNames = ['Method', 'Target', 'SHA-256 of the body', 'Timestamp', 'Nonce'] as const;
export type Parts = readonly [string, string, string, string, string];

/** The SHA-256 of a text in UTF-8, in hex. */
export const hashOf = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)));

/** The HMAC-SHA256 of a message with the whole secret as key, in hex. */
export const signatureOf = (parts: Parts, secret: string): string =>
  bytesToHex(hmac(sha256, utf8ToBytes(secret), utf8ToBytes(parts.join(''))));

/**
 * Splits a message into its parts; undefined if it is none. A target may end with hex digits, so that there are several
 * ways to split. The timestamp that is nearest to `nearS`, Unix seconds, shows the right one.
 */
export function splitMessage(message: string, nearS: number): Parts | undefined {
  const ends = message.matchAll(/(?=([0-9a-fA-F]{64})([0-9]{10})([A-Za-z0-9._~+/=-]{1,64})$)/g);
  const ways = Array.from(ends, ({ index, 1: hash = '', 2: timestamp = '', 3: nonce = '' }) => {
    const [, method = '', target = ''] = /^([A-Za-z]+)(\/.*)$/.exec(message.slice(0, index)) ?? [];
    return [method, target, hash, timestamp, nonce] as const;
  }).filter(([method]) => method !== '');
  const distance = ([, , , timestamp]: Parts) => Math.abs(Number(timestamp) - nearS);
  return ways.sort((one, other) => distance(one) - distance(other))[0];
}

/** Returns the message in a pasted text: an error as JSON, its sentence, or only the message. */
export function readPasted(pasted: string): string {
  let text = pasted.trim();
  try {
    text = String(JSON.parse(text).message);
  } catch {
    // Not JSON.
  }
  return text.split('The text to sign was: ').at(-1) ?? '';
}
