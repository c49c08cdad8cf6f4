import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailable } from '../../../src/domain/reason.ts';
import type { Report, Treatment } from '../../support/simulator.ts';
import { frozen, type Kit, kitLimits, openKit, quiet } from './kit.ts';

const { freezeDeadlineMs, quietLookUpMs, firstRetryMs, longestRetryMs, pollMs } = kitLimits;

/** How long the provider takes over a slow answer. */
const slowMs = 100;

/** A provider that does not count right. */
const reports =
  (amount: bigint): Report =>
  (_, truth) => ({ ...truth, amount });

/** An order whose last instruction was not answered. */
async function unanswered(
  kit: Kit,
  kind: 'FREEZE' | 'RELEASE' | 'REFUND',
  treatment: Treatment = 'LOST',
): Promise<string> {
  kit.provider.treat({ [kind]: treatment });
  const escrowId = await kit.open();
  const state = kind === 'FREEZE' ? 'UNPAID' : 'FROZEN';
  assert.equal(await kit.stateOf(escrowId), state);
  if (kind !== 'FREEZE') assert.equal((await kit.resolve(kind, escrowId)).status, 'UNKNOWN');
  return escrowId;
}

/** Has the provider asked about a quiet order; after slowMs it answers what is true now. */
async function askedAbout(kit: Kit): Promise<void> {
  kit.provider.treatLookUps({ kind: 'SLOW', ms: slowMs });
  await kit.pass(quietLookUpMs);
  assert.equal(kit.provider.lookUps.length, 1);
  kit.provider.treatLookUps({ kind: 'NONE' });
}

test('a failure to read due orders is logged once, and so is its end', async (t) => {
  const kit = await openKit(t);
  const lines = () => kit.logged.map(({ level, msg }) => [level, msg]);
  for (const [error, level] of [
    [unavailable('The store cannot be written or read now.'), 40],
    [new TypeError('internalError'), 50],
  ] as const) {
    const before = lines().length;
    const endFailing = kit.fail('ListDue', error);
    await kit.pass(10 * pollMs);
    assert.ok(endFailing() > 1);
    await kit.pass(2 * pollMs);
    assert.deepEqual(lines().slice(before), [
      [level, 'the orders that are due cannot be read'],
      [30, 'the orders that are due are read again'],
    ]);
  }
});

test('an instruction is stored as SENT, with its id, before it is sent', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ FREEZE: 'KEPT_BACK' });
  const opening = kit.open();
  await kit.provider.instructed('FREEZE');
  const [sent = assert.fail()] = kit.provider.instructions;
  const { instructionId } = sent;
  assert.equal((await kit.execute({ kind: 'FindInstruction', instructionId }))?.status, 'SENT');
  await kit.provider.answer();
  const { order, holdId } = await kit.case(await opening);
  assert.equal(sent.holdId, holdId);
  assert.equal(sent.instructionId, holdId);
  assert.equal(sent.escrowId, order.escrowId);
  assert.equal(sent.currency, 'CNY');
});

test('an order that waits too long for its hold is cancelled, and CLOSED once the provider confirms it', async (t) => {
  const kit = await openKit(t);
  const escrowId = await unanswered(kit, 'FREEZE');
  await kit.pass(freezeDeadlineMs - 10_000);
  assert.equal(await kit.stateOf(escrowId), 'UNPAID');
  await kit.pass(longestRetryMs + 20_000);
  await kit.assertSettled(escrowId, 'CLOSED');
  assert.equal(kit.kindsSent().at(-1), 'CANCEL');
  assert.equal(kit.kindsSent().filter((kind) => kind === 'CANCEL').length, 1);
});

test('a hold that arrives after the CANCEL is returned, and the order is not FROZEN', async (t) => {
  const kit = await openKit(t);
  const givenUpMs = freezeDeadlineMs + longestRetryMs;
  const escrowId = await unanswered(kit, 'FREEZE', { kind: 'LATE_REQUEST', ms: givenUpMs + 1 });
  kit.provider.treat({ CANCEL: 'LOST' });
  await kit.pass(givenUpMs);
  assert.ok(kit.kindsSent().includes('CANCEL'));
  assert.equal(kit.provider.statusOf(escrowId), 'ABSENT');
  assert.equal(await kit.stateOf(escrowId), 'UNPAID', 'the CANCEL is not confirmed');
  kit.provider.treat({ CANCEL: 'CONFIRMED' });
  await kit.pass(2 * longestRetryMs);
  assert.equal(kit.provider.statusOf(escrowId), 'RETURNED');
  const { order, open } = await kit.case(escrowId);
  assert.deepEqual(
    order.history.map(({ state }) => state),
    ['UNPAID', 'CLOSED'],
  );
  assert.deepEqual(open, []);
});

test('a hold that arrives after the order was CLOSED is refunded', async (t) => {
  const kit = await openKit(t);
  kit.provider.report(() => ({ status: 'VOID' }));
  const escrowId = await kit.open();
  assert.equal(await kit.stateOf(escrowId), 'CLOSED');
  kit.provider.report();
  await kit.pass(quietLookUpMs + 1_000);
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'REFUND']);
  await kit.assertSettled(escrowId, 'CLOSED');
});

