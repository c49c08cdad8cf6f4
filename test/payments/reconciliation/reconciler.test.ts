import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentSnapshot } from '../../../src/domain/payment.ts';
import { unavailable } from '../../../src/domain/reason.ts';
import type { Decision } from '../../../src/domain/resolution.ts';
import { tester } from '../../support/audit-log.ts';
import type { Report, Treatment } from '../../support/simulator.ts';
import { type Kit, kitLimits, openKit, quiet } from './kit.ts';

const { answerTimeoutMs, freezeDeadlineMs, quietLookUpMs, firstRetryMs, longestRetryMs, pollMs } = kitLimits;

/** How long the provider takes over a slow answer. */
const slowMs = 100;

/** A provider that does not count right. */
const reports =
  (amount: bigint): Report =>
  (_, truth) => ({ ...truth, amount });

const kindsTold = ({ provider }: Kit) => provider.instructions.map(({ kind }) => kind);

async function stateOf(kit: Kit, escrowId: string): Promise<string> {
  return (await kit.case(escrowId)).order.state;
}

/** A person's decision about an order; an instruction that it takes bears the name. */
async function decide(kit: Kit, escrowId: string, decision: Decision, instructionId?: string): Promise<void> {
  const nowMs = kit.clock.nowMs();
  const name = instructionId ?? `decision-${nowMs}`;
  await kit.execute({ kind: 'Decide', by: tester, escrowId, decision, instructionId: name, nowMs });
}

/** An order whose FREEZE was answered HELD. */
async function frozen(kit: Kit): Promise<string> {
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  return escrowId;
}

/** An order whose RELEASE or REFUND was not answered. */
async function unanswered(
  kit: Kit,
  kind: 'RELEASE' | 'REFUND',
  treatment: Treatment = 'LOST',
): Promise<string> {
  const escrowId = await frozen(kit);
  kit.provider.treat({ [kind]: treatment });
  assert.equal((await kit.resolve(kind, escrowId)).status, 'UNKNOWN');
  return escrowId;
}

/** Has the provider asked about a quiet order; after slowMs it answers what is true now. */
async function askedAbout(kit: Kit): Promise<void> {
  kit.provider.treatLookUps({ kind: 'SLOW', ms: slowMs });
  await kit.pass(quietLookUpMs);
  assert.equal(kit.provider.lookUps.length, 1);
  kit.provider.treatLookUps({ kind: 'NONE' });
}

/** An order that is CLOSED, since the provider denies the hold that it made. */
async function denied(kit: Kit): Promise<string> {
  kit.provider.report(() => ({ status: 'VOID' }));
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
  kit.provider.report();
  return escrowId;
}

/** An order whose FREEZE was not answered. */
async function pending(kit: Kit, treatment: Treatment = 'LOST'): Promise<string> {
  kit.provider.treat({ FREEZE: treatment });
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'UNPAID');
  return escrowId;
}

test('while what is due cannot be read, that is logged once, and once when it is over', async (t) => {
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

test('an instruction is on disk as SENT before it is given, under the id by which it is known', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ FREEZE: 'KEPT_BACK' });
  const opening = kit.open();
  await kit.provider.instructed('FREEZE');
  const [told = assert.fail()] = kit.provider.instructions;
  const { instructionId } = told;
  assert.equal((await kit.execute({ kind: 'FindInstruction', instructionId }))?.status, 'SENT');
  await kit.provider.answer();
  const { order, holdId } = await kit.case(await opening);
  assert.equal(told.holdId, holdId);
  assert.equal(told.instructionId, holdId);
  assert.equal(told.escrowId, order.escrowId);
  assert.equal(told.currency, 'CNY');
});

test('what is not answered in time is pending, is asked about, and is settled by what is found', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ FREEZE: { kind: 'SILENT', carriedOut: true } });
  const opening = kit.open();
  await quiet();
  kit.clock.advance(answerTimeoutMs);
  const escrowId = await opening;
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'UNPAID');
  assert.deepEqual(
    open.map(({ status }) => status),
    ['UNKNOWN'],
  );
  await kit.pass(2 * firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  assert.deepEqual(kindsTold(kit), ['FREEZE'], 'it exists, so it is not given again');
});

