import type { Database } from './connection.ts';
import { deployment } from './schema.ts';

/** The secret that the database was given when it was made, 32 random bytes; it scrambles the escrow ids. */
export function deploymentSecret(database: Database): Uint8Array {
  const [stamped] = database.select().from(deployment).all();
  if (stamped === undefined) throw new Error('The database has no deployment stamp.');
  return stamped.secret;
}
