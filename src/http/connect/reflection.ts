import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type HandlerContext } from '@connectrpc/connect';
import type { ServerReflectionRequest } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import type { ServerReflectionRequest as ServerReflectionRequestAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { untilAborted } from './aborted.ts';

/** The dependencies of reflection. */
export interface ReflectionDependencies {
  /** The listed services. Their files and all imports can be read. */
  readonly services: readonly DescService[];
  /** Further files, which no service imports: those of error details. */
  readonly files: readonly DescFile[];
  /** Aborted when the server begins to stop; streams then end. */
  readonly draining: AbortSignal;
}

/** A request of grpc.reflection.v1 or v1alpha, which differ only in their names. */
type Request = ServerReflectionRequest | ServerReflectionRequestAlpha;

/** The method of grpc.reflection.v1 and v1alpha: answers the requests of a stream in order. */
export type ReflectionInfo = <R extends Request>(
  requests: AsyncIterable<R>,
  context: HandlerContext,
) => AsyncGenerator<ReturnType<typeof answerTo<R>>>;

/** Creates the reflection of these services. */
export function createReflection({ services, files, draining }: ReflectionDependencies): ReflectionInfo {
  const schema = createSchema(services, files);
  return async function* (requests, context) {
    for await (const request of untilAborted(requests, draining, context.signal)) {
      yield answerTo(request, schema);
    }
  };
}

/** The schema by names. */
interface Schema {
  readonly services: readonly DescService[];
  readonly filesByName: ReadonlyMap<string, DescFile>;
  /** By the full names of types, services, methods, fields, enum values and extensions. */
  readonly filesBySymbol: ReadonlyMap<string, DescFile>;
  /** Extensions by the full name of the message that they extend, and their number. */
  readonly extensions: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
}

function createSchema(services: readonly DescService[], more: readonly DescFile[]): Schema {
  const roots = [...services.map(({ file }) => file), ...more];
  const files = [...new Set(roots.flatMap(withImports))];
  const extensions = new Map<string, Map<number, DescFile>>();
  for (const file of files) {
    for (const type of nestedTypes(file)) {
      if (type.kind !== 'extension') continue;
      const { typeName } = type.extendee;
      extensions.set(typeName, (extensions.get(typeName) ?? new Map()).set(type.number, file));
    }
  }
  return {
    services,
    filesByName: new Map(files.map((file) => [file.proto.name, file])),
    filesBySymbol: new Map(files.flatMap((file) => symbolsOf(file).map((symbol) => [symbol, file]))),
    extensions,
  };
}

/** A file and its direct and indirect imports; the imports come first. */
function withImports(file: DescFile): DescFile[] {
  return [...new Set([...file.dependencies.flatMap(withImports), file])];
}

function symbolsOf(file: DescFile): string[] {
  return [...nestedTypes(file)].flatMap((type) => {
    const name = type.typeName;
    if (type.kind === 'message') return [name, ...type.fields.map((field) => `${name}.${field.name}`)];
    if (type.kind === 'service') return [name, ...type.methods.map((method) => `${name}.${method.name}`)];
    // Values of an enum are named as its siblings (Protocol Buffers, "Enumerations").
    const scope = name.slice(0, name.lastIndexOf('.') + 1);
    return type.kind === 'enum' ? [name, ...type.values.map((value) => `${scope}${value.name}`)] : [name];
  });
}

function answerTo<R extends Request>(request: R, schema: Schema) {
  return { validHost: request.host, originalRequest: request, messageResponse: found(request, schema) };
}

function found({ messageRequest: { case: kind, value } }: Request, schema: Schema) {
  switch (kind) {
    case 'listServices':
      return {
        case: 'listServicesResponse' as const,
        value: { service: schema.services.map(({ typeName }) => ({ name: typeName })) },
      };
    case 'fileByFilename':
      return filesOrError(schema.filesByName.get(value));
    case 'fileContainingSymbol':
      return filesOrError(schema.filesBySymbol.get(value));
    case 'fileContainingExtension':
      return filesOrError(schema.extensions.get(value.containingType)?.get(value.extensionNumber));
    case 'allExtensionNumbersOfType': {
      const extensionNumber = [...(schema.extensions.get(value)?.keys() ?? [])];
      if (extensionNumber.length === 0 && !schema.filesBySymbol.has(value)) return notFound;
      return {
        case: 'allExtensionNumbersResponse' as const,
        value: { baseTypeName: value, extensionNumber },
      };
    }
    case undefined:
      return failed(Code.InvalidArgument, 'The request must name what to find.');
  }
}

function filesOrError(file: DescFile | undefined) {
  if (file === undefined) return notFound;
  const fileDescriptorProto = withImports(file).map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
}

function failed(errorCode: Code, errorMessage: string) {
  return { case: 'errorResponse' as const, value: { errorCode, errorMessage } };
}

const notFound = failed(Code.NotFound, 'The schema has no such name.');
