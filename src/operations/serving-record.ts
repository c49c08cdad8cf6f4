import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import type { KeyRing, MasterKeyId } from '../keys/key-ring.ts';
import { replaceFileSync } from '../lib/replace-file.ts';

/**
 * What the serving process publishes to commands, in a file of the data folder. The file may outlive its process, as after
 * kill -9, so trust it only while the serving lock is held.
 */
export interface ServingRecord {
  readonly pid: number;
  /** host:port as bound. */
  readonly addresses: readonly string[];
  /** The master keys that the process has; it seals with the first. */
  readonly masterKeys: readonly MasterKeyId[];
}

/** Its file in the data folder. */
export const servingRecordName = 'serving.json';

/** Whether the file exists, readable or not. */
export function isServingRecordThere(dataDir: string): boolean {
  return existsSync(join(dataDir, servingRecordName));
}

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

/** How soon a failed write, as on a full disk, is tried again, in milliseconds. */
const retryMs = 10_000;

/** Publishes the serving record of this process. */
export interface ServingRecordPublisher {
  /** Removes the record, so that commands seal nothing until `publish`. Throws if the file cannot be removed. */
  retract(): void;
  /** Writes the current record, with retries. Until it is written, commands seal nothing. */
  publish(): void;
}

export interface ServingRecordDependencies {
  readonly dataDir: string;
  readonly keyRing: Pick<KeyRing, 'masterKeys'>;
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

export function createServingRecordPublisher(
  dependencies: ServingRecordDependencies,
): ServingRecordPublisher {
  const { dataDir, keyRing, addresses, clock, log } = dependencies;
  let cancel = () => {};
  let isFailing = false;

  function publish(): void {
    const record: ServingRecord = { pid: process.pid, addresses, masterKeys: keyRing.masterKeys };
    try {
      replaceFileSync(join(dataDir, servingRecordName), `${JSON.stringify(record)}\n`, 0o600);
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        log.warn({ err: error }, `${servingRecordName} cannot be written: commands cannot seal secrets`);
      isFailing = true;
      cancel = clock.after(retryMs, publish);
    }
  }

  return {
    retract: () => {
      cancel();
      removeServingRecord(dataDir);
    },
    publish,
  };
}
