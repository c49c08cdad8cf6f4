import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import type { KeyRing, MasterKeyId } from '../keys/key-ring.ts';

/**
 * What the process that takes calls tells the commands beside it. It is kept in the data folder for as long as that process
 * serves; what is read of it holds only while the process is known to serve, since kill -9 leaves it behind, and so does a process
 * that found its database damaged.
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

/** Whether there is one, be it readable or not: the process that serves or served has not removed it. */
export function isServingRecordThere(dataDir: string): boolean {
  return existsSync(join(dataDir, servingRecordName));
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

/** How soon it is tried again to write a record that could not be written, as on a full disk, in milliseconds. */
const retryMs = 10_000;

/** Tells the commands beside this process which master keys it knows. */
export interface ServingTeller {
  /** Tells nothing until `tell`, so that nothing is sealed meanwhile. Throws if what was told cannot be taken back. */
  retract(): void;
  /** Tells what is so by now, as soon as it can be written; until then the commands seal nothing while this process serves. */
  tell(): void;
}

/** What is told of this process, which listens on these addresses. */
export interface ServingTellerDependencies {
  readonly dataDir: string;
  readonly keyRing: Pick<KeyRing, 'masterKeys'>;
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

export function createServingTeller(dependencies: ServingTellerDependencies): ServingTeller {
  const { dataDir, keyRing, addresses, clock, log } = dependencies;
  let cancel = () => {};
  let isFailing = false;

  function tell(): void {
    try {
      writeServingRecord(dataDir, { pid: process.pid, addresses, masterKeys: keyRing.masterKeys });
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        log.warn({ err: error }, 'other commands cannot be told yet which master keys this process knows');
      isFailing = true;
      cancel = clock.after(retryMs, tell);
    }
  }

  return {
    retract: () => {
      cancel();
      removeServingRecord(dataDir);
    },
    tell,
  };
}
