import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiCredentials } from '../src/client/sign.ts';

/** A key that both servers and the load generator know. */
export interface BenchKey extends ApiCredentials {
  readonly id: number;
  readonly callerId: number;
}

/** Where a data folder has its keys with their secrets. */
export const keysFile = (dataDir: string): string => join(dataDir, 'bench-keys.json');

/** The keys of a data folder. */
export function readKeys(dataDir: string): BenchKey[] {
  return JSON.parse(readFileSync(keysFile(dataDir), 'utf8'));
}
