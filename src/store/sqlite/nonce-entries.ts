import { sha256 } from '../../domain/sha256.ts';
import type { Fingerprint } from './fingerprints.ts';

/** The fingerprint of a spent nonce, and when it was spent, Unix seconds. */
export interface SpentNonce {
  readonly fingerprint: Fingerprint;
  readonly atS: number;
}

/** Both halves of the fingerprint and the time, 4 bytes each, the lowest first. */
const entryBytes = 12;

/**
 * The first 64 bits of the SHA-256 of a nonce's name, `${key} ${nonce}`. With 10 million nonces in memory, a new nonce has the
 * fingerprint of another once in 10^12 calls, and is then rejected as spent. Nobody can aim at that.
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