test('an instruction that never arrived is given again, under the same id', async (t) => {
  const kit = await openKit(t);
  const escrowId = await pending(kit);
  kit.provider.treat({ FREEZE: 'CONFIRMED' });
  await kit.pass(2 * firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  assert.equal(new Set(kit.provider.instructions.map(({ instructionId }) => instructionId)).size, 1);
  assert.equal(kit.provider.instructions.length, 2);
});

test('a provider that stays silent is asked at growing intervals, up to the longest', async (t) => {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER });
  await pending(kit);
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.pass(9 * longestRetryMs);
  const askedAtMs = kit.provider.lookUps.map(({ atMs }) => atMs);
  const gaps = askedAtMs.slice(1).map((atMs, index) => atMs - (askedAtMs[index] ?? 0));
  assert.ok(gaps.length > 6, `asked ${askedAtMs.length} times`);
  for (const [index, gap] of gaps.entries()) {
    assert.ok(gap >= (gaps[index - 1] ?? 0), `a shorter gap: ${gaps}`);
    assert.ok(gap <= longestRetryMs + pollMs, `too long a gap: ${gaps}`);
  }
});

test('an order that waited too long for its hold is cancelled, and CLOSED once that is confirmed', async (t) => {
  const kit = await openKit(t);
  const escrowId = await pending(kit);
  await kit.pass(freezeDeadlineMs - 10_000);
  assert.equal(await stateOf(kit, escrowId), 'UNPAID');
  await kit.pass(longestRetryMs + 20_000);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
  assert.equal(kindsTold(kit).at(-1), 'CANCEL');
  assert.equal(kindsTold(kit).filter((kind) => kind === 'CANCEL').length, 1);
});

test('an order is not CLOSED while its cancelling is not confirmed', async (t) => {
  const kit = await openKit(t);
  const escrowId = await pending(kit);
  kit.provider.treat({ CANCEL: 'LOST' });
  await kit.pass(freezeDeadlineMs + 3 * longestRetryMs);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'UNPAID');
  assert.deepEqual(
    open.map(({ kind, status }) => `${kind} ${status}`),
    ['FREEZE UNKNOWN', 'CANCEL UNKNOWN'],
  );
});

test('a hold that is found after the order was given up is given back, and freezes nothing', async (t) => {
  const kit = await openKit(t);
  const givenUpMs = freezeDeadlineMs + longestRetryMs;
  const escrowId = await pending(kit, { kind: 'LATE_REQUEST', ms: givenUpMs + 1 });
  kit.provider.treat({ CANCEL: 'LOST' });
  await kit.pass(givenUpMs);
  assert.ok(kindsTold(kit).includes('CANCEL'));
  assert.equal(kit.provider.statusOf(escrowId), 'ABSENT');
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

test('a hold that comes after the order was CLOSED is compensated by a refund', async (t) => {
  const kit = await openKit(t);
  const escrowId = await denied(kit);
  await kit.pass(quietLookUpMs + 1_000);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'REFUND']);
  const { order, open, review } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
  assert.equal(review, undefined);
});

test('a compensation that the provider declines needs a person, who may try anew', async (t) => {
  const kit = await openKit(t);
  const escrowId = await denied(kit);
  kit.provider.treat({ REFUND: 'DECLINED' });
  await kit.pass(3 * quietLookUpMs);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'REFUND']);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  await decide(kit, escrowId, 'RETURN', 'anew');
  kit.provider.treat({ REFUND: 'CONFIRMED' });
  await kit.pass(1_000);
  assert.equal(kit.provider.instructions.at(-1)?.instructionId, 'anew');
  assert.deepEqual((await kit.case(escrowId)).open, []);
});

