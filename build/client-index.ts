import { readFileSync, writeSync } from 'node:fs';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  CodeGeneratorRequestSchema,
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
} from '@bufbuild/protobuf/wkt';

/** A plugin of buf. Makes gen/artseal/v1/index.ts, which exports what clients need: all services with their messages. */

const folder = 'artseal/v1/';
const { fileToGenerate } = fromBinary(CodeGeneratorRequestSchema, readFileSync(0));
const names = fileToGenerate
  .filter((file) => file.startsWith(folder) && file !== `${folder}options.proto`)
  .map((file) => file.slice(folder.length, -'.proto'.length))
  .toSorted();
const content = names.map((name) => `export * from './${name}_pb.ts';\n`).join('');
const file = names.length === 0 ? [] : [{ name: `${folder}index.ts`, content }];
const supportedFeatures = BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL);
const response = create(CodeGeneratorResponseSchema, { supportedFeatures, file });
writeSync(1, toBinary(CodeGeneratorResponseSchema, response));
