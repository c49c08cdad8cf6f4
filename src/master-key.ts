import { readFileSync, writeFileSync } from 'node:fs';
import { createKeyRing, type KeyRing, newMasterKeyText, parseMasterKeys } from './access/key-ring.ts';
import type { MasterKeySource } from './config.ts';

/** Opens the key ring of a deployment; a sandbox without one gets a file of its own, mode 0600. */
export function openKeyRing(source: MasterKeySource): KeyRing {
  if ('keys' in source) return createKeyRing(source.keys);
  try {
    writeFileSync(source.ownFile, newMasterKeyText(), { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
  return createKeyRing(parseMasterKeys(readFileSync(source.ownFile, 'utf8')));
}
