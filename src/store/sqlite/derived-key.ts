import { hkdfSync } from 'node:crypto';

const derivedKeyBytes = 32;

/** The key for a purpose of that name: HKDF-SHA256 of the deployment's secret, 32 bytes. */
export function derivedKey(secret: Uint8Array, purpose: string): Uint8Array {
  return Buffer.from(hkdfSync('sha256', secret, '', `artseal ${purpose}`, derivedKeyBytes));
}
