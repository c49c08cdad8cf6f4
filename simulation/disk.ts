import { accessSync, constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkpointFileName } from '../src/evidence/log/publication.ts';

/** The folders of one world. */
export type Disk = ReturnType<typeof createDisk>;

const ramDisk = '/dev/shm';
/** The files that survive a crash: the database and its log, but not its shared memory. */
const survivingFiles = ['artseal.db', 'artseal.db-wal', checkpointFileName];

/** Creates the folders of a world, in memory if `/dev/shm` is writable. */
export function createDisk() {
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
    /** The folder of the provider's database. */
    provider: make('provider'),
    /** Creates a folder for an instance of the service. */
    newFolder,
    /** Copies what would survive a crash of the instance now to a new folder. Returns that folder. */
    crashCopy: (folder: string) => {
      const copy = newFolder();
      for (const file of survivingFiles) {
        if (existsSync(join(folder, file))) copyFileSync(join(folder, file), join(copy, file));
      }
      return copy;
    },
    /** Deletes a folder. */
    drop: (folder: string) => rmSync(folder, { recursive: true, force: true }),
    /** Deletes all folders. */
    wipe: () => rmSync(root, { recursive: true, force: true }),
  };
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
