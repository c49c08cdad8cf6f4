import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../src/config.ts';
import { openRegistry } from '../src/registry.ts';
import { type BenchKey, keysFile } from './keys.ts';

/** Callers enough that none ever comes near its rate, 200 calls a second. */
const callers = 256;

/** Makes a data folder as the service makes it, with the keys of many callers. */
export async function makeDataDir(dataDir: string): Promise<void> {
  const registry = await openRegistry(readConfig({ ARTSEAL_DATA_DIR: dataDir }), 'NEW');
  const keys: BenchKey[] = [];
  try {
    for (let caller = 1; caller <= callers; caller += 1) {
      const { key, apiSecret } = await registry.issuance.issueKey({
        name: `bench-${caller}`,
        tier: 'ENTERPRISE',
        monthlyQuota: undefined,
        unlimited: true,
      });
      keys.push({ id: key.id, callerId: key.callerId, apiKey: key.apiKey, apiSecret });
    }
  } finally {
    await registry.store.close();
  }
  writeFileSync(keysFile(dataDir), JSON.stringify(keys));
}

/** Makes a second data folder with the database and the keys of the first, which nobody has open. */
export function copyDataDir(from: string, to: string): void {
  mkdirSync(to);
  copyFileSync(join(from, 'artseal.db'), join(to, 'artseal.db'));
  copyFileSync(keysFile(from), keysFile(to));
}
