import { hkdfSync } from 'node:crypto';
import type { Database } from './database.ts';
import { deployment } from './schema.ts';

const derivedKeyBytes = 32;

/** The secret that the database was given when it was made, 32 random bytes; it scrambles the escrow ids. */
export function deploymentSecret(database: Database): Uint8Array {
  const [stamped] = database.select().from(deployment).all();
  if (stamped === undefined) throw new Error('The database has no deployment stamp.');
  return stamped.escrowIdKey;
}

/** The key for a purpose of that name: HKDF-SHA256 of the deployment's secret, 32 bytes. */
export function derivedKey(secret: Uint8Array, purpose: string): Uint8Array {
  return Buffer.from(hkdfSync('sha256', secret, '', `artseal ${purpose}`, derivedKeyBytes));
}
