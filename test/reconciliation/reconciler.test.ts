import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';
import { unavailable } from '../../src/domain/reason.ts';
import type { Decision } from '../../src/domain/resolution.ts';
import { held, type Kit, kitLimits, openKit, quiet, silence } from './kit.ts';

const { answerTimeoutMs, freezeDeadlineMs, quietLookUpMs, firstRetryMs, longestRetryMs, pollMs } = kitLimits;

const lost = () => Promise.reject(new Error('The connection broke.'));

const kindsTold = ({ institution }: Kit) => institution.told.map(({ kind }) => kind);

async function stateOf(kit: Kit, escrowId: string): Promise<string> {
  return (await kit.case(escrowId)).order.state;
}

/** A person's decision about an order; an instruction that it takes bears the name. */
async function decide(kit: Kit, escrowId: string, decision: Decision, instructionId?: string): Promise<void> {
  const nowMs = kit.clock.nowMs();
  const name = instructionId ?? `decision-${nowMs}`;
  await kit.execute({ kind: 'Decide', escrowId, decision, instructionId: name, nowMs });
}

/** An order whose FREEZE was answered HELD. */
async function frozen(kit: Kit): Promise<string> {
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  kit.institution.say(async (order) => held(order));
  return escrowId;
}

/** An order whose RELEASE or REFUND was not answered. */
async function unanswered(kit: Kit, kind: 'RELEASE' | 'REFUND'): Promise<string> {
  const escrowId = await frozen(kit);
  kit.institution.answer(lost);
  assert.equal((await kit.resolve(kind, escrowId)).status, 'UNKNOWN');
  return escrowId;
}

/** Has the institution asked about a quiet order; it answers when the test does. */
async function askedAbout(kit: Kit): Promise<PromiseWithResolvers<PaymentSnapshot>> {
  const answer = Promise.withResolvers<PaymentSnapshot>();
  kit.institution.say(() => answer.promise);
  await kit.pass(quietLookUpMs);
  return answer;
}

/** An order whose FREEZE was not answered. */
async function pending(kit: Kit): Promise<string> {
  kit.institution.answer(lost);
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'UNPAID');
  return escrowId;
}

test('while what is due cannot be read, that is logged once, and once when it is over', async (t) => {
  const kit = await openKit(t);
  const lines = () => kit.logged.map(({ level, msg }) => [level, msg]);
  for (const [error, level] of [
    [unavailable('The store cannot be written or read now.'), 40],
    [new TypeError('unforeseen'), 50],
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
  const seen: unknown[] = [];
  kit.institution.answer(async (instruction) => {
    const { instructionId } = instruction;
    seen.push((await kit.execute({ kind: 'FindInstruction', instructionId }))?.status);
    return held(instruction);
  });
  const { order, holdId } = await kit.case(await kit.open());
  assert.deepEqual(seen, ['SENT']);
  const [told] = kit.institution.told;
  assert.equal(told?.holdId, holdId);
  assert.equal(told.instructionId, holdId);
  assert.equal(told.escrowId, order.escrowId);
  assert.equal(told.currency, 'CNY');
});

test('what is not answered in time is pending, is asked about, and is settled by what is found', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(() => silence);
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
  kit.institution.say(async (asked) => held(asked));
  await kit.pass(2 * firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  assert.deepEqual(kindsTold(kit), ['FREEZE'], 'it exists, so it is not given again');
});

test('an instruction that never arrived is given again, under the same id', async (t) => {
  const kit = await openKit(t);
  const escrowId = await pending(kit);
  kit.institution.answer(async (instruction) => held(instruction));
  await kit.pass(2 * firstRetryMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  assert.equal(new Set(kit.institution.told.map(({ instructionId }) => instructionId)).size, 1);
  assert.equal(kit.institution.told.length, 2);
});

test('an institution that stays silent is asked at growing intervals, up to the longest', async (t) => {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER });
  await pending(kit);
  const askedAtMs: number[] = [];
  kit.institution.say(() => {
    askedAtMs.push(kit.clock.nowMs());
    return lost();
  });
  await kit.pass(5 * longestRetryMs);
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
  kit.institution.answer(({ kind }) => (kind === 'CANCEL' ? Promise.resolve({ standing: 'VOID' }) : lost()));
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
  const escrowId = await pending(kit);
  await kit.pass(freezeDeadlineMs + longestRetryMs);
  assert.ok(kindsTold(kit).includes('CANCEL'));
  kit.institution.say(async (order) => held(order));
  kit.institution.answer(async (instruction) => held(instruction, 'RETURNED'));
  await kit.pass(2 * longestRetryMs);
  const { order, open } = await kit.case(escrowId);
  assert.deepEqual(
    order.history.map(({ state }) => state),
    ['UNPAID', 'CLOSED'],
  );
  assert.deepEqual(open, []);
});

test('a hold that comes after the order was CLOSED is compensated by a refund', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(async () => ({ standing: 'VOID' }));
  const escrowId = await kit.open();
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
  kit.institution.say(async (order) => held(order));
  kit.institution.answer(async (instruction) => held(instruction, 'RETURNED'));
  await kit.pass(quietLookUpMs + 1_000);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'REFUND']);
  const { order, open, review } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
  assert.equal(review, undefined);
});