test('another amount needs review, and an operator can have it looked up again', async (t) => {
  const kit = await openKit(t);
  const declined = { code: 'moved', words: 'Moved.', detail: 'Staff moved a part.' };
  kit.provider.report((_, truth) => ({ ...truth, amount: 127_999_999n, declined }));
  const escrowId = await kit.open();
  const { order, review } = await kit.case(escrowId);
  assert.equal(order.state, 'UNPAID');
  assert.match(review ?? '', /128000000 CNY.*HELD.* Staff moved a part\.$/);
  await kit.pass(freezeDeadlineMs + quietLookUpMs);
  assert.deepEqual(kit.kindsSent(), ['FREEZE']);
  assert.equal(kit.provider.lookUps.length, 0, 'nobody is asked while a person decides');
  assert.ok(kit.logged.some(({ msg, level }) => level === 50 && /needs a person/.test(msg)));

  await kit.decide(escrowId, 'LOOK_AGAIN', 'd-1');
  await kit.pass(1_000);
  assert.ok((await kit.case(escrowId)).review !== undefined, 'it differs still');
  kit.provider.report();
  await kit.decide(escrowId, 'LOOK_AGAIN', 'd-2');
  await kit.pass(1_000);
  assert.equal(await kit.stateOf(escrowId), 'FROZEN');
});

/** An order that the provider holds one unit of, as it says. */
async function short(kit: Kit): Promise<string> {
  kit.provider.report(reports(1n));
  return kit.open();
}

test('an operator accepts another amount, and that is paid out', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await kit.decide(escrowId, 'ACCEPT');
  await kit.pass(1_000);
  assert.equal(await kit.stateOf(escrowId), 'FROZEN');
  assert.equal((await kit.resolve('RELEASE', escrowId)).status, 'CONFIRMED');
  assert.equal(kit.provider.instructions.at(-1)?.amount, 1n);
});

test('a declined return of another amount needs review again, and is repeated with a new instruction', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.report(reports(1n));
  kit.provider.treat({ REFUND: 'DECLINED' });
  await kit.pass(quietLookUpMs + 1_000);
  for (const refunds of [1, 2]) {
    await kit.decide(escrowId, 'RETURN');
    await kit.pass(1_000);
    const { order, open, review } = await kit.case(escrowId);
    assert.equal(order.state, 'FROZEN');
    assert.match(review ?? '', /HELD 1 CNY/);
    assert.deepEqual(open, [], 'the instruction that was declined has come to its end');
    const names = kit.provider.instructions.filter(({ kind }) => kind === 'REFUND');
    assert.equal(new Set(names.map(({ instructionId }) => instructionId)).size, refunds);
  }
});

test('an operator accepts PAID_OUT for an UNPAID order, which becomes RELEASED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await unanswered(kit, 'FREEZE');
  kit.provider.report(({ amount, currency }) => ({ status: 'PAID_OUT', amount, currency }));
  await kit.pass(quietLookUpMs + 1_000);
  assert.match((await kit.case(escrowId)).review ?? '', /UNPAID.*PAID_OUT/);
  await kit.decide(escrowId, 'ACCEPT');
  await kit.pass(2_000);
  await kit.assertSettled(escrowId, 'RELEASED');
});

test('an instruction without a response ends when an operator accepts that the money is gone', async (t) => {
  const kit = await openKit(t);
  const escrowId = await unanswered(kit, 'RELEASE');
  kit.provider.report(() => ({ status: 'ABSENT' }));
  await kit.pass(2 * firstRetryMs);
  await kit.decide(escrowId, 'ACCEPT');
  await kit.pass(1_000);
  await kit.assertSettled(escrowId, 'CLOSED');
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'RELEASE'], 'nothing more is given');
});

/** An order over whose RELEASE, which was not answered, a person decided to have the money given back; the RELEASE. */
async function overruled(kit: Kit): Promise<{ escrowId: string; release: string }> {
  const escrowId = await unanswered(kit, 'RELEASE');
  const release = (await kit.case(escrowId)).open[0]?.instructionId ?? '';
  kit.provider.report(reports(1n));
  await kit.pass(2 * firstRetryMs);
  await kit.decide(escrowId, 'RETURN');
  return { escrowId, release };
}

const statusOf = async (kit: Kit, instructionId: string) =>
  (await kit.execute({ kind: 'FindInstruction', instructionId }))?.status;

test('an overruled RELEASE is not sent again, and is DECLINED once the money is returned', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ REFUND: 'LOST' });
  const { escrowId, release } = await overruled(kit);
  const releases = kit.kindsSent().filter((kind) => kind === 'RELEASE').length;
  await kit.pass(2 * longestRetryMs);
  await kit.restart();
  await kit.pass(longestRetryMs);
  kit.provider.treat({ REFUND: 'CONFIRMED' });
  await kit.pass(longestRetryMs);
  assert.equal(kit.kindsSent().filter((kind) => kind === 'RELEASE').length, releases);
  await kit.assertSettled(escrowId, 'REFUNDED');
  assert.equal(await statusOf(kit, release), 'DECLINED');
});

