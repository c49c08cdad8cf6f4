import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { FilingService, GetFilingRequestSchema } from '../../gen/artseal/v1/filing_pb.ts';
import { createDispatcher } from '../../src/calls/dispatcher.ts';
import type { Outcome, RoutedCall } from '../../src/calls/incoming-call.ts';
import { createCalls } from '../../src/calls/pipeline.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { Refusal } from '../../src/domain/reason.ts';
import { createKeyRing, newMasterKeyText, parseMasterKeys } from '../../src/keys/key-ring.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { sandbox } from '../store/promises/fixtures.ts';
import { createManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ledger } from '../support/tokens.ts';

/** Calls that are carried out at the same time, at most. */
const callsUnderWayMax = 2_000;

test('calls whose callers are gone count until they end; what comes on top is refused at once', {
  timeout: 60_000,
}, async (t) => {
  const store = createSqliteStore({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => store.close());
  const answered = Promise.withResolvers<void>();
  const calls = createCalls({
    store: {
      ...store,
      execute: async (unit) => {
        await answered.promise;
        return store.execute(unit);
      },
    },
    dispatcher: createDispatcher([]),
    keyRing: createKeyRing(parseMasterKeys(newMasterKeyText())),
    clock: createManualClock(),
    calendar: createCalendar('UTC'),
  });
  const call: RoutedCall = {
    method: FilingService.method.getFiling,
    idempotencyKeys: [],
    read: () => ({ message: create(GetFilingRequestSchema), violations: [] }),
  };
  const identified = () => calls.identified(ledger, call, { requestId: '' });
  const reasonOf = ({ answer }: Outcome) => (answer instanceof Refusal ? answer.reason : 'none');

  const underWay = Array.from({ length: callsUnderWayMax }, identified);
  assert.equal(reasonOf(await identified()), 'UNAVAILABLE');
  answered.resolve();
  for (const outcome of await Promise.all(underWay)) assert.equal(reasonOf(outcome), 'NOT_FOUND');
  assert.equal(reasonOf(await identified()), 'NOT_FOUND');
});
