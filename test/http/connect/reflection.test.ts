import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { serviceNames } from '../../support/services.ts';
import { bearer, sending, typedError } from '../../support/typed-clients.ts';
import { closesByItself } from './closing-support.ts';

const shared = await startService(fileScope);
const token = await shared.token();

type Question = Exclude<ServerReflectionRequest['messageRequest'], { case: undefined }>;
type Answer = ServerReflectionResponse['messageResponse'];

/** Sends requests over one stream; returns the responses. */
async function ask(questions: readonly Question[], version = 'v1'): Promise<Answer[]> {
  const transport = createGrpcTransport({
    baseUrl: shared.internalUrl,
    interceptors: [sending(bearer(token))],
  });
  const requests = questions.map((messageRequest) => ({ host: 'here', messageRequest }));
  async function* stream() {
    yield* requests;
  }
  const answers: Answer[] = [];
  const service = versions[version] as typeof ServerReflection;
  for await (const { validHost, originalRequest, messageResponse } of createClient(
    service,
    transport,
  ).serverReflectionInfo(stream())) {
    assert.equal(validHost, 'here');
    const request = requests[answers.length];
    assert.equal(originalRequest?.messageRequest.case, request?.messageRequest.case);
    answers.push(messageResponse);
  }
  assert.equal(answers.length, questions.length);
  return answers;
}

const versions: Record<string, typeof ServerReflection | typeof ServerReflectionAlpha> = {
  v1: ServerReflection,
  v1alpha: ServerReflectionAlpha,
};

/** The names of the files in a response, which must be complete. */
function filesOf(answer: Answer | undefined): string[] {
  assert.equal(answer?.case, 'fileDescriptorResponse', JSON.stringify(answer));
  const file = answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  // Throws for an import that is missing.
  createFileRegistry(create(FileDescriptorSetSchema, { file }));
  return file.map(({ name }) => name);
}

const filing = 'artseal/v1/filing.proto';

test('reflection has the types of error details, so that tools can show them', async () => {
  const types = ['google.rpc.ErrorInfo', 'google.rpc.BadRequest', 'google.rpc.RetryInfo'];
  const answers = await ask(types.map((value) => ({ case: 'fileContainingSymbol', value })));
  for (const answer of answers) assert.equal(filesOf(answer).at(-1), 'google/rpc/error_details.proto');
});

test('a file is found by its name and by its symbols, and comes with its imports', async () => {
  const symbols = [
    'artseal.v1.FilingService',
    'artseal.v1.FilingService.GetFiling',
    'artseal.v1.Filing',
    'artseal.v1.Filing.price',
    'artseal.v1.Filing.Status',
    'artseal.v1.Filing.SUBMITTED',
  ];
  const answers = await ask([
    { case: 'fileByFilename', value: filing },
    ...symbols.map((value) => ({ case: 'fileContainingSymbol' as const, value })),
  ]);
  for (const answer of answers) {
    const names = filesOf(answer);
    assert.equal(names.at(-1), filing);
    assert.ok(names.includes('google/api/http.proto'), names.join());
  }
});

test('extensions are found by message and number', async () => {
  const [byNumber, numbers, none, nobody] = await ask([
    {
      case: 'fileContainingExtension',
      value: {
        $typeName: 'grpc.reflection.v1.ExtensionRequest',
        containingType: 'google.protobuf.MethodOptions',
        extensionNumber: 72_295_728,
      },
    },
    { case: 'allExtensionNumbersOfType', value: 'google.protobuf.MethodOptions' },
    { case: 'allExtensionNumbersOfType', value: 'artseal.v1.Filing' },
    { case: 'allExtensionNumbersOfType', value: 'artseal.v1.NoSuch' },
  ]);
  assert.equal(filesOf(byNumber).at(-1), 'google/api/annotations.proto');
  assert.equal(numbers?.case, 'allExtensionNumbersResponse');
  assert.deepEqual(numbers.value.extensionNumber, [50_003, 50_004, 72_295_728]);
  assert.equal(none?.case, 'allExtensionNumbersResponse');
  assert.deepEqual(none.value.extensionNumber, []);
  assert.equal(nobody?.case, 'errorResponse');
});

test('an unknown name gets an error, and the stream continues', async () => {
  const [file, symbol, another] = await ask([
    { case: 'fileByFilename', value: 'no/such.proto' },
    { case: 'fileContainingSymbol', value: 'artseal.v1.NoSuch' },
    { case: 'fileByFilename', value: filing },
  ]);
  for (const answer of [file, symbol]) {
    assert.equal(answer?.case, 'errorResponse');
    assert.equal(answer.value.errorCode, 5);
    assert.notEqual(answer.value.errorMessage, '');
  }
  assert.equal(filesOf(another).at(-1), filing);
});

test('reflection needs a token', async () => {
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: shared.internalUrl }));
  async function* nothing() {}
  const answers = client.serverReflectionInfo(nothing())[Symbol.asyncIterator]();
  await typedError(answers.next(), 'AUTH_HEADER_MISSING');
});

for (const version of Object.keys(versions)) {
  test(`${version} lists all services, and itself`, async () => {
    const [answer] = await ask([{ case: 'listServices', value: '*' }], version);
    assert.equal(answer?.case, 'listServicesResponse');
    assert.deepEqual(answer.value.service.map(({ name }) => name).toSorted(), [
      ...serviceNames,
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ]);
  });

  test(`a stream of ${version} ends with TIMEOUT at its deadline`, async (t) => {
    const interceptors = [sending({ ...bearer(token), 'grpc-timeout': '300m' })];
    const transport = createGrpcTransport({ baseUrl: shared.internalUrl, interceptors });
    const broken = Promise.withResolvers<void>();
    t.after(() => broken.resolve());
    async function* open() {
      yield { messageRequest: { case: 'listServices' as const, value: '' } };
      await broken.promise;
    }
    const service = versions[version] as typeof ServerReflection;
    const answers = createClient(service, transport).serverReflectionInfo(open());
    await typedError(Array.fromAsync(answers), 'TIMEOUT');
  });
}

test('an open stream does not delay closing', async (t) => {
  const service = await startService(t);
  const interceptors = [sending(bearer(await service.token()))];
  const transport = createGrpcTransport({ baseUrl: service.internalUrl, interceptors });
  const over = Promise.withResolvers<void>();
  async function* open() {
    yield { messageRequest: { case: 'listServices' as const, value: '' } };
    await over.promise;
  }
  const answers = createClient(ServerReflection, transport).serverReflectionInfo(open());
  const iterator = answers[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).done, false);
  assert.ok(await closesByItself(t, service));
  over.resolve();
  await iterator.next().catch(() => {});
});
