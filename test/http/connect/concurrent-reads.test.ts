import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import { test } from 'node:test';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import type { UnaryOperation } from '../../../src/api/operation.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { eventually } from '../../support/eventually.ts';
import { implementOnly } from '../../support/implement-only.ts';
import { ledger } from '../../support/tokens.ts';
import { typedClients } from '../../support/typed-clients.ts';
import { openOperations } from './bare-listener.ts';
import { enveloped, overConnect, overGrpc, overGrpcWeb, reasonOf } from './raw-call.ts';

const path = '/artseal.v1.ProvenanceService/GetProvenance';

/** A caller must not fill the memory of the server with reads. test/lib/concurrency.test.ts has the rules of the queue. */
test('64 reads of a caller run at the same time, and those that wait do not delay another caller', async (t) => {
  const started: string[] = [];
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const getProvenance: UnaryOperation = {
    run: async (_, { principal }) => {
      started.push(principal.caller);
      await finished;
      return {};
    },
  };
  const { baseUrl } = await openOperations(t, implementOnly(ProvenanceService, 'read', { getProvenance }), {
    identify: (header) => ({ ...ledger, caller: String(header('authorization')) }),
  });
  const read = (token: string) =>
    typedClients(createTypedTransport(baseUrl, token)).provenance.getProvenance({});
  const calls = Array.from({ length: 70 }, () => read('many'));
  await eventually('64 reads run', 60_000, () => started.length >= 64);
  calls.push(read('one'));
  await eventually('the read of the other caller runs', 60_000, () => started.includes('Bearer one'));
  assert.equal(started.length, 65);
  finish();
  await Promise.all(calls);
  assert.equal(started.length, 71);
});

test('reads that their client breaks off at once do not run beside 64 others', async (t) => {
  let running = 0;
  let most = 0;
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  t.after(() => finish());
  const getProvenance: UnaryOperation = {
    run: async () => {
      running += 1;
      most = Math.max(most, running);
      await finished;
      running -= 1;
      return {};
    },
  };
  const { baseUrl } = await openOperations(t, implementOnly(ProvenanceService, 'read', { getProvenance }));
  const session = connect(baseUrl);
  t.after(() => session.destroy());
  await once(session, 'connect');
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  for (let call = 0; call < 150; call += 1) {
    const request = session.request(headers);
    request.on('error', () => {}).end(enveloped(''));
    if (call % 2 === 0) request.close(constants.NGHTTP2_CANCEL);
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    session.ping(() => resolve());
    await isRead;
  }
  assert.ok(most > 0 && most <= 64, `${most} reads ran at the same time`);
});

test('a read that fails before it begins frees its place, over every protocol', async (t) => {
  const getProvenance: UnaryOperation = { run: async () => ({}) };
  const { baseUrl } = await openOperations(t, implementOnly(ProvenanceService, 'read', { getProvenance }));
  const calls = {
    Connect: overConnect('application/proto'),
    gRPC: overGrpc('application/grpc'),
    'gRPC-Web': overGrpcWeb('application/grpc-web+proto'),
  };
  for (const [name, send] of Object.entries(calls)) {
    const call = { baseUrl, token: 'it', method: 'ProvenanceService/GetProvenance' };
    const unreadable = Array.from({ length: 70 }, () => send({ ...call, body: Uint8Array.of(9) }));
    const reasons = (await Promise.all(unreadable)).map(reasonOf);
    assert.deepEqual([...new Set(reasons)], ['VALIDATION_FAILED'], name);
    assert.equal((await send({ ...call, body: '' })).error, undefined, name);
  }
});
