import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { holdWarningS } from '../../../src/domain/event.ts';
import { createHoldWarnings } from '../../../src/payments/reconciliation/hold-warnings.ts';
import { executorOf, perform } from '../../../src/store/store.ts';
import { sqliteInThisThread } from '../../store/engines.ts';
import { addPlatform, noon, opened, openStore, settled } from '../../store/promises/fixtures.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

const timeoutMs = 60_000;

test('the caller gets one event a day before a hold ends', async (t) => {
  const store = await openStore(t, sqliteInThisThread);
  const by = await addPlatform(store, 'gallery');
  const { escrowId } = await opened(store, by);
  const holdExpiresAtMs = noon.atMs + 2 * holdWarningS * 1_000;
  await settled(store, escrowId, { to: 'FROZEN', holdExpiresAtMs });
  const warned = async () => {
    const { events } = await perform(store, { kind: 'ReadEvents', callerId: by.callerId, after: undefined });
    return events.filter(({ type }) => type === 'escrow.hold_expiring').map(({ atMs }) => atMs);
  };
  const clock = createManualClock(noon.atMs);
  const warnings = createHoldWarnings(executorOf(store), clock, pino({ level: 'silent' }));
  await warnings.start();
  assert.deepEqual(await warned(), []);

  const advance = async (ms: number) => {
    clock.advance(ms);
    await eventually('the next check is scheduled', timeoutMs, () => clock.nextDueMs() !== undefined);
  };
  await advance((holdWarningS - 30) * 1_000);
  // The check that the clock has passed runs first.
  await advance(60_000);
  await advance(60_000);
  await eventually('the caller has the event', timeoutMs, async () => (await warned()).length === 1);
  await advance(60_000);
  warnings.stop();
  await warnings.start();
  warnings.stop();
  assert.equal((await warned()).length, 1);
});
