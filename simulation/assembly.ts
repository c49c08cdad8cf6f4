import { type Calls, createCalls } from '../src/api/pipeline.ts';
import { createService, type Service, type ServiceParts } from '../src/app/service.ts';
import type { CheckpointFile } from '../src/evidence/log/publication.ts';
import { type Core, openCore } from '../src/store/sqlite/core.ts';
import type { StoreOptions } from '../src/store/store.ts';
import { createSimulatedFile } from './checkpoint-file.ts';

/** How a life is put together; a mutant differs in something. */
export interface Assembly {
  /** The core of the engine, on which the store is built. */
  openCore(options: StoreOptions): Core;
  /** What keeps the newest checkpoint of the evidence log in a folder. */
  createCheckpointFile(folder: string): CheckpointFile;
  /** The service with the pipeline of calls to its operations. */
  assemble(parts: ServiceParts): Assembled;
}

/** A service, and the calls to it. */
export interface Assembled {
  readonly service: Service;
  readonly calls: Calls;
}

/** What a serving process is put together of. */
export const real: Assembly = {
  openCore,
  createCheckpointFile: createSimulatedFile,
  assemble: (parts) => {
    const service = createService(parts);
    return { service, calls: createCalls({ ...parts, dispatcher: service.dispatcher }) };
  },
};
