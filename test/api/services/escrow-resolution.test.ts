import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { escrowSequenceMax } from '../../../src/domain/escrow-id.ts';
import { doorNames, doorsOf, type EscrowDoors, startDoors } from '../../support/escrow-apis.ts';
import { openTestProvider } from '../../support/simulator.ts';

const paidOut = {
  kind: 'RELEASE',
  verb: 'release',
  other: 'refund',
  state: 'RELEASED',
  transfers: 1,
} as const;
const paidBack = {
  kind: 'REFUND',
  verb: 'refund',
  other: 'release',
  state: 'REFUNDED',
  transfers: 0,
} as const;

/** A service with a FROZEN order for each test, through one door. */
async function startFrozen(
  doors: EscrowDoors,
  name: (typeof doorNames)[number],
  parties: object = {},
): Promise<{ escrowId: string; filingNo: string }> {
  const filingNo = await doors.file();
  const { escrowId, state, message } = await doors.doors[name].open(filingNo, parties);
  assert.equal(state, 'FROZEN', message);
  return { escrowId, filingNo };
}

for (const name of doorNames) {
  for (const { kind, verb, other, state, transfers } of [paidOut, paidBack]) {
    test(`${name}: a ${verb} ends as ${state}, with its history, and stays so`, async (t) => {
      const provider = openTestProvider(t);
      const all = await startDoors(t, { provider });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      const done = await door[verb](escrowId);
      assert.equal(done.state, state, done.message);
      assert.deepEqual(done.history, ['UNPAID', 'FROZEN', state]);
      assert.deepEqual(await door.get(escrowId), done);
      assert.equal(await all.transfersOf(filingNo), transfers);
      assert.equal((await door.open(filingNo)).state, 'FROZEN', 'the artwork can be sold again');
    });

    test(`${name}: a second ${verb}, and a ${other} after it, are rejected and pay nothing`, async (t) => {
      const provider = openTestProvider(t);
      const all = await startDoors(t, { provider });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      await door[verb](escrowId);
      for (const again of [verb, other, verb] as const) {
        const { code, message } = await door[again](escrowId);
        assert.equal(code, 'ESCROW_STATE_CONFLICT', message);
        assert.match(message, new RegExp(`^${escrowId} is ${state}; only (a|an UNPAID or) FROZEN order`));
      }
      assert.deepEqual(
        provider.instructions.map((instruction) => instruction.kind),
        ['FREEZE', kind],
      );
      assert.equal((await door.get(escrowId)).state, state);
      assert.equal(await all.transfersOf(filingNo), transfers);
    });

    test(`${name}: a ${verb} under way is not sent twice; a ${other} meanwhile is rejected`, async (t) => {
      const provider = openTestProvider(t, { [kind]: 'SILENT' });
      const all = await startDoors(t, { provider, limits: { answerTimeoutMs: 20 } });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      for (const _ of ['first', 'second', 'third']) {
        const pending = await door[verb](escrowId);
        assert.equal(pending.code, 'PAYMENT_PENDING', pending.message);
        assert.equal(pending.escrowId, escrowId);
        assert.match(pending.retryAfter ?? '', /^[1-9]\d*$/);
      }
      const conflict = await door[other](escrowId);
      assert.equal(conflict.code, 'ESCROW_STATE_CONFLICT');
      assert.match(conflict.message, new RegExp(`${kind} of ${escrowId} is under way`));
      assert.equal((await door.get(escrowId)).state, 'FROZEN');
      const given = provider.instructions.filter((instruction) => instruction.kind !== 'FREEZE');
      assert.equal(new Set(given.map(({ instructionId }) => instructionId)).size, 1);
      assert.ok(given.every((instruction) => instruction.kind === kind));
      assert.deepEqual([provider.carriedOut(kind), await all.transfersOf(filingNo)], [0, 0]);
    });

    test(`${name}: twenty of a ${verb} at once pay once`, async (t) => {
      const provider = openTestProvider(t, { [kind]: 'KEPT_BACK' });
      const all = await startDoors(t, { provider });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      const calls = Array.from({ length: 20 }, () => door[verb](escrowId));
      await provider.instructed(kind);
      await provider.answer();
      const outcomes = await Promise.all(calls);
      const done = outcomes.filter((outcome) => outcome.code === undefined);
      assert.ok(done.length >= 1);
      for (const outcome of done) assert.equal(outcome.state, state);
      for (const { code } of outcomes)
        assert.ok(code === undefined || code === 'ESCROW_STATE_CONFLICT', String(code));
      assert.deepEqual([provider.carriedOut(kind), await all.transfersOf(filingNo)], [1, transfers]);
      assert.equal(provider.instructions.filter((instruction) => instruction.kind === kind).length, 1);
    });

    test(`${name}: a ${verb} that is declined leaves the order FROZEN and says so`, async (t) => {
      const provider = openTestProvider(t, { [kind]: 'DECLINED' });
      const all = await startDoors(t, { provider });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      const declined = await door[verb](escrowId);
      assert.equal(declined.code, 'PAYMENT_DECLINED');
      assert.match(
        declined.message,
        new RegExp(`declined the ${kind} of ${escrowId}\\. The payment provider refused it\\.$`),
      );
      const now = await door.get(escrowId);
      assert.deepEqual(now.history, ['UNPAID', 'FROZEN']);
      assert.equal(await all.transfersOf(filingNo), 0);
      provider.treat({ [kind]: 'CONFIRMED' });
      assert.equal((await door[verb](escrowId)).state, state, 'it can be asked again');
    });

    test(`${name}: a ${verb} of money that lapsed is declined, and the order is CLOSED`, async (t) => {
      const provider = openTestProvider(t);
      const all = await startDoors(t, { provider });
      const door = all.doors[name];
      const { escrowId, filingNo } = await startFrozen(all, name);
      provider.lapse(escrowId);
      const declined = await door[verb](escrowId);
      assert.equal(declined.code, 'PAYMENT_DECLINED');
      assert.match(declined.message, new RegExp(`${escrowId}\\.$`));
      assert.deepEqual((await door.get(escrowId)).history, ['UNPAID', 'FROZEN', 'CLOSED']);
      assert.equal(await all.transfersOf(filingNo), 0);
    });
  }

  test(`${name}: a hold that is declined closes the order, and the message says so`, async (t) => {
    const provider = openTestProvider(t, { FREEZE: 'DECLINED' });
    const all = await startDoors(t, { provider });
    const door = all.doors[name];
    const filingNo = await all.file();
    const { code, message, escrowId } = await door.open(filingNo);
    assert.equal(code, 'PAYMENT_DECLINED');
    assert.match(
      message,
      new RegExp(`declined the FREEZE of ${escrowId}\\. The payment provider refused it\\.$`),
    );
    assert.deepEqual((await door.get(escrowId)).history, ['UNPAID', 'CLOSED']);
    for (const verb of ['release', 'refund'] as const) {
      assert.equal((await door[verb](escrowId)).code, 'ESCROW_STATE_CONFLICT');
    }
    provider.treat({ FREEZE: 'CONFIRMED' });
    assert.equal((await door.open(filingNo)).state, 'FROZEN');
  });

  test(`${name}: what is no order is not found`, async (t) => {
    const { doors } = await startDoors(t);
    for (const escrowId of ['ES-2026-0000', 'es-2026-0000', 'x', 'AS-2026-000001', '-']) {
      for (const verb of ['get', 'release', 'refund'] as const) {
        assert.equal((await doors[name][verb](escrowId)).code, 'ESCROW_NOT_FOUND', `${verb} ${escrowId}`);
      }
    }
  });
}

