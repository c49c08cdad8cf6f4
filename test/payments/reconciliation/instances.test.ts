import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { holdWarningS } from '../../../src/domain/event.ts';
import type { ReconciliationLimits } from '../../../src/payments/reconciliation/limits.ts';
import { holdLastsMs } from '../../../src/payments/simulated/hold.ts';
import type { Execute, Kind, Result } from '../../../src/store/store.ts';
import { type Kit, kitLimits, openKit, quiet, released } from './kit.ts';

const { answerTimeoutMs, firstRetryMs, pollMs } = kitLimits;
const minuteMs = 60_000;

/** Another instance takes over within this time. */
const takeoverMs = 15_000;

type Name = 'one' | 'other';

/** Two instances on one store; `one` is that of the kit. The test sets which of them lead. */
async function openTwo(
  t: TestContext,
  over: Parameters<Kit['join']>[0] = {},
  limits: Partial<ReconciliationLimits> = {},
) {
  const leading = new Set<Name>();
  const instanceOf = (name: Name) => ({ instances: { isLeading: () => leading.has(name), others: () => 1 } });
  const kit = await openKit(t, limits, instanceOf('one').instances);
  const other = kit.join({ store: instanceOf('other'), ...over });
  await other.recovery.start();
  return {
    ...{ kit, other },
    /** Which of them lead from now on. */
    lead: (...names: Name[]) => {
      leading.clear();
      for (const name of names) leading.add(name);
    },
    /** The instructions of an order after its FREEZE, as they came. */
    sent: (escrowId: string) => kit.provider.instructionsOf(escrowId).slice(1),
  };
}

/** Executes commands; those of one kind through a function. */
const through =
  <K extends Kind>(kind: K, change: (run: () => Promise<Result<K>>) => Promise<Result<K>>) =>
  (execute: Execute): Execute =>
  async (command) => {
    if (command.kind !== (kind as Kind)) return execute(command);
    return change(() => execute(command) as Promise<Result<K>>) as Promise<never>;
  };

test('60 orders that two instances release and refund at once have one outcome each', async (t) => {
  const { kit, other, lead, sent } = await openTwo(t);
  lead('other');
  const orders = await Promise.all(Array.from({ length: 60 }, () => kit.open()));
  const resolve = async (kind: 'RELEASE' | 'REFUND', escrowId: string, at: Pick<Kit, 'carryOut'>) =>
    at.carryOut(await kit.prepare(kind, escrowId));
  const calls = orders.flatMap((escrowId, index) => {
    const ofOrder = [
      resolve('RELEASE', escrowId, kit),
      resolve('REFUND', escrowId, other.reconciler),
      resolve('RELEASE', escrowId, other.reconciler),
    ];
    return index % 2 === 0 ? ofOrder : [resolve('REFUND', escrowId, kit), ...ofOrder];
  });
  await Promise.allSettled(calls);
  await kit.pass(2 * answerTimeoutMs);
  for (const escrowId of orders) {
    const kinds = sent(escrowId).map(({ kind }) => kind);
    assert.equal(kinds.length, 1, `${escrowId} ${kinds}`);
    await kit.assertSettled(escrowId, kinds[0] === 'RELEASE' ? 'RELEASED' : 'REFUNDED');
  }
});

test('without the swap, two instances send an instruction twice', async (t) => {
  const { kit } = await openTwo(t);
  const heedless = through('RecordSent', async (run) => (await run()) || true)(kit.execute);
  const other = kit.join({ execute: heedless });
  const escrowId = await kit.open();
  const release = await kit.prepare('RELEASE', escrowId);
  await Promise.all([kit.carryOut(release), other.reconciler.carryOut(release)]);
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'RELEASE', 'RELEASE']);
});

/** An order whose RELEASE one instance is sending, and which the provider was notified of. */
async function beingReleased({ kit, lead }: Awaited<ReturnType<typeof openTwo>>) {
  lead('other');
  const escrowId = await kit.open();
  kit.provider.treat({ RELEASE: 'KEPT_BACK' });
  const releasing = kit.resolve('RELEASE', escrowId);
  await kit.provider.instructed('RELEASE');
  await kit.notify(escrowId);
  return { escrowId, releasing };
}

test('recovery leaves an order whose instruction another instance is sending, also after a notification', async (t) => {
  const two = await openTwo(t);
  const { kit, sent } = two;
  const { escrowId, releasing } = await beingReleased(two);
  await kit.pass(answerTimeoutMs - pollMs);
  assert.deepEqual([sent(escrowId).length, kit.provider.lookUps], [1, []]);
  await kit.provider.answer();
  assert.equal((await releasing).status, 'CONFIRMED');
  await kit.pass(2 * pollMs);
  assert.equal(kit.provider.lookUps.length, 1, 'the notification may be about something later');
  await kit.assertSettled(escrowId, 'RELEASED');
});

