import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as requestHttp1 } from 'node:http';
import { connect } from 'node:http2';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { errorFromJsonBytes } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../../gen/health/v1/health_pb.ts';
import { openWithoutOperations } from './bare-listener.ts';
import { enveloped } from './raw-call.ts';

const services = [ProvenanceService];

interface Part {
  readonly headers: Record<string, string>;
  readonly sent: Uint8Array | string;
}

/** Sends the head of a call and a part of its message; returns the error of the response. */
type PartialSending = (t: TestContext, baseUrl: string, part: Part) => Promise<ConnectError | undefined>;

const path = '/artseal.v1.ProvenanceService/GetProvenance';
const connectJson = { 'content-type': 'application/json' };
const grpc = { 'content-type': 'application/grpc+json', te: 'trailers' };
const half = enveloped('{}').subarray(0, 6);

const overHttp1: PartialSending = async (t, baseUrl, { headers, sent }) => {
  const call = requestHttp1(`${baseUrl}${path}`, { method: 'POST', headers, agent: false });
  t.after(() => call.destroy());
  call.on('error', () => {}).write(sent);
  const [answer] = await once(call, 'response');
  return errorIn(answer);
};

const overHttp2: PartialSending = async (t, baseUrl, { headers, sent }) => {
  const session = connect(baseUrl);
  t.after(() => session.destroy());
  const call = session.request({ ':method': 'POST', ':path': path, ...headers });
  call.on('error', () => {}).write(sent);
  const trailers = once(call, 'trailers');
  const response = once(call, 'response');
  if (headers['content-type'] === connectJson['content-type']) {
    trailers.catch(() => {});
    await response;
    return errorIn(call);
  }
  call.resume();
  const [received] = await trailers;
  return findTrailerError(new Headers(Object.entries(received as Record<string, string>)));
};

async function errorIn(answer: Readable): Promise<ConnectError> {
  const fallback = new ConnectError('no error', Code.Unknown);
  return errorFromJsonBytes(new Uint8Array(await buffer(answer)), undefined, fallback);
}

const ways: Record<string, [PartialSending, Part, deadline: Record<string, string>]> = {
  'Connect over HTTP/1.1': [overHttp1, { headers: connectJson, sent: '{' }, { 'connect-timeout-ms': '50' }],
  'Connect over HTTP/2': [overHttp2, { headers: connectJson, sent: '{' }, { 'connect-timeout-ms': '50' }],
  'gRPC over HTTP/2': [overHttp2, { headers: grpc, sent: half }, { 'grpc-timeout': '50m' }],
};

function assertTimeout(error: ConnectError | undefined, message: RegExp): void {
  assert.equal(error?.code, Code.DeadlineExceeded, String(error));
  assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, 'TIMEOUT');
  assert.match(error.rawMessage, message);
}

for (const [name, [send, part, deadline]] of Object.entries(ways)) {
  test(`a call whose message has not arrived ends at its deadline: ${name}`, async (t) => {
    const { baseUrl } = await openWithoutOperations(t, { services });
    const over = Object.fromEntries(
      Object.entries(deadline).map(([key, value]) => [key, value.replace('5', '')]),
    );
    for (const limit of [deadline, over]) {
      const error = await send(t, baseUrl, { ...part, headers: { ...part.headers, ...limit } });
      assertTimeout(error, /^The deadline of the call is over/);
    }
  });

  test(`a call whose message does not arrive is ended: ${name}`, async (t) => {
    const { baseUrl } = await openWithoutOperations(t, { services, arrivalMs: 50 });
    assertTimeout(await send(t, baseUrl, part), /^The request was not complete within 0\.05 s/);
  });
}

/** Opens a Watch and reads its first status; undefined if its request took longer than the limit to arrive. */
async function openWatch(baseUrl: string) {
  const watch = createClient(Health, createGrpcTransport({ baseUrl })).watch({})[Symbol.asyncIterator]();
  try {
    assert.equal((await watch.next()).value?.status, Status.SERVING);
    return watch;
  } catch (error) {
    assertTimeout(ConnectError.from(error), /not complete/);
    return undefined;
  }
}

test('streams last longer than a message may take to arrive', async (t) => {
  // On a busy machine the first of these may be too short for any message.
  for (const arrivalMs of [50, 1_000, 20_000]) {
    const { baseUrl, draining } = await openWithoutOperations(t, { services, arrivalMs });
    const watch = await openWatch(baseUrl);
    if (watch === undefined) continue;
    const isAsked = Promise.withResolvers<void>();
    const question = { messageRequest: { case: 'listServices' as const, value: '' } };
    async function* questions() {
      yield question;
      await isAsked.promise;
      yield question;
    }
    const reflection = createClient(ServerReflection, createGrpcTransport({ baseUrl }));
    const answers = reflection.serverReflectionInfo(questions())[Symbol.asyncIterator]();
    assert.equal((await answers.next()).value?.messageResponse.case, 'listServicesResponse');
    // This call begins last, so the limit of the streams is over once it is rejected.
    assertTimeout(await overHttp2(t, baseUrl, { headers: grpc, sent: half }), /not complete/);
    isAsked.resolve();
    assert.equal((await answers.next()).value?.messageResponse.case, 'listServicesResponse');
    draining.abort();
    assert.equal((await watch.next()).value?.status, Status.NOT_SERVING);
    return;
  }
  assert.fail('no Watch got a status');
});
