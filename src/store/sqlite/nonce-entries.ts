import { sha256 } from '../../domain/sha256.ts';
import type { Fingerprint } from './fingerprints.ts';

/** A nonce that was spent, by its fingerprint, and when: Unix seconds. */
export interface SpentNonce {
  readonly fingerprint: Fingerprint;
  readonly atS: number;
}

/** Both halves of the fingerprint and the time, 4 bytes each, the lowest first. */
const entryBytes = 12;

/**
 * SHA-256 of a nonce's name, `${key} ${nonce}`, cut to 64 bits. Of 10 million nonces that are remembered, a new one
 * meets the fingerprint of another once in 10^12 calls, and is then refused as if it were spent; nobody can aim at that.
 */
export function nonceFingerprint(name: string): Fingerprint {
  const digest = sha256(name);
  return { high: digest.readUInt32LE(0), low: digest.readUInt32LE(4) };
}

/** Entries as they are stored. */
export function writeEntries(entries: readonly SpentNonce[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(entries.length * entryBytes);
  for (const [place, { fingerprint, atS }] of entries.entries()) {
    bytes.writeUInt32LE(fingerprint.high, place * entryBytes);
    bytes.writeUInt32LE(fingerprint.low, place * entryBytes + 4);
    bytes.writeUInt32LE(atS, place * entryBytes + 8);
  }
  return bytes;
}

/** The entries in stored bytes. */
export function readEntries(bytes: Buffer): SpentNonce[] {
  return Array.from({ length: bytes.length / entryBytes }, (_, place) => ({
    fingerprint: {
      high: bytes.readUInt32LE(place * entryBytes),
      low: bytes.readUInt32LE(place * entryBytes + 4),
    },
    atS: bytes.readUInt32LE(place * entryBytes + 8),
  }));
}