for (const name of doorNames) {
  test(`${name}: an order that waits for a person is neither released nor refunded`, async (t) => {
    const all = await startDoors(t, { provider: openTestProvider(t) });
    const { execute } = all.service;
    const { escrowId } = await startFrozen(all, name);
    const found = await execute({ kind: 'FindCase', escrowId });
    assert.ok(found);
    const review = {
      why: 'It differs.',
      found: { status: 'HELD', amount: 1n, currency: 'CNY' },
    } as const;
    const { notificationCount } = found;
    const stop = { escrowId, from: 'FROZEN', to: 'FROZEN', ended: [], prepared: undefined } as const;
    const unknown = { holdExpiresAtMs: undefined, nextAction: undefined, afterPayout: undefined };
    const rest = {
      ...unknown,
      reference: undefined,
      resetsAttempts: true,
      notificationCount,
      lookUpAtMs: undefined,
    };
    const at = { atMs: Date.now(), timestamp: '2026-11-21T12:00:00+00:00' };
    assert.ok(await execute({ kind: 'UpdateOrder', update: { ...stop, ...rest, review }, at }));
    for (const verb of ['release', 'refund'] as const) {
      const { code, message } = await all.doors[name][verb](escrowId);
      assert.equal(code, 'ESCROW_STATE_CONFLICT');
      assert.match(message, /decision of the operator/);
    }
    assert.equal((await all.doors[name].get(escrowId)).state, 'FROZEN');
  });

  test(`${name}: an artwork that is not filed cannot be sold`, async (t) => {
    const all = await startDoors(t);
    assert.equal((await all.doors[name].open('AS-2026-999999')).code, 'FILING_NOT_FOUND');
  });

  test(`${name}: when all escrow ids of the year are used, no order is opened`, async (t) => {
    const provider = openTestProvider(t);
    const all = await startDoors(t, { provider });
    const filingNo = await all.file();
    const raw = new Sqlite(join(all.service.dataDir, 'artseal.db'));
    t.after(() => raw.close());
    const year = new Date().getUTCFullYear();
    raw
      .prepare("INSERT INTO number_sequence (kind, year, last) VALUES ('ESCROW', ?, ?)")
      .run(year, escrowSequenceMax);
    const { code, message } = await all.doors[name].open(filingNo);
    assert.equal(code, 'ESCROW_NUMBERS_EXHAUSTED', message);
    assert.equal(provider.instructions.length, 0);
  });
}

