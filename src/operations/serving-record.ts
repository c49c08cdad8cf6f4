import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { MasterKeyId } from '../keys/key-ring.ts';
import type { Logger } from '../lib/log.ts';
import { replaceFileSync } from '../lib/replace-file.ts';

/**
 * What the serving process says of itself to `artseal check`, in a file of the data folder. The file outlives its process after
 * kill -9, so trust it only while the folder is locked.
 */
export interface ServingRecord {
  readonly pid: number;
  /** host:port as bound. */
  readonly addresses: readonly string[];
  /** The master keys that the process has. */
  readonly masterKeys: readonly MasterKeyId[];
}

/** Its file in the data folder. */
export const servingRecordName = 'serving.json';

/** Reads the record; undefined if there is no valid one. */
export function readServingRecord(dataDir: string): ServingRecord | undefined {
  try {
    const record: ServingRecord = JSON.parse(readFileSync(join(dataDir, servingRecordName), 'utf8'));
    const { pid, addresses, masterKeys } = record;
    const isValid = Number.isInteger(pid) && Array.isArray(addresses) && Array.isArray(masterKeys);
    return isValid ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the record if there is one. */
export function removeServingRecord(dataDir: string): void {
  rmSync(join(dataDir, servingRecordName), { force: true });
}

/** Writes the record of this process. Logs a warning if that fails, as on a full disk. */
export function writeServingRecord(dataDir: string, record: Omit<ServingRecord, 'pid'>, log: Logger): void {
  try {
    const text = `${JSON.stringify({ pid: process.pid, ...record })}\n`;
    replaceFileSync(join(dataDir, servingRecordName), text, 0o600);
  } catch (error) {
    log.warn(
      { err: error },
      `${servingRecordName} cannot be written: artseal check does not see this server`,
    );
  }
}