test('a compensation that the institution declines needs a person, who may try anew', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(async () => ({ standing: 'VOID' }));
  const escrowId = await kit.open();
  kit.institution.say(async (order) => held(order));
  kit.institution.answer(async (instruction) => held(instruction));
  await kit.pass(3 * quietLookUpMs);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'REFUND']);
  assert.match((await kit.case(escrowId)).review ?? '', /declines to give back/);
  await decide(kit, escrowId, 'RETURN', 'anew');
  kit.institution.answer(async (instruction) => held(instruction, 'RETURNED'));
  await kit.pass(1_000);
  assert.equal(kit.institution.told.at(-1)?.instructionId, 'anew');
  assert.deepEqual((await kit.case(escrowId)).open, []);
});

for (const [what, differs] of [
  ['another amount', (hold: PaymentSnapshot) => ({ ...hold, amount: (hold.amount ?? 0n) - 1n })],
  ['another currency', (hold: PaymentSnapshot) => ({ ...hold, currency: 'EUR' })],
] as const) {
  test(`${what} stops an order for a person, who may have it asked about again`, async (t) => {
    const kit = await openKit(t);
    kit.institution.answer(async (instruction) => differs(held(instruction)));
    const escrowId = await kit.open();
    const { order, review } = await kit.case(escrowId);
    assert.equal(order.state, 'UNPAID');
    assert.match(review ?? '', /128000000 CNY.*HELD/);
    await kit.pass(freezeDeadlineMs + quietLookUpMs);
    assert.deepEqual(kindsTold(kit), ['FREEZE']);
    assert.equal(kit.institution.asked.length, 0, 'nobody is asked while a person decides');
    assert.ok(kit.logged.some(({ msg, level }) => level === 50 && /needs a person/.test(msg)));

    kit.institution.say(async (asked) => differs(held(asked)));
    await decide(kit, escrowId, 'LOOK_AGAIN', 'd-1');
    await kit.pass(1_000);
    assert.ok((await kit.case(escrowId)).review !== undefined, 'it differs still');
    kit.institution.say(async (asked) => held(asked));
    await decide(kit, escrowId, 'LOOK_AGAIN', 'd-2');
    await kit.pass(1_000);
    assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  });
}

/** An order that the institution holds one unit of. */
async function short(kit: Kit): Promise<string> {
  kit.institution.answer(async (instruction) => ({ ...held(instruction), amount: 1n }));
  const escrowId = await kit.open();
  kit.institution.say(async (asked) => ({ ...held(asked), amount: 1n }));
  return escrowId;
}

test('a person may accept what differs, and that is what is paid out', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  kit.institution.answer(async (instruction) => held(instruction, 'PAID_OUT'));
  assert.equal((await kit.resolve('RELEASE', escrowId)).status, 'CONFIRMED');
  assert.equal(kit.institution.told.at(-1)?.amount, 1n);
});

test('what differs from what was accepted stops the order again', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  kit.institution.answer(async (instruction) => ({ ...held(instruction, 'PAID_OUT'), amount: 2n }));
  await kit.resolve('RELEASE', escrowId);
  const { order, review } = await kit.case(escrowId);
  assert.equal(order.state, 'FROZEN');
  assert.match(review ?? '', /PAID_OUT 2 CNY/);
});

test('a person may have what differs given back: the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await short(kit);
  kit.institution.answer(async (instruction) => held(instruction, 'RETURNED'));
  await decide(kit, escrowId, 'RETURN');
  await kit.pass(1_000);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
});

