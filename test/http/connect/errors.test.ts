import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Int32ValueSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { EscrowService } from '../../../gen/artseal/v1/escrow_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { ApiError, type Reason, reasons, unavailable } from '../../../src/domain/reason.ts';
import { ValidationError } from '../../../src/domain/violation.ts';
import { toConnectError } from '../../../src/http/connect/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { implementOnly } from '../../support/implement-only.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { codeName, errorOf, typedClients, typedError } from '../../support/typed-clients.ts';
import { openOperations } from './bare-listener.ts';
import { overConnect, overGrpc, overGrpcWeb, type RawSending, reasonOf } from './raw-call.ts';
import { transports } from './transports.ts';

/** The operation of a test, and the commit of its call. */
interface Work {
  readonly run: () => Promise<Record<string, unknown>>;
  readonly stored?: () => Promise<void>;
}

/** The listener and the pipeline with one operation; the store only waits for `stored`. */
async function openListener(t: TestContext, { run, stored = async () => {} }: Work) {
  const execute: Store['execute'] = async () => {
    await stored();
    return { outcome: { kind: 'DONE', result: undefined as never, isReplay: false } };
  };
  const implementation = implementOnly(ProvenanceService, 'read', { getProvenance: { run } });
  const { baseUrl, logLines } = await openOperations(t, implementation, { execute });
  /** The log line of a call. */
  const logged = (requestId: string) =>
    eventually('the log line', 60_000, () => logLines.find((line) => line.includes(requestId)));
  return { baseUrl, logged };
}

const service = await startService(fileScope);
const token = await service.token();

for (const name of ['Connect over HTTP/1.1', 'gRPC over HTTP/2']) {
  const transport = transports[name] ?? assert.fail(name);

  test(`an unknown error is INTERNAL without details, which are in the log: ${name}`, async (t) => {
    const run = () => Promise.reject(new TypeError('SELECT secret FROM vault'));
    const { baseUrl, logged } = await openListener(t, { run });
    const { provenance } = typedClients(transport(baseUrl, 'it_any'));
    const { message, requestId } = await typedError(provenance.getProvenance({}), 'INTERNAL');
    assert.doesNotMatch(message, /SELECT|vault|TypeError|\.ts/);
    const { err } = JSON.parse(await logged(requestId));
    assert.match(err?.message ?? '', /SELECT secret FROM vault/);
  });

  test(`a response whose effect cannot be stored becomes UNAVAILABLE: ${name}`, async (t) => {
    const { baseUrl } = await openListener(t, {
      run: async () => ({ filingNo: 'AS-2026-000001' }),
      stored: () => Promise.reject(unavailable('The disk is full.')),
    });
    const { provenance } = typedClients(transport(baseUrl, 'it_any'));
    const { retryAfter } = await typedError(provenance.getProvenance({}), 'UNAVAILABLE');
    assert.match(retryAfter ?? '', /^[1-9]\d*$/);
  });
}

test('no response is sent before the call is stored, not even an error', async (t) => {
  const steps: string[] = [];
  const barrier = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const { baseUrl } = await openListener(t, {
    run: () => Promise.reject(new Error('failed')),
    stored: () => {
      reached.resolve();
      return barrier.promise;
    },
  });
  const { provenance } = typedClients(createTypedTransport(baseUrl, 'it_any'));
  const answered = errorOf(provenance.getProvenance({})).then(() => steps.push('answered'));
  await reached.promise;
  steps.push('stored');
  barrier.resolve();
  await answered;
  assert.deepEqual(steps, ['stored', 'answered']);
});

for (const [name, transport] of Object.entries(transports)) {
  test(`bytes that are not a message of the method are rejected: ${name}`, async () => {
    const { unary } = transport(service.internalUrl, token);
    const mistaken = { ...FilingService.method.getFiling, input: Int32ValueSchema };
    const call = unary(mistaken, undefined, undefined, {}, { value: 100 });
    await typedError(call, name.includes('JSON') ? 'INVALID_JSON' : 'VALIDATION_FAILED');
  });
}

