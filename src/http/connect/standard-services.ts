import { once } from 'node:events';
import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import type { ServerReflectionRequest } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import type { ServerReflectionRequest as ServerReflectionRequestAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/health/v1/health_pb.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { createConcurrencyLimit } from '../../lib/concurrency.ts';
import { callKeys } from './errors.ts';

/** Watch streams at the same time on one connection; a client needs one for each service that it calls. */
const watchesPerConnectionMax = 6;

/**
 * grpc.health.v1: SERVING while the process is ready, for the process and for each service. A Watch sends each change. When the
 * server begins to stop and aborts `draining`, it sends NOT_SERVING and ends. `services` are the full names of the known services.
 */
export function createHealth(
  services: readonly string[],
  readiness: Pick<Readiness, 'check' | 'onChange'>,
  draining: AbortSignal,
): ServiceImpl<typeof Health> {
  const names = ['', ...services];
  const watches = createConcurrencyLimit<object | undefined>({
    ofEach: watchesPerConnectionMax,
    tooMany: `At most ${watchesPerConnectionMax} Watch streams on one connection.`,
  });

  async function status(): Promise<Status> {
    const isReady = !draining.aborted && (await readiness.check()).length === 0;
    return isReady ? Status.SERVING : Status.NOT_SERVING;
  }

  async function* watchKnown(signal: AbortSignal) {
    let sent: Status | undefined;
    while (!signal.aborted) {
      // Before the check, so that no change is missed.
      const change = new AbortController();
      const ignore = readiness.onChange(() => change.abort());
      try {
        const now = await status();
        if (now !== sent) yield { status: now };
        sent = now;
        if (draining.aborted && now === Status.NOT_SERVING) return;
        await aborted(change.signal, draining, signal);
      } finally {
        ignore();
      }
    }
  }

  async function* watchUnknown(signal: AbortSignal) {
    yield { status: Status.SERVICE_UNKNOWN };
    await aborted(draining, signal);
  }

  const watch = ({ service }: { service: string }, { signal }: HandlerContext) =>
    names.includes(service) ? watchKnown(signal) : watchUnknown(signal);

  return {
    check: async ({ service }) => {
      if (names.includes(service)) return { status: await status() };
      throw new ApiError('NOT_FOUND', 'There is no such service; List returns all names.');
    },
    list: async () => {
      const now = await status();
      return { statuses: Object.fromEntries(names.map((name) => [name, { status: now }])) };
    },
    watch: async function* (request, context) {
      const call = context.values.get(callKeys.request);
      const leave = watches.enter(call && 'stream' in call ? call.stream.session : call?.socket);
      try {
        yield* watch(request, context);
      } finally {
        leave();
      }
    },
  };
}

/** A request of grpc.reflection.v1 or v1alpha, which differ only in their names. */
type Request = ServerReflectionRequest | ServerReflectionRequestAlpha;

/** The method of grpc.reflection.v1 and v1alpha: answers the requests of a stream in order. */
type ReflectionInfo = <R extends Request>(
  requests: AsyncIterable<R>,
  context: HandlerContext,
) => AsyncGenerator<ReturnType<typeof answerTo<R>>>;

/**
 * Creates the reflection of these services: their files and all imports can be read, and `files`, which no service imports. Streams
 * end when the server begins to stop and aborts `draining`.
 */
export function createReflection(
  services: readonly DescService[],
  files: readonly DescFile[],
  draining: AbortSignal,
): ReflectionInfo {
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

/** Resolves when one of the signals is aborted. One of them must be aborted eventually. */
async function aborted(...signals: readonly AbortSignal[]): Promise<void> {
  const any = AbortSignal.any([...signals]);
  if (!any.aborted) await once(any, 'abort');
}

/**
 * Yields the items of a source until it ends or one of the signals is aborted, even while the next item is awaited. One of the
 * signals must be aborted eventually.
 */
async function* untilAborted<T>(
  source: AsyncIterable<T>,
  ...signals: readonly AbortSignal[]
): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  const any = AbortSignal.any([...signals]);
  let stopWaiting = () => {};
  any.addEventListener('abort', () => stopWaiting(), { once: true });
  while (!any.aborted) {
    // Not a race with one promise of the end: each race would add a reaction to it until the stream ends.
    const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<T> | undefined>();
    stopWaiting = () => resolve(undefined);
    iterator.next().then(resolve, reject);
    const next = await promise;
    if (next === undefined || next.done) return;
    yield next.value;
  }
}
