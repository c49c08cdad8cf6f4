import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Calls, createCalls } from '../src/api/pipeline.ts';
import { createService, type Service, type ServiceParts } from '../src/app/service.ts';
import { type CheckpointFile, checkpointFileName } from '../src/evidence/log/publication.ts';
import { type Core, openCore } from '../src/store/sqlite/core.ts';
import type { StoreOptions } from '../src/store/store.ts';

/** How an instance of the service is assembled. Mutants replace parts of it. */
export interface Assembly {
  /** Opens the core of the SQLite engine, on which the store is built. */
  openCore(options: StoreOptions): Core;
  /** Opens the file of the newest checkpoint in a folder. */
  createCheckpointFile(folder: string): CheckpointFile;
  /** Creates the service and its call pipeline. */
  assemble(parts: ServiceParts): Assembled;
}

/** A service and its call pipeline. */
export interface Assembled {
  readonly service: Service;
  readonly calls: Calls;
}

/** The parts of `artseal serve`, with a synchronous checkpoint file. */
export const real: Assembly = {
  openCore,
  createCheckpointFile: createSimulatedFile,
  assemble: (parts) => {
    const service = createService(parts);
    return { service, calls: createCalls({ ...parts, dispatcher: service.dispatcher }) };
  },
};

/** Stores the newest checkpoint in a folder, with synchronous calls, whose order a seed determines. */
function createSimulatedFile(folder: string): CheckpointFile {
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
