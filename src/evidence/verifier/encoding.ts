import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { malformed } from './failure.ts';

/**
 * Texts to values, each in the one form that it may have: whoever changes a byte of what was handed over changes what it
 * says. All readers throw VerificationFailure MALFORMED that names the part by `what`.
 */

const encoder = new TextEncoder();
// A byte order mark is a character like others: dropped, it would be a byte that nothing covers.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A text in UTF-8. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** The text of bytes in UTF-8. */
export function readUtf8(bytes: Uint8Array, what: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed(`${what} is not UTF-8 text`);
  }
}

/** Bytes in lower-case hex. */
export function hex(bytes: Uint8Array): string {
  return bytesToHex(bytes);
}

/** Bytes of so many lower-case hex digits. */
export function readHex(text: string, length: number, what: string): Uint8Array {
  if (text.length !== 2 * length || !/^[0-9a-f]*$/.test(text)) {
    throw malformed(`${what} has to be ${2 * length} hex digits in lower case`);
  }
  return hexToBytes(text);
}

/** Bytes in the standard base64 of RFC 4648, section 4. */
export function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** Bytes of standard base64 with its padding, in the form that encoding them gives. */
export function readBase64(text: string, what: string): Uint8Array {
  if (/^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0) {
    const bytes = Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
    if (base64(bytes) === text) return bytes;
  }
  throw malformed(`${what} has to be standard base64 with padding`);
}

/** A whole number from 0 to 2^53-1 in decimal digits without leading zeros. */
export function readDecimal(text: string, what: string): number {
  const number = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw malformed(`${what} has to be a whole number from 0 to 2^53-1 without leading zeros`);
  }
  return number;
}

/** Whether two byte strings are the same. */
export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}