test('a message over 64 KiB is rejected over every protocol, and the next call is answered', async () => {
  for (const [name, transport] of Object.entries(transports)) {
    const { filings } = typedClients(transport(service.internalUrl, token));
    const large = { ...artwork, price: 1n, condition: 'x'.repeat(70_000) };
    const { message } = await typedError(filings.createFiling(large), 'BODY_TOO_LARGE');
    assert.equal(message, 'The message must have at most 65536 bytes.', name);
    assert.deepEqual((await filings.listFilings({})).filings, []);
  }
});

test('a message that grows over 64 KiB when it is decompressed is rejected', async () => {
  const packed = gzipSync(JSON.stringify({ filingNo: 'x'.repeat(10_000_000) }));
  assert.ok(packed.length < 65_536);
  const call = { baseUrl: service.internalUrl, token, method: 'FilingService/GetFiling', body: packed };
  const headers = { 'Content-Encoding': 'gzip' };
  assert.equal(reasonOf(await overConnect('application/json')({ ...call, headers })), 'BODY_TOO_LARGE');
});

const withDeadline: readonly (readonly [name: string, send: RawSending, header: Record<string, string>])[] = [
  ['Connect', overConnect('application/json'), { 'Connect-Timeout-Ms': '20' }],
  ['gRPC', overGrpc('application/grpc+json'), { 'grpc-timeout': '20m' }],
  ['gRPC-Web', overGrpcWeb('application/grpc-web+json'), { 'grpc-timeout': '20m' }],
];

for (const [name, send, headers] of withDeadline) {
  test(`the server itself ends a call at its deadline: ${name}`, async (t) => {
    const hanging = Promise.withResolvers<Record<string, unknown>>();
    const { baseUrl } = await openListener(t, { run: () => hanging.promise });
    const method = 'ProvenanceService/GetProvenance';
    const over = Object.fromEntries(
      Object.entries(headers).map(([key, value]) => [key, value.replace('2', '')]),
    );
    for (const sent of [headers, over]) {
      const answer = await send({ baseUrl, token: 'it_any', method, body: '{}', headers: sent });
      assert.equal(answer.error?.code, Code.DeadlineExceeded);
      assert.equal(reasonOf(answer), 'TIMEOUT');
    }
    hanging.resolve({});
  });
}

for (const [reason, { code }] of Object.entries(reasons)) {
  test(`${reason} has the code ${code}`, () => {
    const error = toConnectError(new ApiError(reason as Reason, 'A sentence.'), 'the request id');
    assert.equal(codeName(error.code), code);
    assert.equal(error.rawMessage, 'A sentence.');
    const details = error.findDetails(ErrorInfoSchema);
    assert.equal(details.length, 1);
    assert.equal(details[0]?.reason, reason);
    assert.equal(details[0]?.domain, 'artseal');
    assert.deepEqual(details[0]?.metadata, { requestId: 'the request id' });
    assert.equal(error.metadata.has('Retry-After'), false);
    assert.deepEqual(error.findDetails(RetryInfoSchema), []);
  });
}

test('BadRequest names invalid fields as the proto does', () => {
  const violations = [
    { field: 'buyerId', rule: 'is required' },
    { field: 'nowhere', rule: 'is not part of this request' },
  ];
  const error = toConnectError(
    new ValidationError('VALIDATION_FAILED', violations),
    'r',
    undefined,
    EscrowService.method.createEscrow.input,
  );
  const [invalid, ...more] = error.findDetails(BadRequestSchema);
  assert.deepEqual(
    [...(invalid?.fieldViolations ?? [])].map(({ field, description }) => [field, description]),
    [
      ['buyer_id', 'is required'],
      ['nowhere', 'is not part of this request'],
    ],
  );
  assert.deepEqual(more, []);
});

test('RetryInfo and Retry-After have the time to wait', () => {
  const error = toConnectError(new ApiError('RATE_LIMITED', 'Later.', { retryAfterS: 7 }), 'r');
  assert.equal(error.metadata.get('Retry-After'), '7');
  const [retry, ...more] = error.findDetails(RetryInfoSchema);
  assert.deepEqual([retry?.retryDelay?.seconds, retry?.retryDelay?.nanos, more], [7n, 0, []]);
});
