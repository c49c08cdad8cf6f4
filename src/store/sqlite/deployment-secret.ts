import { hkdfSync } from 'node:crypto';
import type { Database } from './connection.ts';
import { deployment } from './schema.ts';

const derivedKeyBytes = 32;

/** The secret of a database, 32 random bytes. It scrambles the escrow ids. */
export function deploymentSecret(database: Database): Uint8Array {
  const row = database.select().from(deployment).get();
  if (row === undefined) throw new Error('The database has no deployment row.');
  return row.secret;
}

/** The key for a purpose: HKDF-SHA256 of the deployment's secret, 32 bytes. */
export function derivedKey(secret: Uint8Array, purpose: string): Uint8Array {
  return Buffer.from(hkdfSync('sha256', secret, '', `artseal ${purpose}`, derivedKeyBytes));
}
