import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { create, type DescMethodUnary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import {
  EventService,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  WatchEventsResponseSchema,
} from '../../gen/artseal/v1/event_pb.ts';
import { FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import {
  GetProvenanceRequestSchema,
  type GetProvenanceResponseSchema,
  ProvenanceService,
} from '../../gen/artseal/v1/provenance_pb.ts';
import {
  createDispatcher,
  type Dispatcher,
  implement,
  type Principal,
  type StreamingOperation,
  type UnaryOperation,
} from '../../src/api/operation.ts';
import { type CallResult, createCalls, type RoutedCall } from '../../src/api/pipeline.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { ApiError } from '../../src/domain/reason.ts';
import type { Scope } from '../../src/domain/token.ts';
import type { Violation } from '../../src/domain/violation.ts';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { sandbox } from '../store/promises/fixtures.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { implementOnly } from '../support/implement-only.ts';
import { apiError } from '../support/rejected.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ledger } from '../support/tokens.ts';

const { getProvenance: method } = ProvenanceService.method;
type ProvenanceOperation = UnaryOperation<
  typeof GetProvenanceRequestSchema,
  typeof GetProvenanceResponseSchema
>;

const platform: Principal = {
  kind: 'platform',
  callerId: 1,
  caller: 'gallery',
  tier: 'TRIAL',
  monthlyQuota: 1_000,
};
const service: Principal = ledger;
const operator: Principal = { ...ledger, scopes: ['operate'] };
const execute = () => assert.fail('Nothing is stored here.');
const pause = () => assert.fail('Nothing is waited for here.');
const admit = () => assert.fail('The first command admits the call.');

/** Invokes one operation that counts how often it ran. */
function dispatching(over: Partial<ProvenanceOperation>, scope: Scope = 'read') {
  let runs = 0;
  const run: ProvenanceOperation['run'] = async ({ filingNo }) => {
    runs += 1;
    return { filingNo, author: 'Qi Baishi' };
  };
  const getProvenance = { run, ...over };
  const dispatcher = createDispatcher([implementOnly(ProvenanceService, scope, { getProvenance })]);
  const request = create(GetProvenanceRequestSchema, { filingNo: 'AS-2026-000001' });
  return {
    runs: () => runs,
    invoke: (principal: Principal = platform, violations?: readonly Violation[]) =>
      dispatcher.invoke(
        method,
        request,
        { principal, admit, execute, executeNext: execute, pause },
        violations,
      ),
  };
}

/** An operation that returns an empty message. */
const empty: UnaryOperation = { run: async () => ({}) };

const broken = (field: string, rule: string): Violation => ({ field, rule });

test("violations of the reader and of the operation are reported together, the reader's first", async () => {
  const { invoke, runs } = dispatching({
    check: () => [broken('price', 'is required'), broken('era', 'is x')],
  });
  const sent = [broken('colour', 'is not part of this request'), broken('size', 'must be a string')];
  await assert.rejects(
    invoke(platform, sent),
    apiError(
      'VALIDATION_FAILED',
      /^colour is not part of this request; size must be a string; price is required; era is x$/,
    ),
  );
  assert.equal(runs(), 0);
});

test('only operators may call an operation for operators; for others its request is not checked', async () => {
  const check = () => assert.fail('The request of somebody who may not ask was checked.');
  const { invoke, runs } = dispatching({ check }, 'operate');
  for (const principal of [platform, service]) {
    await assert.rejects(invoke(principal, [broken('x', 'is unknown')]), apiError('PERMISSION_DENIED'));
  }
  assert.equal(runs(), 0);
  const { invoke: invokeAllowed } = dispatching({}, 'operate');
  await invokeAllowed(operator);
});

test('a method that nobody implements is not found', async () => {
  const dispatcher = createDispatcher([]);
  const request = create(GetProvenanceRequestSchema);
  await assert.rejects(
    dispatcher.invoke(method, request, { principal: operator, admit, execute, executeNext: execute, pause }),
    apiError('NOT_FOUND'),
  );
});

/** The operations of EventService; the second returns a stream. */
const eventOperations = {
  listEvents: empty,
  watchEvents: {
    check: ({ after = 0n }: WatchEventsRequest) =>
      after < 0n ? [broken('after', 'must not be below 0')] : [],
    run: async function* ({ after = 0n }: WatchEventsRequest) {
      yield { next: after };
      yield { next: after + 1n };
    },
  },
};

test('the responses of a stream become messages, one by one', async () => {
  const { stream } = createDispatcher([implementOnly(EventService, 'read', eventOperations)]);
  const call = { principal: service, execute, signal: new AbortController().signal };
  const { watchEvents } = EventService.method;
  const answers = await Array.fromAsync(
    stream(watchEvents, create(WatchEventsRequestSchema, { after: 7n }), call),
  );
  assert.deepEqual(answers, [
    create(WatchEventsResponseSchema, { next: 7n }),
    create(WatchEventsResponseSchema, { next: 8n }),
  ]);
  const wrong = stream(watchEvents, create(WatchEventsRequestSchema, { after: -1n }), call);
  await assert.rejects(wrong.next(), apiError('VALIDATION_FAILED', /^after must not be below 0$/));
  const forbidden = stream(watchEvents, create(WatchEventsRequestSchema), {
    ...call,
    principal: { ...ledger, scopes: ['file'] },
  });
  await assert.rejects(forbidden.next(), apiError('PERMISSION_DENIED'));
  const nobodys = createDispatcher([]).stream(watchEvents, create(WatchEventsRequestSchema), call);
  await assert.rejects(nobodys.next(), apiError('NOT_FOUND'));
});

test('a method that streams must do no harm if it is repeated', () => {
  const { NO_SIDE_EFFECTS, IDEMPOTENT, IDEMPOTENCY_UNKNOWN } = MethodOptions_IdempotencyLevel;
  const { listEvents, watchEvents } = EventService.method;
  const implementing = (idempotency: MethodOptions_IdempotencyLevel) => () => {
    const methods = [listEvents, { ...watchEvents, idempotency }];
    return implement({ ...EventService, methods }, 'read', eventOperations);
  };
  assert.throws(implementing(IDEMPOTENCY_UNKNOWN), /must have NO_SIDE_EFFECTS or IDEMPOTENT/);
  for (const idempotency of [NO_SIDE_EFFECTS, IDEMPOTENT]) assert.doesNotThrow(implementing(idempotency));
});

/** The largest number of running calls. */
const callsUnderWayMax = 2_000;

/** The pipeline with these operations. */
async function openCalls(t: TestContext, dispatcher: Dispatcher, stored: Promise<void>) {
  const store = createSqliteStore({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => store.close());
  const clock = createManualClock();
  const calls = createCalls({
    store: {
      ...store,
      execute: async (unit) => {
        await stored;
        return store.execute(unit);
      },
    },
    dispatcher,
    keyRing: createKeyRing(parseMasterKeys(newMasterKeyText())),
    clock,
    calendar: createCalendar('UTC'),
  });
  const identified = (method: DescMethodUnary) => {
    const read = () => ({ message: create(method.input), violations: [] });
    const call: RoutedCall = { method, idempotencyKeys: [], read };
    return calls.identified(ledger, call, { requestId: '' });
  };
  /** A call that nobody signed. */
  const signed = (body: Promise<Uint8Array>) => {
    const timestamp = [String(Math.floor(clock.nowMs() / 1_000))];
    const credentials = { apiKey: ['nobody'], timestamp, nonce: ['n'], signature: ['0'.repeat(64)] };
    const call = {
      method: 'POST',
      target: '/',
      credentials,
      readBody: () => body,
      route: () => assert.fail(),
    };
    return calls.signed(call, { requestId: '' });
  };
  return { identified, signed };
}

const reasonOf = ({ response }: CallResult) => (response instanceof ApiError ? response.reason : 'none');

test('calls count until they end, even without a caller, and calls above the limit are rejected at once', {
  timeout: 60_000,
}, async (t) => {
  const answered = Promise.withResolvers<void>();
  const calls = await openCalls(t, createDispatcher([]), answered.promise);
  const identified = () => calls.identified(FilingService.method.getFiling);

  const underWay = Array.from({ length: callsUnderWayMax }, identified);
  assert.equal(reasonOf(await identified()), 'UNAVAILABLE');
  answered.resolve();
  for (const outcome of await Promise.all(underWay)) assert.equal(reasonOf(outcome), 'NOT_FOUND');
  assert.equal(reasonOf(await identified()), 'NOT_FOUND');
});

test('a signed call does not count before its body has arrived, so that slow clients do not keep others out', async (t) => {
  const { signed } = await openCalls(t, createDispatcher([]), Promise.resolve());
  const body = Promise.withResolvers<Uint8Array>();
  const incomplete = Array.from({ length: callsUnderWayMax }, () => signed(body.promise));
  assert.equal(reasonOf(await signed(Promise.resolve(new Uint8Array()))), 'SIGNATURE_INVALID');
  body.resolve(new Uint8Array());
  for (const outcome of await Promise.all(incomplete)) assert.equal(reasonOf(outcome), 'SIGNATURE_INVALID');
});

test('calls that wait for another party do not count as running', {
  timeout: 60_000,
}, async (t) => {
  const over = Promise.withResolvers<void>();
  let waiting = 0;
  const listEvents: UnaryOperation = {
    run: async (_, call) => {
      await call.pause(() => {
        waiting += 1;
        return over.promise;
      });
      return {};
    },
  };
  const watchEvents: StreamingOperation = { run: () => assert.fail('Nobody watches.') };
  const dispatcher = createDispatcher([implementOnly(EventService, 'read', { listEvents, watchEvents })]);
  const { identified: call } = await openCalls(t, dispatcher, Promise.resolve());
  const waits = Array.from({ length: callsUnderWayMax }, () => call(EventService.method.listEvents));
  await eventually('all of them to wait', 60_000, () => waiting === callsUnderWayMax);
  assert.equal(reasonOf(await call(FilingService.method.getFiling)), 'NOT_FOUND');
  over.resolve();
  for (const outcome of await Promise.all(waits)) assert.equal(reasonOf(outcome), 'none');
  // They counted again after their wait, and do not now.
  const again = Array.from({ length: callsUnderWayMax }, () => call(FilingService.method.getFiling));
  for (const outcome of await Promise.all(again)) assert.equal(reasonOf(outcome), 'NOT_FOUND');
});