for (const [what, differs] of [
  ['another amount', (payment: PaymentSnapshot) => ({ ...payment, amount: (payment.amount ?? 0n) - 1n })],
  ['another currency', (payment: PaymentSnapshot) => ({ ...payment, currency: 'EUR' })],
] as const) {
  test(`${what} stops an order for a person, who may have it asked about again`, async (t) => {
    const kit = await openKit(t);
    kit.provider.report((_, truth) => differs(truth));
    const escrowId = await kit.open();
    const { order, review } = await kit.case(escrowId);
    assert.equal(order.state, 'UNPAID');
    assert.match(review ?? '', /128000000 CNY.*HELD/);
    await kit.pass(freezeDeadlineMs + quietLookUpMs);
    assert.deepEqual(kindsTold(kit), ['FREEZE']);
    assert.equal(kit.provider.lookUps.length, 0, 'nobody is asked while a person decides');
    assert.ok(kit.logged.some(({ msg, level }) => level === 50 && /needs a person/.test(msg)));

    await decide(kit, escrowId, 'LOOK_AGAIN', 'd-1');
    await kit.pass(1_000);
    assert.ok((await kit.case(escrowId)).review !== undefined, 'it differs still');
    kit.provider.report();
    await decide(kit, escrowId, 'LOOK_AGAIN', 'd-2');
    await kit.pass(1_000);
    assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  });
}

/** An order that the provider holds one unit of, as it says. */
async function short(kit: Kit): Promise<string> {
  kit.provider.report(reports(1n));
  return kit.open();
}

test('a person may accept what differs, and that is what is paid out', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  assert.equal((await kit.resolve('RELEASE', escrowId)).status, 'CONFIRMED');
  assert.equal(kit.provider.instructions.at(-1)?.amount, 1n);
});

test('what differs from what was accepted stops the order again', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  kit.provider.report(reports(2n));
  await kit.resolve('RELEASE', escrowId);
  const { order, review } = await kit.case(escrowId);
  assert.equal(order.state, 'FROZEN');
  assert.match(review ?? '', /PAID_OUT 2 CNY/);
});

test('a person may have what differs given back: the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await decide(kit, escrowId, 'RETURN');
  await kit.pass(1_000);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
});

test('what differs and is not given back stops the order again, for another instruction', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.provider.report(reports(1n));
  kit.provider.treat({ REFUND: 'DECLINED' });
  await kit.pass(quietLookUpMs + 1_000);
  for (const refunds of [1, 2]) {
    await decide(kit, escrowId, 'RETURN');
    await kit.pass(1_000);
    const { order, open, review } = await kit.case(escrowId);
    assert.equal(order.state, 'FROZEN');
    assert.match(review ?? '', /HELD 1 CNY/);
    assert.deepEqual(open, [], 'the instruction that was declined has come to its end');
    const names = kit.provider.instructions.filter(({ kind }) => kind === 'REFUND');
    assert.equal(new Set(names.map(({ instructionId }) => instructionId)).size, refunds);
  }
});

for (const [state, status, end] of [
  ['FROZEN', 'ABSENT', 'CLOSED'],
  ['FROZEN', 'VOID', 'CLOSED'],
  ['UNPAID', 'PAID_OUT', 'RELEASED'],
] as const) {
  test(`${state} and ${status}, once accepted, is ${end}: the work can be sold again`, async (t) => {
    const kit = await openKit(t);
    const escrowId = state === 'FROZEN' ? await frozen(kit) : await pending(kit);
    kit.provider.report(({ amount, currency }) =>
      status === 'PAID_OUT' ? { status, amount, currency } : { status },
    );
    await kit.pass(quietLookUpMs + 1_000);
    assert.match((await kit.case(escrowId)).review ?? '', new RegExp(`${state}.*${status}`));
    await decide(kit, escrowId, 'ACCEPT');
    await kit.pass(2_000);
    const { order, review } = await kit.case(escrowId);
    assert.equal(order.state, end);
    assert.equal(review, undefined);
  });
}

test('an instruction without an answer ends with the order that a person lets go', async (t) => {
  const kit = await openKit(t);
  const escrowId = await unanswered(kit, 'RELEASE');
  kit.provider.report(() => ({ status: 'ABSENT' }));
  await kit.pass(2 * firstRetryMs);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'RELEASE'], 'nothing more is given');
});

/** An order over whose RELEASE, which was not answered, a person decided to have the money given back; the RELEASE. */
async function overruled(kit: Kit, treatment: Treatment): Promise<{ escrowId: string; release: string }> {
  const escrowId = await unanswered(kit, 'RELEASE', treatment);
  const release = (await kit.case(escrowId)).open[0]?.instructionId ?? '';
  kit.provider.report(reports(1n));
  await kit.pass(2 * firstRetryMs);
  await decide(kit, escrowId, 'RETURN');
  return { escrowId, release };
}

