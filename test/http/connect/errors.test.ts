import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Int32ValueSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import pino from 'pino';
import { Escrow_Type } from '../../../gen/artseal/v1/escrow_pb.ts';
import { FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import { ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { createDispatcher } from '../../../src/api/dispatcher.ts';
import { implement, operation, parsed } from '../../../src/api/operation.ts';
import { createCalls } from '../../../src/api/pipeline.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { createCalendar } from '../../../src/domain/calendar.ts';
import { unavailable } from '../../../src/domain/reason.ts';
import { createInternalListener } from '../../../src/http/connect/internal-listener.ts';
import { createTypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { createClientOf } from '../../../src/http/listen/clients.ts';
import { createOpenCalls } from '../../../src/http/listen/open-calls.ts';
import { createKeyRing, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import { systemClock } from '../../../src/operations/registry.ts';
import type { Store } from '../../../src/store/store.ts';
import { openObserver } from '../../support/observer.ts';
import { createSwitchedReadiness } from '../../support/readiness.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { ledger } from '../../support/tokens.ts';
import { bearer, errorOf, typedClients, typedRefusal } from '../../support/typed-clients.ts';
import { endsByForce } from './closing-support.ts';
import { overConnect, overGrpc, overGrpcWeb, type RawSending, reasonOf } from './raw-call.ts';
import { transports } from './transports.ts';

/** What a call meets behind the door. */
interface ListenerName {
  readonly run: () => Promise<Record<string, unknown>>;
  readonly stored?: () => Promise<void>;
}

/** The internal door and the pipeline before one operation, and in place of the store what becomes of its units. */
async function openDoor(t: TestContext, { run, stored = async () => {} }: ListenerName) {
  const lines: string[] = [];
  const written = new EventEmitter();
  const log = pino(
    { base: null },
    {
      write: (line) => {
        lines.push(line);
        written.emit('line');
      },
    },
  );
  /** The line of a call; it is written when the answer is. */
  const logged = async (requestId: string): Promise<string> => {
    for (;;) {
      const line = lines.find((candidate) => candidate.includes(requestId));
      if (line !== undefined) return line;
      await once(written, 'line');
    }
  };
  const getProvenance = operation({ parse: () => parsed([], () => undefined), run });
  const dispatcher = createDispatcher([implement(ProvenanceService, 'read', { getProvenance })]);
  const execute: Store['execute'] = async () => {
    await stored();
    return { outcome: { kind: 'DONE', result: undefined as never, isReplay: false } };
  };
  const calls = createCalls({
    ...{ dispatcher, clock: systemClock, calendar: createCalendar('UTC') },
    store: { execute } as Store,
    keyRing: createKeyRing(parseMasterKeys('0'.repeat(64))),
  });
  const draining = new AbortController().signal;
  const { services } = dispatcher;
  const readiness = createSwitchedReadiness();
  const typedCalls = createTypedCalls({ calls, services, bearerCheck: () => ledger, readiness, draining });
  const door = {
    ...{ clientOf: createClientOf([]), openCalls: createOpenCalls(), tls: undefined },
    observer: openObserver('internal', log),
  };
  const listener = createInternalListener({ typedCalls, ...door });
  const { server } = listener;
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  t.after(() => {
    listener.destroy();
    server.close();
    server.closeAllConnections();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, logged };
}

for (const [name, transport] of Object.entries(transports)) {
  test(`what nobody foresaw is INTERNAL without details, and in the log: ${name}`, async (t) => {
    const run = () => Promise.reject(new TypeError('SELECT secret FROM vault'));
    const { baseUrl, logged } = await openDoor(t, { run });
    const { provenance } = typedClients(transport(baseUrl, 'it_any'));
    const { message, requestId } = await typedRefusal(provenance.getProvenance({}), 'INTERNAL');
    assert.doesNotMatch(message, /SELECT|vault|TypeError|\.ts/);
    const { err } = JSON.parse(await logged(requestId));
    assert.match(err?.message ?? '', /SELECT secret FROM vault/);
  });

  test(`an answer whose effect cannot be kept is UNAVAILABLE instead: ${name}`, async (t) => {
    const { baseUrl } = await openDoor(t, {
      run: async () => ({ filingNo: 'AS-2026-000001' }),
      stored: () => Promise.reject(unavailable('The disk is full.')),
    });
    const { provenance } = typedClients(transport(baseUrl, 'it_any'));
    const { retryAfter } = await typedRefusal(provenance.getProvenance({}), 'UNAVAILABLE');
    assert.match(retryAfter ?? '', /^[1-9]\d*$/);
  });
}

test('nothing is answered before the call is stored, not even a apiError', async (t) => {
  const steps: string[] = [];
  const barrier = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const { baseUrl } = await openDoor(t, {
    run: () => Promise.reject(new Error('refused')),
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

test('a store that is closed is UNAVAILABLE, to what only reads as well', async (t) => {
  const service = await startService(t);
  const { filings } = typedClients(createTypedTransport(service.internalUrl, await service.token()));
  await filings.listFilings({});
  await service.store.close();
  await typedRefusal(filings.listFilings({}), 'UNAVAILABLE');
  await typedRefusal(filings.createFiling({ ...artwork, price: 1n }), 'UNAVAILABLE');
});

const methods = ['FilingService/CreateFiling', 'EscrowService/GetEscrow', 'AdminService/CreateKey'];

for (const method of methods) {
  test(`a field that ${method} does not have is refused, naming it, and nothing is done`, async (t) => {
    const service = await startService(t);
    const token = await service.token(true);
    const answer = await fetch(`${service.internalUrl}/artseal.v1.${method}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...bearer(token) },
      body: JSON.stringify({ misspelt: 'x' }),
    });
    const error = (await answer.json()) as { code: string; message: string };
    assert.deepEqual([answer.status, error.code], [400, 'invalid_argument'], error.message);
    assert.match(error.message, /misspelt/);
  });
}

const unreadable: readonly (readonly [type: string, body: string, reason: string])[] = [
  ['application/json', '{', 'INVALID_JSON'],
  ['application/json', '[]', 'INVALID_JSON'],
  ['application/json', '{"filingNo":1}', 'VALIDATION_FAILED'],
  ['application/proto', '\n\u0005AS', 'VALIDATION_FAILED'],
];

for (const [type, body, reason] of unreadable) {
  test(`a message that cannot be read is the caller's fault: ${JSON.stringify(body)} as ${type}`, async (t) => {
    const service = await startService(t);
    const answer = await fetch(`${service.internalUrl}/artseal.v1.FilingService/GetFiling`, {
      method: 'POST',
      headers: { 'Content-Type': type, ...bearer(await service.token()) },
      body,
    });
    assert.equal(answer.status, 400, await answer.text());
    const requestId = answer.headers.get('X-Request-Id') ?? '';
    const line = service.logLines.find((candidate) => candidate.includes(requestId));
    assert.equal(JSON.parse(line ?? '{}').reason, reason);
  });
}

for (const [name, transport] of Object.entries(transports)) {
  test(`bytes that are no message of the method are the caller's fault: ${name}`, async (t) => {
    const service = await startService(t);
    const { unary } = transport(service.internalUrl, await service.token());
    const mistaken = { ...FilingService.method.getFiling, input: Int32ValueSchema };
    const call = unary(mistaken, undefined, undefined, {}, { value: 100 });
    await typedRefusal(call, name.includes('JSON') ? 'INVALID_JSON' : 'VALIDATION_FAILED');
  });
}

test('a message over 64 KiB is refused over every protocol, and the next call is answered', async (t) => {
  const service = await startService(t);
  const token = await service.token();
  for (const [name, transport] of Object.entries(transports)) {
    const { filings } = typedClients(transport(service.internalUrl, token));
    const large = { ...artwork, price: 1n, condition: 'x'.repeat(70_000) };
    const { message } = await typedRefusal(filings.createFiling(large), 'BODY_TOO_LARGE');
    assert.match(message, /65536/, name);
    assert.deepEqual((await filings.listFilings({})).filings, []);
  }
  await endsByForce(t, service);
});

test('a message that grows over 64 KiB when it is unpacked is refused', async (t) => {
  const service = await startService(t);
  const packed = gzipSync(JSON.stringify({ filingNo: 'x'.repeat(10_000_000) }));
  assert.ok(packed.length < 65_536);
  const answer = await fetch(`${service.internalUrl}/artseal.v1.FilingService/GetFiling`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
      ...bearer(await service.token()),
    },
    body: packed,
  });
  assert.equal(((await answer.json()) as { code: string }).code, 'resource_exhausted');
});

test('the REST routes are not behind the internal door', async (t) => {
  const service = await startService(t);
  const answer = await fetch(`${service.internalUrl}/api/v1/filing`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...bearer(await service.token()) },
    body: JSON.stringify(artwork),
  });
  assert.equal(answer.status, 404);
});

test('a client that sets a time limit is told when it is over', async (t) => {
  const hanging = Promise.withResolvers<Record<string, unknown>>();
  const { baseUrl } = await openDoor(t, { run: () => hanging.promise });
  for (const transport of Object.values(transports)) {
    const { provenance } = typedClients(transport(baseUrl, 'it_any'));
    const error = await errorOf(provenance.getProvenance({}, { timeoutMs: 20 }));
    assert.equal(error.code, Code.DeadlineExceeded);
  }
  hanging.resolve({});
});

const withDeadline: readonly (readonly [name: string, send: RawSending, header: Record<string, string>])[] = [
  ['Connect', overConnect('application/json'), { 'Connect-Timeout-Ms': '20' }],
  ['gRPC', overGrpc('application/grpc+json'), { 'grpc-timeout': '20m' }],
  ['gRPC-Web', overGrpcWeb('application/grpc-web+json'), { 'grpc-timeout': '20m' }],
];

for (const [name, send, headers] of withDeadline) {
  test(`a call is answered at its deadline, also to a client that keeps no time itself: ${name}`, async (t) => {
    const hanging = Promise.withResolvers<Record<string, unknown>>();
    const { baseUrl } = await openDoor(t, { run: () => hanging.promise });
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

test('a payment whose answer is not known is aborted over every protocol, and told when to ask again', async (t) => {
  const service = await startService(t, { limits: { answerTimeoutMs: 20 } });
  const token = await service.token();
  for (const transport of Object.values(transports)) {
    const { filings, escrows } = typedClients(transport(service.internalUrl, token));
    const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
    const order = { ...escrowTerms(filingNo), type: Escrow_Type.GUARANTEE, amount: 1n };
    const error = await errorOf(escrows.createEscrow({ ...order, buyerId: 'sim-silent-1' }));
    await typedRefusal(Promise.reject(error), 'PAYMENT_PENDING', 'aborted');
    const [retry] = error.findDetails(RetryInfoSchema);
    assert.ok((retry?.retryDelay?.seconds ?? 0n) >= 1n);
  }
});