test('what differs and is not given back stops the order again, for another instruction', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.institution.say(async (asked) => ({ ...held(asked), amount: 1n }));
  kit.institution.answer(async (instruction) => ({ ...held(instruction), amount: 1n }));
  await kit.pass(quietLookUpMs + 1_000);
  for (const refunds of [1, 2]) {
    await decide(kit, escrowId, 'RETURN');
    await kit.pass(1_000);
    const { order, open, review } = await kit.case(escrowId);
    assert.equal(order.state, 'FROZEN');
    assert.match(review ?? '', /HELD 1 CNY/);
    assert.deepEqual(open, [], 'the instruction that was declined has come to its end');
    const names = kit.institution.told.filter(({ kind }) => kind === 'REFUND');
    assert.equal(new Set(names.map(({ instructionId }) => instructionId)).size, refunds);
  }
});

for (const [state, standing, end] of [
  ['FROZEN', 'ABSENT', 'CLOSED'],
  ['FROZEN', 'VOID', 'CLOSED'],
  ['UNPAID', 'PAID_OUT', 'RELEASED'],
] as const) {
  test(`${state} and ${standing}, once accepted, is ${end}: the work can be sold again`, async (t) => {
    const kit = await openKit(t);
    const escrowId = state === 'FROZEN' ? await frozen(kit) : await pending(kit);
    kit.institution.say(async (asked) => (standing === 'PAID_OUT' ? held(asked, standing) : { standing }));
    await kit.pass(quietLookUpMs + 1_000);
    assert.match((await kit.case(escrowId)).review ?? '', new RegExp(`${state}.*${standing}`));
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
  kit.institution.say(async () => ({ standing: 'ABSENT' }));
  await kit.pass(2 * firstRetryMs);
  await decide(kit, escrowId, 'ACCEPT');
  await kit.pass(1_000);
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'CLOSED');
  assert.deepEqual(open, []);
  assert.deepEqual(kindsTold(kit), ['FREEZE', 'RELEASE'], 'nothing more is given');
});

test('an order that waits for a person is given nothing that was prepared before', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  const answer = await askedAbout(kit);
  const release = kit.resolve('RELEASE', escrowId);
  await quiet();
  answer.resolve({ standing: 'HELD', amount: 1n, currency: 'CNY' });
  assert.equal((await release).status, 'PREPARED');
  assert.deepEqual(kindsTold(kit), ['FREEZE']);
  assert.ok((await kit.case(escrowId)).review !== undefined);
});