/** How far the instructions of an order have come, by their names. */
const statusOf = async (kit: Kit, instructionId: string) =>
  (await kit.execute({ kind: 'FindInstruction', instructionId }))?.status;

/** What became of an order whose RELEASE was overruled: its state, what is still open, and the RELEASE. */
async function endOf(kit: Kit, { escrowId, release }: { escrowId: string; release: string }) {
  const { order, open } = await kit.case(escrowId);
  return { state: order.state, open, release: await statusOf(kit, release) };
}

test('a RELEASE that is carried out although a person had the money given back is CONFIRMED', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ REFUND: 'LOST' });
  const lateMs = 3 * longestRetryMs;
  const { escrowId, release } = await overruled(kit, { kind: 'LATE_REQUEST', ms: lateMs });
  await kit.pass(longestRetryMs);
  assert.equal(await statusOf(kit, release), 'UNKNOWN', 'the provider has not said no');
  assert.equal((await kit.case(escrowId)).order.pending, 'REFUND');
  kit.provider.report();
  await kit.pass(lateMs);
  const end = await endOf(kit, { escrowId, release });
  assert.deepEqual(end, { state: 'RELEASED', open: [], release: 'CONFIRMED' });
});

test('a RELEASE that gives way is not given again, and is DECLINED once the money went back', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ REFUND: 'LOST' });
  const overruledOrder = await overruled(kit, 'LOST');
  const releases = kindsTold(kit).filter((kind) => kind === 'RELEASE').length;
  await kit.pass(2 * longestRetryMs);
  await kit.restart();
  await kit.pass(longestRetryMs);
  kit.provider.treat({ REFUND: 'CONFIRMED' });
  await kit.pass(longestRetryMs);
  assert.equal(kindsTold(kit).filter((kind) => kind === 'RELEASE').length, releases);
  const end = await endOf(kit, overruledOrder);
  assert.deepEqual(end, { state: 'REFUNDED', open: [], release: 'DECLINED' });
});

test('a RELEASE that was to give way needs a person again where the provider gives nothing back', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ REFUND: 'DECLINED' });
  const { escrowId, release } = await overruled(kit, 'LOST');
  kit.provider.report();
  await kit.pass(firstRetryMs);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  assert.equal(await statusOf(kit, release), 'UNKNOWN');
  assert.equal(kindsTold(kit).at(-1), 'REFUND', 'nothing is given before a person decides');
  kit.provider.treat({ RELEASE: 'CONFIRMED' });
  await decide(kit, escrowId, 'LOOK_AGAIN');
  await kit.pass(firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'RELEASED');
  assert.equal(await statusOf(kit, release), 'CONFIRMED');
});

test('an order that waits for a person is given nothing that was prepared before', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.provider.report(reports(1n));
  await askedAbout(kit);
  const release = kit.resolve('RELEASE', escrowId);
  await kit.pass(slowMs);
  assert.equal((await release).status, 'PREPARED');
  assert.deepEqual(kindsTold(kit), ['FREEZE']);
  assert.ok((await kit.case(escrowId)).review !== undefined);
});

test('an instruction that is on disk and cannot be given now is not denied, and given later', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  await askedAbout(kit);
  const release = kit.resolve('RELEASE', escrowId);
  await quiet();
  const endFailing = kit.fail('RecordSent', unavailable('Disk full.'));
  await kit.pass(slowMs);
  assert.equal((await release).status, 'PREPARED');
  endFailing();
  await kit.pass(2 * firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'RELEASED');
});

test('an instruction that stays in vain is repeated at growing intervals, though questions are answered', async (t) => {
  const kit = await openKit(t);
  await unanswered(kit, 'RELEASE');
  await kit.pass(10 * longestRetryMs);
  const releases = kindsTold(kit).filter((kind) => kind === 'RELEASE').length;
  assert.ok(releases <= 16, `${releases} attempts`);
  assert.ok(releases >= 10, `${releases} attempts`);
});

