import { existsSync, readFileSync } from 'node:fs';
import { createKeyRing, type KeyRing, newMasterKeyText, parseMasterKeys } from '../keys/key-ring.ts';
import { MasterKeyError } from '../keys/sealed-secrets.ts';
import { replaceFileSync } from '../lib/replace-file.ts';
import type { MasterKeySource } from './config.ts';

/**
 * Opens the key ring of a deployment whose folder this process has locked. A sandbox without one gets a file of its own, mode
 * 0600, if its store is empty: a new key could not decrypt what is stored. Throws MasterKeyError.
 */
export function openKeyRing(source: MasterKeySource, isEmpty: boolean): KeyRing {
  if ('ownFile' in source && isEmpty && !existsSync(source.ownFile))
    replaceFileSync(source.ownFile, newMasterKeyText(), 0o600);
  return readKeyRing(source);
}

/** Opens the key ring of a deployment that has one. Throws MasterKeyError. */
export function readKeyRing(source: MasterKeySource): KeyRing {
  if ('keys' in source) return createKeyRing(source.keys);
  const { ownFile } = source;
  if (!existsSync(ownFile))
    throw new MasterKeyError(`${ownFile} is missing: put the master key of this database back.`);
  try {
    return createKeyRing(parseMasterKeys(readFileSync(ownFile, 'utf8')));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new MasterKeyError(`${ownFile} cannot be used: ${reason}.`, { cause: error });
  }
}
