import { accessSync, constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkpointFileName } from '../src/evidence/log/publication.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { deployment } from '../src/store/sqlite/schema.ts';
import type { StoreOptions } from '../src/store/store.ts';
import type { Dice } from './dice.ts';

/** The folders of one world. */
export interface Disk {
  /** The folder that the provider keeps its books in. */
  readonly provider: string;
  /** A new folder for a service. */
  newFolder(): string;
  /** What a crash at this moment leaves of a service's folder, as on disk, in a new folder. */
  crashCopy(folder: string): string;
  drop(folder: string): void;
  /** Removes all. */
  wipe(): void;
}

const ramDisk = '/dev/shm';
/** What survives a process: of a database its files, not its shared memory and its locks. */
const survivingFiles = ['artseal.db', 'artseal.db-wal', checkpointFileName];

/** Makes the folders of a world, in memory where the machine has a RAM disk. */
export function createDisk(): Disk {
  const root = mkdtempSync(join(isWritable(ramDisk) ? ramDisk : tmpdir(), 'artseal-simulation-'));
  let folders = 0;
  const make = (name: string) => {
    const folder = join(root, name);
    mkdirSync(folder);
    return folder;
  };
  const newFolder = () => {
    folders += 1;
    return make(`service-${folders}`);
  };
  return {
    provider: make('provider'),
    newFolder,
    crashCopy: (folder) => {
      const copy = newFolder();
      for (const file of survivingFiles) {
        if (existsSync(join(folder, file))) copyFileSync(join(folder, file), join(copy, file));
      }
      return copy;
    },
    drop: (folder) => rmSync(folder, { recursive: true, force: true }),
    wipe: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Makes the database of a folder, with escrow ids that the dice determine. */
export function prepareDatabase(options: StoreOptions, dice: Dice): void {
  const database = openDatabase(options);
  const secret = Buffer.from(Array.from({ length: 32 }, () => dice.below(256)));
  database.update(deployment).set({ secret }).run();
  database.$client.close();
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
