import { hexToBytes } from '@noble/hashes/utils.js';
import { malformed } from './failure.ts';

export { equalBytes as isSame } from '@noble/curves/utils.js';
export { bytesToHex as hex, utf8ToBytes as utf8 } from '@noble/hashes/utils.js';

/**
 * Text encodings, each with exactly one accepted form per value, so that no byte of a bundle can change without effect.
 * All readers throw VerificationFailure MALFORMED; `what` names the part in the message.
 */

// With ignoreBOM a byte order mark is kept. Dropped, it would be a byte that no hash covers.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8. */
export function readUtf8(bytes: Uint8Array, what: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed(`${what} is not UTF-8 text`);
  }
}

/** Decodes `length` bytes from lower-case hex. */
export function readHex(text: string, length: number, what: string): Uint8Array {
  if (text.length !== 2 * length || !/^[0-9a-f]*$/.test(text)) {
    throw malformed(`${what} has to be ${2 * length} hex digits in lower case`);
  }
  return hexToBytes(text);
}

/** Encodes bytes in standard base64 with padding (RFC 4648, section 4). */
export function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** Decodes standard base64 with padding and without stray bits. */
export function readBase64(text: string, what: string): Uint8Array {
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) {
    const bytes = Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
    if (base64(bytes) === text) return bytes;
  }
  throw malformed(`${what} has to be standard base64 with padding`);
}

/** Reads a whole number from 0 to 2^53-1 in decimal digits without leading zeros. */
export function readDecimal(text: string, what: string): number {
  const number = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw malformed(`${what} has to be a whole number from 0 to 2^53-1 without leading zeros`);
  }
  return number;
}
