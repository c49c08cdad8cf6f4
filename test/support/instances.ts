import type { TestContext } from 'node:test';
import { keysInFile, newKey } from './master-keys.ts';
import { createDatabase } from './postgres.ts';
import { startStripeStandIn } from './stripe-stand-in.ts';

/** A deployment on PostgreSQL whose instances have no data folder in common, at a payment provider that they share. */
export async function sharedDeployment(t: TestContext) {
  const url = await createDatabase(t);
  const standIn = await startStripeStandIn(t);
  const { env, write } = keysInFile(t);
  const key = newKey('k1');
  write(key);
  /** The settings of each instance, which lack its data folder. */
  const settings = { ...standIn.settings, ...env, ARTSEAL_DATABASE_URL: url };
  return { url, standIn, settings, key, writeKeys: write };
}