test('of concurrent orders for one artwork, through both APIs, one is opened and held', async (t) => {
  const provider = openTestProvider(t, { FREEZE: 'KEPT_BACK' });
  const { doors, file } = await startDoors(t, { provider });
  const filingNo = await file();
  const calls = Array.from({ length: 10 }, () => doorNames.map((name) => doors[name].open(filingNo))).flat();
  await provider.instructed('FREEZE');
  // Those that lose are answered while the one that won still waits.
  const first = await Promise.race(calls);
  assert.equal(first.code, 'ESCROW_ACTIVE');
  await provider.answer();
  const outcomes = await Promise.all(calls);
  assert.equal(outcomes.filter(({ state }) => state === 'FROZEN').length, 1);
  assert.equal(outcomes.filter(({ code }) => code === 'ESCROW_ACTIVE').length, calls.length - 1);
  assert.equal(provider.instructions.length, 1);
});

test('release and refund of one order at the same moment: one of the two happens', async (t) => {
  const provider = openTestProvider(t);
  const all = await startDoors(t, { provider });
  for (let round = 0; round < 5; round += 1) {
    const { escrowId, filingNo } = await startFrozen(all, 'REST');
    const before = provider.instructions.length;
    const outcomes = await Promise.all([
      all.doors.REST.release(escrowId),
      all.doors['typed RPC'].refund(escrowId),
      all.doors.REST.refund(escrowId),
    ]);
    const { state } = await all.doors.REST.get(escrowId);
    const done = outcomes.filter(({ code }) => code === undefined);
    assert.ok(done.length > 0 && done.every((outcome) => outcome.state === state));
    for (const { code } of outcomes)
      assert.ok([undefined, 'ESCROW_STATE_CONFLICT'].includes(code), String(code));
    assert.equal(provider.instructions.length, before + 1);
    assert.equal(await all.transfersOf(filingNo), state === 'RELEASED' ? 1 : 0);
  }
});

test("another platform's order is not found and stays as it is; an internal system reaches it", async (t) => {
  const provider = openTestProvider(t);
  const mine = await startDoors(t, { provider });
  const theirs = await doorsOf(mine.service, await mine.service.platform());
  const { escrowId, filingNo } = await startFrozen(mine, 'REST');
  const before = await mine.doors.REST.get(escrowId);
  const unknown = await theirs.doors.REST.get('ES-2026-0000');
  for (const verb of ['get', 'release', 'refund'] as const) {
    // Word for word what is said of an order that is not there.
    assert.deepEqual(await theirs.doors.REST[verb](escrowId), unknown, verb);
  }
  assert.deepEqual(await mine.doors.REST.get(escrowId), before);
  assert.equal(provider.instructions.length, 1);
  assert.equal((await mine.doors['typed RPC'].release(escrowId)).state, 'RELEASED');
  assert.equal(await mine.transfersOf(filingNo), 1);
});