test('an overruled RELEASE needs review again if the provider declines the return', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ REFUND: 'DECLINED' });
  const { escrowId, release } = await overruled(kit);
  kit.provider.report();
  await kit.pass(firstRetryMs);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  assert.equal(await statusOf(kit, release), 'UNKNOWN');
  assert.equal(kit.kindsSent().at(-1), 'REFUND', 'nothing is given before a person decides');
  kit.provider.treat({ RELEASE: 'CONFIRMED' });
  await kit.decide(escrowId, 'LOOK_AGAIN');
  await kit.pass(firstRetryMs);
  assert.equal(await kit.stateOf(escrowId), 'RELEASED');
  assert.equal(await statusOf(kit, release), 'CONFIRMED');
});

test('an order in review sends no instruction that was prepared before', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.report(reports(1n));
  await askedAbout(kit);
  const release = kit.resolve('RELEASE', escrowId);
  await kit.pass(slowMs);
  assert.equal((await release).status, 'PREPARED');
  assert.deepEqual(kit.kindsSent(), ['FREEZE']);
  assert.ok((await kit.case(escrowId)).review !== undefined);
});

test('a failing instruction is repeated at growing intervals, even if look-ups succeed', async (t) => {
  const kit = await openKit(t);
  await unanswered(kit, 'RELEASE');
  await kit.pass(10 * longestRetryMs);
  const releases = kit.kindsSent().filter((kind) => kind === 'RELEASE').length;
  assert.ok(releases <= 16, `${releases} attempts`);
  assert.ok(releases >= 10, `${releases} attempts`);
});

test('an order needs review after too many attempts without a response', async (t) => {
  const { kit, escrowId } = await frozen(t, { attemptsMax: 5 });
  kit.provider.treat({ RELEASE: 'ANSWER_LOST' });
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.resolve('RELEASE', escrowId);
  await kit.pass(10 * longestRetryMs);
  const { review, open } = await kit.case(escrowId);
  assert.match(review ?? '', /5 attempts in a row/);
  assert.equal(open.length, 1);
  const { length: asked } = kit.provider.lookUps;
  await kit.pass(10 * longestRetryMs);
  assert.equal(kit.provider.lookUps.length, asked);
  kit.provider.treatLookUps({ kind: 'NONE' });
  await kit.decide(escrowId, 'LOOK_AGAIN');
  await kit.pass(1_000);
  assert.equal(await kit.stateOf(escrowId), 'RELEASED');
});

for (const [kind, state, sent] of [
  ['FREEZE', 'FROZEN', 1],
  ['RELEASE', 'RELEASED', 2],
  ['REFUND', 'REFUNDED', 2],
] as const) {
  test(`a look-up finds a ${kind} whose response was lost`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind, 'ANSWER_LOST');
    await kit.pass(2 * firstRetryMs);
    assert.equal(await kit.stateOf(escrowId), state);
    assert.equal(kit.kindsSent().length, sent);
  });

  test(`a ${kind} that never arrived is sent again under the same id`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind);
    kit.provider.treat({ [kind]: 'CONFIRMED' });
    await kit.pass(2 * firstRetryMs);
    assert.equal(await kit.stateOf(escrowId), state);
    const [first, second, ...more] = kit.provider.instructions.slice(sent - 1);
    assert.equal(first?.instructionId, second?.instructionId);
    assert.deepEqual([first?.kind, more], [kind, []]);
  });
}

test('the response ABSENT to an instruction counts as none', async (t) => {
  const kit = await openKit(t);
  kit.provider.report(() => ({ status: 'ABSENT' }));
  const { order, open } = await kit.case(await kit.open());
  assert.deepEqual([order.state, open.length], ['UNPAID', 1]);
});

test('a call does not send an instruction again that was sent and is not answered', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.treat({ RELEASE: 'ANSWER_LOST' });
  await kit.carryOut(await kit.resolve('RELEASE', escrowId));
  assert.deepEqual(kit.kindsSent(), ['FREEZE', 'RELEASE']);
});

test('the next process resumes what an earlier one left open', async (t) => {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER });
  const escrowId = await unanswered(kit, 'FREEZE', 'ANSWER_LOST');
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.pass(4 * longestRetryMs);
  kit.provider.treatLookUps({ kind: 'NONE' });
  await kit.restart();
  await quiet();
  assert.equal(await kit.stateOf(escrowId), 'FROZEN', 'without waiting for the longest interval');
});

test('a clock that is set back does not delay recovery', async (t) => {
  const { kit, escrowId } = await frozen(t);
  kit.provider.lapse(escrowId);
  kit.clock.setWall(kit.clock.nowMs() - 30 * 24 * 60 * 60 * 1_000);
  await kit.pass(quietLookUpMs);
  assert.equal(await kit.stateOf(escrowId), 'CLOSED');
});

test('a stop does not wait for a response: the order stays open for the next process', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ FREEZE: 'SILENT' });
  const opening = kit.open();
  await quiet();
  await kit.restart();
  const escrowId = await opening;
  const { open } = await kit.case(escrowId);
  assert.equal(open.length, 1);
});
