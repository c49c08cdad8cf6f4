import type { DescService } from '@bufbuild/protobuf';
import * as schema from '../../gen/artseal/v1/index.ts';

/** Every service of the protos. */
export const services: readonly DescService[] = Object.values<object>(schema).filter(
  (value): value is DescService => 'kind' in value && value.kind === 'service',
);

/** Their full names, sorted. */
export const serviceNames = services.map(({ typeName }) => typeName).toSorted();
