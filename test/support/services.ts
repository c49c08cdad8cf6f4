import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { DescService } from '@bufbuild/protobuf';

const generated = join(import.meta.dirname, '..', '..', 'gen', 'artseal', 'v1');
const modules: Record<string, object>[] = await Promise.all(
  globSync('*_pb.ts', { cwd: generated }).map((file) => import(join(generated, file))),
);

/** Every service of the protos. */
export const services: readonly DescService[] = modules
  .flatMap((module) => Object.values(module))
  .filter((value): value is DescService => 'kind' in value && value.kind === 'service');

/** Their full names, sorted. */
export const serviceNames = services.map(({ typeName }) => typeName).toSorted();
