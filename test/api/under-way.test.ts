import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { create, type DescMethodUnary } from '@bufbuild/protobuf';
import { EventService } from '../../gen/artseal/v1/event_pb.ts';
import { FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import { type Call, implement, operation, parsed, streaming } from '../../src/api/operation.ts';
import {
  type CallResult,
  createCalls,
  createDispatcher,
  type Dispatcher,
  type RoutedCall,
} from '../../src/api/pipeline.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { ApiError } from '../../src/domain/reason.ts';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { sandbox } from '../store/promises/fixtures.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ledger } from '../support/tokens.ts';

/** The largest number of running calls. */
const callsUnderWayMax = 2_000;

/** The pipeline with these operations. */
async function openCalls(t: TestContext, dispatcher: Dispatcher, stored: Promise<void>) {
  const store = createSqliteStore({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => store.close());
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
    clock: createManualClock(),
    calendar: createCalendar('UTC'),
  });
  return (method: DescMethodUnary) => {
    const read = () => ({ message: create(method.input), violations: [] });
    const call: RoutedCall = { method, idempotencyKeys: [], read };
    return calls.identified(ledger, call, { requestId: '' });
  };
}

const reasonOf = ({ response }: CallResult) => (response instanceof ApiError ? response.reason : 'none');

test('calls count until they end, even without a caller, and calls above the limit are rejected at once', {
  timeout: 60_000,
}, async (t) => {
  const answered = Promise.withResolvers<void>();
  const call = await openCalls(t, createDispatcher([]), answered.promise);
  const identified = () => call(FilingService.method.getFiling);

  const underWay = Array.from({ length: callsUnderWayMax }, identified);
  assert.equal(reasonOf(await identified()), 'UNAVAILABLE');
  answered.resolve();
  for (const outcome of await Promise.all(underWay)) assert.equal(reasonOf(outcome), 'NOT_FOUND');
  assert.equal(reasonOf(await identified()), 'NOT_FOUND');
});

test('calls that wait for another party do not count as running', {
  timeout: 60_000,
}, async (t) => {
  const over = Promise.withResolvers<void>();
  let waiting = 0;
  const { listEvents, watchEvents } = {
    listEvents: operation({
      parse: () => parsed([], () => undefined),
      run: async (_input, call: Call) => {
        await call.pause(() => {
          waiting += 1;
          return over.promise;
        });
        return {};
      },
    }),
    watchEvents: streaming({
      parse: () => parsed([], () => undefined),
      run: () => assert.fail('Nobody watches.'),
    }),
  };
  const dispatcher = createDispatcher([implement(EventService, 'read', { listEvents, watchEvents })]);
  const call = await openCalls(t, dispatcher, Promise.resolve());
  const waits = Array.from({ length: callsUnderWayMax }, () => call(EventService.method.listEvents));
  await eventually('all of them to wait', 60_000, () => waiting === callsUnderWayMax);
  assert.equal(reasonOf(await call(FilingService.method.getFiling)), 'NOT_FOUND');
  over.resolve();
  for (const outcome of await Promise.all(waits)) assert.equal(reasonOf(outcome), 'none');
  // They counted again after their wait, and do not now.
  const again = Array.from({ length: callsUnderWayMax }, () => call(FilingService.method.getFiling));
  for (const outcome of await Promise.all(again)) assert.equal(reasonOf(outcome), 'NOT_FOUND');
});
