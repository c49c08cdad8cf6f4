import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckpointFile, checkpointFileName } from '../src/evidence/log/publication.ts';

/** Stores the newest checkpoint in a folder, with synchronous calls, whose order a seed determines. */
export function createSimulatedFile(folder: string): CheckpointFile {
  const path = join(folder, checkpointFileName);
  return {
    path,
    read: async () =>
      existsSync(path)
        ? { note: readFileSync(path, 'utf8'), writtenAtMs: statSync(path).mtimeMs }
        : undefined,
    write: async (note) => {
      writeFileSync(`${path}.new`, note);
      renameSync(`${path}.new`, path);
    },
  };
}
