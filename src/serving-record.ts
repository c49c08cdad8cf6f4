import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { KeyRing, MasterKeyId } from './keys/key-ring.ts';

/**
 * What the process that takes calls tells the commands beside it. It is kept in the data folder for as long as that process
 * serves; what is read of it holds only while the process is known to serve, since kill -9 leaves it behind.
 */
export interface ServingRecord {
  readonly pid: number;
  /** host:port as bound. */
  readonly addresses: readonly string[];
  /** Those that it seals and opens with, the one that seals first. */
  readonly masterKeys: readonly MasterKeyId[];
}

/** Its file in the data folder. */
export const servingRecordName = 'serving.json';

/** Writes the record whole or not at all, mode 0600. */
function writeServingRecord(dataDir: string, record: ServingRecord): void {
  const file = join(dataDir, servingRecordName);
  writeFileSync(`${file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The record that is there; undefined if none is, or none that can be read. */
export function readServingRecord(dataDir: string): ServingRecord | undefined {
  try {
    const record: ServingRecord = JSON.parse(readFileSync(join(dataDir, servingRecordName), 'utf8'));
    const { pid, addresses, masterKeys } = record;
    const isWhole = Number.isInteger(pid) && Array.isArray(addresses) && Array.isArray(masterKeys);
    return isWhole ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the record, if there is one. */
export function removeServingRecord(dataDir: string): void {
  rmSync(join(dataDir, servingRecordName), { force: true });
}

/** Tells the commands beside this process which master keys it knows. */
export interface ServingTeller {
  /** Tells nothing until `tell`, so that nothing is sealed meanwhile. Throws if what was told cannot be taken back. */
  retract(): void;
  /** Tells what is so by now. Where that cannot be written, the commands seal nothing while this process serves. */
  tell(): void;
}

/** Tells of this process, which listens on these addresses. */
export function createServingTeller(
  dataDir: string,
  keyRing: Pick<KeyRing, 'masterKeys'>,
  addresses: readonly string[],
  log: Logger,
): ServingTeller {
  return {
    retract: () => removeServingRecord(dataDir),
    tell: () => {
      try {
        writeServingRecord(dataDir, { pid: process.pid, addresses, masterKeys: keyRing.masterKeys });
      } catch (error) {
        log.warn({ err: error }, 'other commands cannot be told which master keys this process knows');
      }
    },
  };
}