test('the start of an instance makes no order due that another one is carrying out', async (t) => {
  const two = await openTwo(t);
  const { kit, sent } = two;
  const { escrowId, releasing } = await beingReleased(two);
  const third = kit.join({ store: { instances: { isLeading: () => true, others: () => 1 } } });
  await third.recovery.start();
  await kit.pass(answerTimeoutMs - pollMs);
  assert.equal(sent(escrowId).length, 1);
  const alone = kit.join({ store: { instances: undefined } });
  await alone.recovery.start();
  await kit.provider.instructed('RELEASE');
  await quiet();
  assert.equal(sent(escrowId).length, 2, 'one that takes the others for dead sends it again');
  await kit.provider.answer();
  await releasing;
});

test('what a dead instance was sending is sent by another one after the timeout', async (t) => {
  const { kit, lead, sent } = await openTwo(t);
  lead('one');
  let isDead = false;
  const execute: Execute = async (command) => {
    if (isDead) throw new Error('The process is dead.');
    return kit.execute(command);
  };
  const dying = kit.join({ execute });
  const escrowId = await kit.open();
  kit.provider.treat({ RELEASE: 'SILENT' });
  const release = await kit.prepare('RELEASE', escrowId);
  void dying.reconciler.carryOut(release);
  await kit.provider.instructed('RELEASE');
  isDead = true;
  kit.provider.treat({ RELEASE: 'CONFIRMED' });
  await kit.pass(answerTimeoutMs - pollMs);
  assert.equal(sent(escrowId).length, 1);
  await kit.pass(3 * pollMs);
  const ids = sent(escrowId).map(({ instructionId }) => instructionId);
  assert.deepEqual(ids, [release.instructionId, release.instructionId]);
  await kit.assertSettled(escrowId, 'RELEASED');
});

for (const kind of ['FindCase', 'UpdateOrder'] as const)
  test(`a recovery that was stopped before its ${kind} leaves what another instance sends meanwhile`, async (t) => {
    const { kit, sent } = await openTwo(t);
    const continued = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const stopping = through<'FindCase' | 'UpdateOrder'>(kind, async (run) => {
      reached.resolve();
      await continued.promise;
      return run();
    });
    const escrowId = await kit.open();
    const release = await kit.prepare('RELEASE', escrowId);
    const leading = { instances: { isLeading: () => true, others: () => 1 } };
    const leader = kit.join({ execute: stopping(kit.execute), store: leading });
    await leader.recovery.start();
    await kit.pass(answerTimeoutMs);
    await reached.promise;
    kit.provider.treat({ RELEASE: 'KEPT_BACK' });
    const releasing = kit.carryOut(release);
    await kit.provider.instructed('RELEASE');
    continued.resolve();
    await kit.pass(answerTimeoutMs - pollMs);
    assert.equal(sent(escrowId).length, 1);
    await kit.provider.answer();
    assert.equal((await releasing).status, 'CONFIRMED');
    await kit.assertSettled(escrowId, 'RELEASED');
  });

for (const [title, isClockStopped, times] of [
  ['an instance that was stopped until another one took over does not send', false, 1],
  ['an instance whose clock stood still while it was stopped does', true, 2],
] as const)
  test(title, async (t) => {
    const { kit, lead, sent } = await openTwo(t);
    lead('one');
    const continued = Promise.withResolvers<void>();
    const stopping = through('RecordSent', async (run) => {
      const isTaken = await run();
      await continued.promise;
      return isTaken;
    });
    const atMs = kit.clock.nowMs();
    const clock = isClockStopped ? { ...kit.clock, nowMs: () => atMs } : kit.clock;
    const stopped = kit.join({ execute: stopping(kit.execute), clock });
    const escrowId = await kit.open();
    const releasing = stopped.reconciler.carryOut(await kit.prepare('RELEASE', escrowId));
    await kit.pass(answerTimeoutMs + 2 * pollMs);
    await kit.assertSettled(escrowId, 'RELEASED');
    continued.resolve();
    assert.equal((await releasing).status, 'CONFIRMED');
    assert.equal(sent(escrowId).length, times);
    await kit.pass(2 * firstRetryMs);
    await kit.assertSettled(escrowId, 'RELEASED');
  });