test('a notification that comes while the provider is asked has it asked again', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  const { holdId } = await kit.case(escrowId);
  await askedAbout(kit);
  await kit.execute({
    kind: 'TakeNotification',
    eventId: 'event',
    about: { holdId },
    nowMs: kit.clock.nowMs(),
  });
  kit.provider.lapse(escrowId);
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('what is held for an order that is CLOSED may be accepted, and is left alone then', async (t) => {
  const kit = await openKit(t);
  const escrowId = await denied(kit);
  kit.provider.treat({ REFUND: 'DECLINED' });
  await kit.pass(quietLookUpMs + 1_000);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(2 * quietLookUpMs);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'REFUND']);
  const { order, review, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.equal(review, undefined);
  assert.deepEqual(open, []);
});

test('a provider that never answers needs a person in the end', async (t) => {
  const kit = await openKit(t, { attemptsMax: 5 });
  const escrowId = await frozen(kit);
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
  await decide(kit, escrowId, 'LOOK_AGAIN');
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'RELEASED');
});

test('a provider that contradicts what it confirmed stops the order for a person', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.provider.report(() => ({ status: 'ABSENT' }));
  await kit.pass(quietLookUpMs + 1_000);
  const { order, review } = await kit.case(escrowId);
  assert.equal(order.state, 'FROZEN');
  assert.match(review ?? '', /FROZEN.*ABSENT/);
});

for (const [kind, state] of [
  ['RELEASE', 'RELEASED'],
  ['REFUND', 'REFUNDED'],
] as const) {
  test(`a ${kind} whose answer is lost is found to be carried out`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind, 'ANSWER_LOST');
    await kit.pass(2 * firstRetryMs);
    assert.equal(await stateOf(kit, escrowId), state);
    assert.equal(kindsTold(kit).length, 2);
  });

  test(`a ${kind} that never arrived is given again, under the same id`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind);
    kit.provider.treat({ [kind]: 'CONFIRMED' });
    await kit.pass(2 * firstRetryMs);
    assert.equal(await stateOf(kit, escrowId), state);
    const [, first, second] = kit.provider.instructions;
    assert.equal(first?.instructionId, second?.instructionId);
  });

  test(`a ${kind} that is declined leaves the order FROZEN, and it may be tried anew`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await frozen(kit);
    kit.provider.treat({ [kind]: 'DECLINED' });
    assert.equal((await kit.resolve(kind, escrowId)).status, 'DECLINED');
    assert.equal(await stateOf(kit, escrowId), 'FROZEN');
    kit.provider.treat({ [kind]: 'CONFIRMED' });
    assert.equal((await kit.resolve(kind, escrowId)).status, 'CONFIRMED');
    assert.equal(await stateOf(kit, escrowId), state);
  });
}

test('a release that met a lapsed hold is declined, and the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.provider.lapse(escrowId);
  const operation = await kit.resolve('RELEASE', escrowId);
  assert.equal(operation.status, 'DECLINED');
  assert.equal(operation.order.state, 'CLOSED');
});

test('a hold that lapses without a word is noticed, and the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  await kit.pass(2 * quietLookUpMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  kit.provider.lapse(escrowId);
  await kit.pass(quietLookUpMs + 1_000);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('an answer of ABSENT to an instruction is none', async (t) => {
  const kit = await openKit(t);
  kit.provider.report(() => ({ status: 'ABSENT' }));
  const escrowId = await kit.open();
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'UNPAID');
  assert.equal(open.length, 1);
});

test('what an earlier process left open is looked after when the next one starts', async (t) => {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER });
  const escrowId = await pending(kit, 'ANSWER_LOST');
  kit.provider.treatLookUps({ kind: 'LOST' });
  await kit.pass(4 * longestRetryMs);
  kit.provider.treatLookUps({ kind: 'NONE' });
  await kit.restart();
  await quiet();
  assert.equal(await stateOf(kit, escrowId), 'FROZEN', 'without waiting for the longest interval');
});

test('a clock that is set back does not put recovery off', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.provider.lapse(escrowId);
  kit.clock.setWall(kit.clock.nowMs() - 30 * 24 * 60 * 60 * 1_000);
  await kit.pass(quietLookUpMs);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('closing waits for no answer: the order stays open for the next process', async (t) => {
  const kit = await openKit(t);
  kit.provider.treat({ FREEZE: 'SILENT' });
  const opening = kit.open();
  await quiet();
  await kit.restart();
  const escrowId = await opening;
  const { open } = await kit.case(escrowId);
  assert.equal(open.length, 1);
});
