import assert from 'node:assert/strict';
import { test } from 'node:test';
import { holdWarningS } from '../../../src/domain/event.ts';
import { holdLastsMs } from '../../../src/payments/simulated/hold.ts';
import { openKit } from './kit.ts';

test('the caller gets one event a day before a hold ends', async (t) => {
  const kit = await openKit(t);
  const { callerId } = kit.platform;
  const warned = async () => {
    const { events } = await kit.execute({ kind: 'ReadEvents', callerId, after: undefined });
    return events.filter(({ type }) => type === 'escrow.hold_expiring').length;
  };
  const warnsAtMs = kit.clock.nowMs() + holdLastsMs - holdWarningS * 1_000;
  await kit.open();
  kit.clock.setWall(warnsAtMs - 90_000);
  await kit.pass(60_000);
  assert.equal(await warned(), 0);
  await kit.pass(90_000);
  assert.equal(await warned(), 1);
  await kit.restart();
  await kit.pass(60_000);
  assert.equal(await warned(), 1);
});