test('the late failure of an instance changes nothing of what another one is sending', async (t) => {
  const { kit, lead, sent } = await openTwo(t);
  lead('one');
  const continued = Promise.withResolvers<void>();
  const late = through('RecordUnanswered', async (run) => {
    await continued.promise;
    return run();
  });
  const stopped = kit.join({ execute: late(kit.execute) });
  const escrowId = await kit.open();
  kit.provider.treat({ RELEASE: 'LOST' });
  const releasing = stopped.reconciler.carryOut(await kit.prepare('RELEASE', escrowId));
  await kit.provider.instructed('RELEASE');
  kit.provider.treat({ RELEASE: 'KEPT_BACK' });
  await kit.pass(answerTimeoutMs + pollMs);
  assert.equal(sent(escrowId).length, 2);
  const before = await kit.case(escrowId);
  continued.resolve();
  assert.equal((await releasing).status, 'SENT');
  assert.deepEqual(await kit.case(escrowId), before);
  await kit.provider.answer();
  await quiet();
  await kit.assertSettled(escrowId, 'RELEASED');
});

test('orders are recovered while an instance leads, and once each if two lead', async (t) => {
  const { kit, lead, sent } = await openTwo(t);
  const orders = await Promise.all(Array.from({ length: 20 }, () => kit.open()));
  const lose = async () => {
    kit.provider.treat({ RELEASE: 'LOST' });
    for (const escrowId of orders) await kit.resolve('RELEASE', escrowId);
    kit.provider.treat({ RELEASE: 'CONFIRMED' });
  };
  await lose();
  await kit.pass(minuteMs);
  assert.deepEqual(kit.provider.lookUps, [], 'nobody leads');
  lead('one', 'other');
  await kit.pass(takeoverMs);
  for (const escrowId of orders) {
    await kit.assertSettled(escrowId, 'RELEASED');
    assert.equal(sent(escrowId).length, 2);
  }
});

test('a hold that ends soon has one event, although another instance takes over', async (t) => {
  const { kit, lead } = await openTwo(t);
  const { callerId } = kit.platform;
  const warned = async () => {
    const { events } = await kit.execute({ kind: 'ReadEvents', callerId, after: undefined });
    return events.filter(({ type }) => type === 'escrow.hold_expiring').length;
  };
  await kit.open();
  kit.clock.setWall(kit.clock.nowMs() + holdLastsMs - holdWarningS * 1_000 + 1_000);
  await kit.pass(2 * minuteMs);
  assert.equal(await warned(), 0);
  lead('one', 'other');
  await kit.pass(takeoverMs);
  assert.equal(await warned(), 1);
  lead('other');
  await kit.pass(2 * minuteMs);
  assert.equal(await warned(), 1);
});

test('a change of a payout that two instances find at once has one record and one event', async (t) => {
  const { kit } = await openTwo(t);
  const escrowId = await released(kit);
  kit.provider.report((_, truth) => ({ ...truth, status: 'DISPUTED' }));
  const bothFound = Promise.withResolvers<void>();
  let found = 0;
  const together = through('UpdateOrder', async (run) => {
    found += 1;
    if (found === 2) bothFound.resolve();
    await bothFound.promise;
    return run();
  });
  const instances = [1, 2].map(() => kit.join({ execute: together(kit.execute) }));
  await Promise.allSettled(instances.map(({ reconciler }) => reconciler.lookUpReleased(escrowId)));
  const { order } = await kit.case(escrowId);
  assert.equal(order.history.filter(({ payment }) => payment === 'DISPUTED').length, 1);
  const { events } = await kit.execute({
    ...{ kind: 'ReadEvents', callerId: kit.platform.callerId, after: undefined },
  });
  assert.equal(events.filter(({ type }) => type === 'escrow.payment_disputed').length, 1);
});

test('an instance that takes over continues the look-ups of RELEASED orders', async (t) => {
  const roundMs = 10 * minuteMs;
  const slow = { pollMs: 5 * minuteMs, releasedLookUpMs: roundMs };
  const { kit, lead } = await openTwo(t, {}, slow);
  const orders = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const escrowId = await kit.open();
      await kit.resolve('RELEASE', escrowId);
      return escrowId;
    }),
  );
  const lookedUp = () => kit.provider.lookUps.length;
  lead('one');
  await kit.pass(roundMs + minuteMs);
  assert.ok(lookedUp() >= orders.length, `${lookedUp()}`);
  const before = lookedUp();
  lead('other');
  await kit.pass(roundMs / 2);
  // It makes up for no round: only the turn that one may not have completed.
  assert.ok(lookedUp() - before <= orders.length / 2 + 2, `${lookedUp() - before}`);
  await kit.pass(roundMs / 2 + minuteMs);
  const last = kit.provider.lookUps.slice(before).map(({ escrowId }) => escrowId);
  assert.deepEqual(new Set(last), new Set(orders));
});