test('an instruction that is on disk and cannot be given now is not denied, and given later', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  const answer = await askedAbout(kit);
  const release = kit.resolve('RELEASE', escrowId);
  await quiet();
  const endFailing = kit.fail('NoteSent', unavailable('Disk full.'));
  kit.institution.say(async (order) => held(order));
  answer.resolve({ standing: 'HELD', amount: 128_000_000n, currency: 'CNY' });
  assert.equal((await release).status, 'PREPARED');
  endFailing();
  kit.institution.answer(async (instruction) => held(instruction, 'PAID_OUT'));
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

test('a notification that comes while the institution is asked has it asked again', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  const { holdId } = await kit.case(escrowId);
  const answer = await askedAbout(kit);
  await kit.execute({ kind: 'TakeNotification', eventId: 'event', holdId, nowMs: kit.clock.nowMs() });
  const asked = kit.institution.asked.at(-1);
  assert.ok(asked);
  kit.institution.say(async (order) => held(order, 'LAPSED'));
  answer.resolve(held(asked));
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('what is held for an order that is CLOSED may be accepted, and is left alone then', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(async () => ({ standing: 'VOID' }));
  const escrowId = await kit.open();
  kit.institution.say(async (order) => held(order));
  kit.institution.answer(async (instruction) => held(instruction));
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

test('an institution that never answers needs a person in the end', async (t) => {
  const kit = await openKit(t, { attemptsMax: 5 });
  const escrowId = await frozen(kit);
  kit.institution.answer(lost);
  kit.institution.say(lost);
  await kit.resolve('RELEASE', escrowId);
  await kit.pass(10 * longestRetryMs);
  const { review, open } = await kit.case(escrowId);
  assert.match(review ?? '', /5 attempts in a row/);
  assert.equal(open.length, 1);
  const { length: asked } = kit.institution.asked;
  await kit.pass(10 * longestRetryMs);
  assert.equal(kit.institution.asked.length, asked);
  kit.institution.say(async (order) => held(order, 'PAID_OUT'));
  await decide(kit, escrowId, 'LOOK_AGAIN');
  await kit.pass(1_000);
  assert.equal(await stateOf(kit, escrowId), 'RELEASED');
});

test('an institution that contradicts what it confirmed stops the order for a person', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.institution.say(async () => ({ standing: 'ABSENT' }));
  await kit.pass(quietLookUpMs + 1_000);
  const { order, review } = await kit.case(escrowId);
  assert.equal(order.state, 'FROZEN');
  assert.match(review ?? '', /FROZEN.*ABSENT/);
});

for (const [kind, standing, state] of [
  ['RELEASE', 'PAID_OUT', 'RELEASED'],
  ['REFUND', 'RETURNED', 'REFUNDED'],
] as const) {
  test(`a ${kind} whose answer is lost is found to be carried out`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind);
    kit.institution.say(async (order) => held(order, standing));
    await kit.pass(2 * firstRetryMs);
    assert.equal(await stateOf(kit, escrowId), state);
    assert.equal(kindsTold(kit).length, 2);
  });

  test(`a ${kind} that never arrived is given again, under the same id`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await unanswered(kit, kind);
    kit.institution.answer(async (instruction) => held(instruction, standing));
    await kit.pass(2 * firstRetryMs);
    assert.equal(await stateOf(kit, escrowId), state);
    const [, first, second] = kit.institution.told;
    assert.equal(first?.instructionId, second?.instructionId);
  });

  test(`a ${kind} that is declined leaves the order FROZEN, and it may be tried anew`, async (t) => {
    const kit = await openKit(t);
    const escrowId = await frozen(kit);
    kit.institution.answer(async (instruction) => held(instruction));
    assert.equal((await kit.resolve(kind, escrowId)).status, 'DECLINED');
    assert.equal(await stateOf(kit, escrowId), 'FROZEN');
    kit.institution.answer(async (instruction) => held(instruction, standing));
    assert.equal((await kit.resolve(kind, escrowId)).status, 'CONFIRMED');
    assert.equal(await stateOf(kit, escrowId), state);
  });
}

test('a release that met a lapsed hold is declined, and the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.institution.answer(async (instruction) => held(instruction, 'LAPSED'));
  const operation = await kit.resolve('RELEASE', escrowId);
  assert.equal(operation.status, 'DECLINED');
  assert.equal(operation.order.state, 'CLOSED');
});

test('a hold that lapses without a word is noticed, and the order is CLOSED', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  await kit.pass(2 * quietLookUpMs);
  assert.equal(await stateOf(kit, escrowId), 'FROZEN');
  kit.institution.say(async (order) => held(order, 'LAPSED'));
  await kit.pass(quietLookUpMs + 1_000);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('an answer of ABSENT to an instruction is none', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(async () => ({ standing: 'ABSENT' }));
  const escrowId = await kit.open();
  const { order, open } = await kit.case(escrowId);
  assert.equal(order.state, 'UNPAID');
  assert.equal(open.length, 1);
});

test('what an earlier process left open is looked after when the next one starts', async (t) => {
  const kit = await openKit(t, { freezeDeadlineMs: Number.MAX_SAFE_INTEGER });
  const escrowId = await pending(kit);
  kit.institution.say(lost);
  await kit.pass(4 * longestRetryMs);
  kit.institution.say(async (order) => held(order));
  await kit.restart();
  await quiet();
  assert.equal(await stateOf(kit, escrowId), 'FROZEN', 'without waiting for the longest interval');
});

test('a clock that is set back does not put recovery off', async (t) => {
  const kit = await openKit(t);
  const escrowId = await frozen(kit);
  kit.institution.say(async (order) => held(order, 'LAPSED'));
  kit.clock.setWall(kit.clock.nowMs() - 30 * 24 * 60 * 60 * 1_000);
  await kit.pass(quietLookUpMs);
  assert.equal(await stateOf(kit, escrowId), 'CLOSED');
});

test('closing waits for no answer: the order stays open for the next process', async (t) => {
  const kit = await openKit(t);
  kit.institution.answer(() => silence);
  const opening = kit.open();
  await quiet();
  await kit.restart();
  const escrowId = await opening;
  const { open } = await kit.case(escrowId);
  assert.equal(open.length, 1);
});
