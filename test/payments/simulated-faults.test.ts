import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { faultless, type InstructionFault } from '../../src/payments/simulated/faults.ts';
import { refusals } from '../../src/payments/simulated/rules.ts';
import { DuplicateKey, holdLastsMs } from '../../src/payments/simulated/run.ts';
import { partyPrefixes, scriptByParties } from '../../src/payments/simulated/script-by-parties.ts';
import { type FaultRates, seededScript } from '../../src/payments/simulated/seeded-script.ts';
import type { temporaryFolder } from '../support/temporary-folder.ts';
import {
  fate,
  faultsInTurn,
  instruction,
  never,
  openTestSimulator,
  order,
  type TestSimulator,
  turn,
} from './simulated-support.ts';

type Fate = 'RESOLVED' | 'REJECTED' | 'PENDING';
type Cleanup = Parameters<typeof temporaryFolder>[0];

describe('faults of instructions', () => {
  /** What becomes of a FREEZE at once, where the money is then, and 1000 ms later. */
  const cases: [InstructionFault, Fate, PaymentStatus, Fate, PaymentStatus][] = [
    [{ kind: 'NONE' }, 'RESOLVED', 'HELD', 'RESOLVED', 'HELD'],
    [{ kind: 'DECLINE' }, 'RESOLVED', 'VOID', 'RESOLVED', 'VOID'],
    [{ kind: 'REFUSE' }, 'RESOLVED', 'VOID', 'RESOLVED', 'VOID'],
    [{ kind: 'LOST_REQUEST' }, 'REJECTED', 'ABSENT', 'REJECTED', 'ABSENT'],
    [{ kind: 'LOST_ANSWER' }, 'REJECTED', 'HELD', 'REJECTED', 'HELD'],
    [{ kind: 'LATE_REQUEST', ms: 1_000 }, 'REJECTED', 'ABSENT', 'REJECTED', 'HELD'],
    [{ kind: 'SLOW', ms: 1_000 }, 'PENDING', 'HELD', 'RESOLVED', 'HELD'],
    [{ kind: 'SILENT', carriedOut: true }, 'PENDING', 'HELD', 'PENDING', 'HELD'],
    [{ kind: 'SILENT', carriedOut: false }, 'PENDING', 'ABSENT', 'PENDING', 'ABSENT'],
    [{ kind: 'SHORT_HOLD', ms: 1_000 }, 'RESOLVED', 'HELD', 'RESOLVED', 'LAPSED'],
    [{ kind: 'DUPLICATE_REQUEST', ms: 1_000 }, 'RESOLVED', 'HELD', 'RESOLVED', 'HELD'],
  ];
  for (const [fault, answerNow, now, answerLater, later] of cases) {
    test(JSON.stringify(fault), async (t) => {
      const { connection, pass } = openTestSimulator(t, { script: faultsInTurn(fault) });
      const answer = connection.instruct(instruction('FREEZE'), never);
      assert.equal(await fate(answer), answerNow);
      assert.equal((await connection.lookUp(order(), never)).status, now);
      await pass(1_000);
      assert.equal(await fate(answer), answerLater);
      assert.equal((await connection.lookUp(order(), never)).status, later);
    });
  }

  test('a request that is late or comes twice finds what was done since, and does nothing', async (t) => {
    for (const kind of ['LATE_REQUEST', 'DUPLICATE_REQUEST'] as const) {
      const script = faultsInTurn({ kind, ms: 1_000 });
      const { connection, pass, simulator } = openTestSimulator(t, { script });
      await connection.instruct(instruction('FREEZE'), never).catch(() => {});
      await connection.instruct(instruction('CANCEL'), never);
      const before = simulator.holds();
      await pass(1_000);
      assert.deepEqual(simulator.holds(), before);
      assert.equal(before[0]?.status, kind === 'LATE_REQUEST' ? 'VOID' : 'RETURNED');
    }
  });

  test('a refund that is refused leaves the money held, and another one may give it back', async (t) => {
    const { connection } = openTestSimulator(t, {
      script: faultsInTurn({ kind: 'NONE' }, { kind: 'REFUSE' }),
    });
    await connection.instruct(instruction('FREEZE'), never);
    assert.equal((await connection.instruct(instruction('REFUND'), never)).status, 'HELD');
    const another = instruction('REFUND', order(), '-again');
    assert.equal((await connection.instruct(another, never)).status, 'RETURNED');
  });

  test('an id that comes again is refused, where the script has it so: once it has arrived', async (t) => {
    const script = faultsInTurn({ kind: 'LOST_REQUEST' }, { kind: 'LOST_ANSWER' });
    const { connection } = openTestSimulator(t, { script: { ...script, repeats: 'REFUSED' } });
    const freeze = () => connection.instruct(instruction('FREEZE'), never);
    await assert.rejects(freeze(), /broke/);
    await assert.rejects(freeze(), /broke/);
    await assert.rejects(freeze(), DuplicateKey);
    assert.equal((await connection.lookUp(order(), never)).status, 'HELD');
    assert.equal((await connection.instruct(instruction('RELEASE'), never)).status, 'PAID_OUT');
  });

  test('a hold lasts as long as its course says, for ever too', async (t) => {
    const script = { ...faultless, course: () => ({ holdLastsMs: Number.POSITIVE_INFINITY }) };
    const { connection, clock } = openTestSimulator(t, { script });
    await connection.instruct(instruction('FREEZE'), never);
    clock.advance(10 * holdLastsMs);
    const { status, holdExpiresAtMs } = await connection.lookUp(order(), never);
    assert.deepEqual([status, holdExpiresAtMs], ['HELD', undefined]);
  });

  describe('kept back', () => {
    /** A FREEZE that is kept back until the test says how it is met. */
    function keptBack(t: Cleanup) {
      const { promise: until, ...verdict } = Promise.withResolvers<InstructionFault>();
      const open = openTestSimulator(t, { script: faultsInTurn({ kind: 'KEPT_BACK', until }) });
      const abort = new AbortController();
      const answer = open.connection.instruct(instruction('FREEZE'), abort.signal);
      const status = async () => (await open.connection.lookUp(order(), never)).status;
      return { ...open, ...verdict, abort, answer, status };
    }

    const thenMet: [InstructionFault, Fate, PaymentStatus][] = [
      [{ kind: 'NONE' }, 'RESOLVED', 'HELD'],
      [{ kind: 'DECLINE' }, 'RESOLVED', 'VOID'],
      [{ kind: 'LOST_ANSWER' }, 'REJECTED', 'HELD'],
      [{ kind: 'KEPT_BACK', until: Promise.resolve({ kind: 'NONE' }) }, 'RESOLVED', 'HELD'],
    ];
    for (const [fault, fateThen, statusThen] of thenMet) {
      test(`and then met by ${fault.kind}`, async (t) => {
        const { answer, resolve, status } = keptBack(t);
        assert.equal(await fate(answer), 'PENDING');
        assert.equal(await status(), 'ABSENT');
        resolve(fault);
        assert.equal(await fate(answer), fateThen);
        assert.equal(await status(), statusThen);
      });
    }

    test('and carried out although its call was given up', async (t) => {
      const { abort, answer, resolve, status } = keptBack(t);
      abort.abort(new Error('enough'));
      await assert.rejects(answer, /enough/);
      resolve({ kind: 'NONE' });
      await turn();
      assert.equal(await status(), 'HELD');
    });

    test('and never arrived, where the connection breaks instead', async (t) => {
      const { answer, reject, status } = keptBack(t);
      reject(new Error('torn'));
      await assert.rejects(answer, /torn/);
      assert.equal(await status(), 'ABSENT');
    });

    test('and forgotten by a kill', async (t) => {
      const { answer, resolve, status, simulator } = keptBack(t);
      simulator.reopen();
      resolve({ kind: 'NONE' });
      assert.equal(await fate(answer), 'PENDING');
      assert.equal(await status(), 'ABSENT');
    });
  });

  test('a script that throws, and an id of another instruction, change nothing', async (t) => {
    const { connection, simulator } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    const wrong = { ...instruction('RELEASE'), instructionId: instruction('FREEZE').instructionId };
    await assert.rejects(connection.instruct(wrong, never), /another instruction/);
    simulator.follow({
      ...faultless,
      instruction: () => {
        throw new Error('torn');
      },
    });
    await assert.rejects(connection.instruct(instruction('RELEASE'), never), /torn/);
    assert.equal(simulator.holds()[0]?.status, 'HELD');
  });
});

describe('faults of look-ups', () => {
  test('lost, silent and slow', async (t) => {
    const { connection, simulator, pass } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    simulator.follow({ ...faultless, lookUp: () => ({ kind: 'LOST' }) });
    await assert.rejects(connection.lookUp(order(), never), /broke/);
    simulator.follow({ ...faultless, lookUp: () => ({ kind: 'SILENT' }) });
    assert.equal(await fate(connection.lookUp(order(), never)), 'PENDING');
    simulator.follow({ ...faultless, lookUp: () => ({ kind: 'SLOW', ms: 500 }) });
    const slow = connection.lookUp(order(), never);
    simulator.lapse('hold-1');
    assert.equal(await fate(slow), 'PENDING');
    await pass(500);
    assert.equal((await slow).status, 'HELD', 'as it was when it was asked');
  });
});

describe('reports', () => {
  test('are told to instructions and look-ups in place of the truth, which the books keep', async (t) => {
    const { connection, simulator } = openTestSimulator(t);
    simulator.follow({ ...faultless, report: ({ escrowId }, truth) => ({ ...truth, reference: escrowId }) });
    const told = await connection.instruct(instruction('FREEZE'), never);
    assert.deepEqual([told.status, told.reference], ['HELD', order().escrowId]);
    assert.deepEqual(await connection.lookUp(order(), never), told);
    simulator.follow({ ...faultless, report: () => ({ status: 'ABSENT' }) });
    assert.deepEqual(await connection.lookUp(order(), never), { status: 'ABSENT' });
    assert.equal(simulator.holds()[0]?.status, 'HELD');
  });
});

describe('script by parties', () => {
  const open = (t: Cleanup): TestSimulator => openTestSimulator(t, { script: scriptByParties() });

  test('the buyer chooses for FREEZE, the seller for RELEASE and REFUND, and a CANCEL comes through', () => {
    const script = scriptByParties();
    const parties = { buyerId: `${partyPrefixes.slow}-1`, sellerId: `${partyPrefixes.lostAnswer}-1` };
    const faultOf = (kind: Parameters<typeof instruction>[0]) =>
      script.instruction(instruction(kind, order('1', parties)), 1).kind;
    assert.deepEqual(
      [faultOf('FREEZE'), faultOf('CANCEL'), faultOf('RELEASE'), faultOf('REFUND')],
      ['SLOW', 'NONE', 'LOST_ANSWER', 'LOST_ANSWER'],
    );
    assert.equal(script.instruction(instruction('FREEZE'), 1).kind, 'NONE');
    assert.equal(script.lookUp(order('1', parties)).kind, 'NONE');
  });

  test('sim-decline: no hold for the buyer, nothing paid to the seller, but money goes back', async (t) => {
    const { connection } = open(t);
    const buyer = order('1', { buyerId: 'sim-decline-1' });
    const declined = await connection.instruct(instruction('FREEZE', buyer), never);
    assert.deepEqual(declined, { status: 'VOID', declined: refusals.DECLINED });
    const seller = order('2', { sellerId: 'sim-decline-1' });
    assert.equal((await connection.instruct(instruction('FREEZE', seller), never)).status, 'HELD');
    assert.equal((await connection.instruct(instruction('RELEASE', seller), never)).status, 'HELD');
    assert.equal((await connection.instruct(instruction('REFUND', seller), never)).status, 'RETURNED');
  });

  test('sim-silent: never answered and never carried out, but look-ups are answered', async (t) => {
    const { connection } = open(t);
    const silent = order('1', { buyerId: 'sim-silent-1' });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      assert.equal(await fate(connection.instruct(instruction('FREEZE', silent), never)), 'PENDING');
    }
    assert.deepEqual(await connection.lookUp(silent, never), { status: 'ABSENT' });
  });

  /** Where the money of a buyer, or of a seller who is paid, is at once and after each five seconds that follow. */
  const courses: [prefix: string, party: 'buyerId' | 'sellerId', statuses: PaymentStatus[]][] = [
    [partyPrefixes.acting, 'buyerId', ['AWAITING_BUYER', 'HELD', 'HELD']],
    [partyPrefixes.failing, 'buyerId', ['AWAITING_BUYER', 'VOID', 'VOID']],
    [partyPrefixes.neverActing, 'buyerId', ['AWAITING_BUYER', 'AWAITING_BUYER', 'AWAITING_BUYER']],
    [partyPrefixes.contradicting, 'buyerId', ['PAID_OUT', 'PAID_OUT', 'PAID_OUT']],
    [partyPrefixes.contradicting, 'sellerId', ['VOID', 'VOID', 'VOID']],
    [partyPrefixes.returningLater, 'sellerId', ['PAID_OUT', 'RETURNED', 'RETURNED']],
    [partyPrefixes.returningPartLater, 'sellerId', ['PAID_OUT', 'PARTLY_RETURNED', 'PARTLY_RETURNED']],
    [partyPrefixes.disputedLater, 'sellerId', ['PAID_OUT', 'DISPUTED', 'DISPUTED']],
    [partyPrefixes.wonLater, 'sellerId', ['PAID_OUT', 'DISPUTED', 'PAID_OUT']],
    [partyPrefixes.lostLater, 'sellerId', ['PAID_OUT', 'DISPUTED', 'RETURNED']],
  ];
  for (const [prefix, party, expected] of courses) {
    test(`${prefix} as ${party}: ${expected.join(', ')}, and each change is notified`, async (t) => {
      const { connection, simulator, pass, events } = open(t);
      const of = order('1', { [party]: `${prefix}-1` });
      const told = [await connection.instruct(instruction('FREEZE', of), never)];
      if (party === 'sellerId') told.push(await connection.instruct(instruction('RELEASE', of), never));
      const statuses = [told.at(-1)?.status];
      for (let times = 1; times < expected.length; times += 1) {
        simulator.reopen();
        await pass(5_000);
        statuses.push((await connection.lookUp(of, never)).status);
      }
      assert.deepEqual(statuses, expected);
      await pass(100);
      const first = party === 'sellerId' ? ['HELD'] : [];
      const changes = [...first, ...expected].filter((status, place, all) => status !== all[place - 1]);
      assert.equal(events.length, changes.length);
    });
  }

  test('sim-wrong-amount holds one minor unit more, and pays that out or back', async (t) => {
    const { connection } = open(t);
    const of = order('1', { buyerId: 'sim-wrong-amount-1' });
    assert.equal((await connection.instruct(instruction('FREEZE', of), never)).amount, of.amount + 1n);
    assert.equal((await connection.instruct(instruction('RELEASE', of), never)).amount, of.amount + 1n);
  });

  test('sim-refuse-return: paid out as ever, but never given back', async (t) => {
    const { connection } = open(t);
    const of = order('1', { sellerId: 'sim-refuse-return-1' });
    await connection.instruct(instruction('FREEZE', of), never);
    for (const kind of ['REFUND', 'CANCEL'] as const) {
      const { status, declined } = await connection.instruct(instruction(kind, of), never);
      assert.deepEqual([status, declined], ['HELD', refusals.REFUSED]);
    }
    assert.equal((await connection.instruct(instruction('RELEASE', of), never)).status, 'PAID_OUT');
  });

  for (const [prefix, between] of [
    [partyPrefixes.lostAnswer, 'HELD'],
    [partyPrefixes.lostRequest, 'ABSENT'],
  ] as const) {
    test(`${prefix}: the first attempt fails, the second does not, even over a restart`, async (t) => {
      const { connection, simulator } = open(t);
      const unlucky = order('1', { buyerId: `${prefix}-1` });
      await assert.rejects(connection.instruct(instruction('FREEZE', unlucky), never), /broke/);
      assert.equal((await connection.lookUp(unlucky, never)).status, between);
      simulator.reopen();
      assert.equal((await connection.instruct(instruction('FREEZE', unlucky), never)).status, 'HELD');
    });
  }

  test('sim-slow answers after 3 s, sim-lapse runs out after 5 s, sim-duplicate holds once', async (t) => {
    const { connection, pass, simulator } = open(t);
    const freeze = (name: string, buyerId: string) =>
      connection.instruct(instruction('FREEZE', order(name, { buyerId })), never);
    const slow = freeze('1', 'sim-slow-1');
    await freeze('2', 'sim-lapse-1');
    await freeze('3', 'sim-duplicate-1');
    const statuses = () => simulator.holds().map(({ status }) => status);
    await pass(2_990);
    assert.equal(await fate(slow), 'PENDING');
    await pass(10);
    assert.equal(await fate(slow), 'RESOLVED');
    assert.deepEqual(statuses(), ['HELD', 'HELD', 'HELD']);
    await pass(2_000);
    assert.deepEqual(statuses(), ['HELD', 'LAPSED', 'HELD']);
  });
});

describe('seeded script', () => {
  const rates: FaultRates = {
    instruction: {
      DECLINE: 0.05,
      SHORT_HOLD: 0.05,
      SLOW: 0.1,
      SILENT: 0.1,
      LOST_ANSWER: 0.1,
      LOST_REQUEST: 0.1,
      LATE_REQUEST: 0.1,
      DUPLICATE_REQUEST: 0.1,
    },
    lookUp: { LOST: 0.2, SILENT: 0.1, SLOW: 0.2 },
    notification: { LOST: 0.2, DUPLICATE: 0.2, REORDERED: 0.2, LATE: 0.2 },
    delayMaxMs: 500,
  };

  /** A day at the provider: what was answered, posted and written down. */
  async function day(t: Cleanup, seed: number): Promise<unknown> {
    const { connection, simulator, pass, clock, posted } = openTestSimulator(t, {
      script: seededScript(seed, rates),
      receive: async ({ body }) => {
        if (body.at(-3) === 0x37) throw new Error('not taken');
      },
    });
    const told: [string, Fate][] = [];
    for (let n = 1; n <= 12; n += 1) {
      for (const kind of ['FREEZE', 'RELEASE', 'CANCEL'] as const) {
        const answer = connection.instruct(instruction(kind, order(String(n))), never);
        told.push([kind, await fate(answer)]);
        told.push(['LOOK_UP', await fate(connection.lookUp(order(String(n)), never))]);
        await pass(50);
      }
      if (n === 6) simulator.reopen();
    }
    await pass(10_000);
    const posts = posted.map(({ headers, body }) => ({ headers, body: Buffer.from(body).toString() }));
    return { told, posts, holds: simulator.holds(), nextDueMs: clock.nextDueMs() };
  }

  test('the same seed and the same messages make the same day', async (t) => {
    const first = await day(t, 42);
    assert.deepEqual(await day(t, 42), first);
    assert.notDeepEqual(await day(t, 43), first);
  });

  test('faults come about as often as their rates say, with delays in their bounds', () => {
    const script = seededScript(7, rates);
    const counts = new Map<string, number>();
    const draws = 20_000;
    for (let n = 0; n < draws; n += 1) {
      const fault = script.instruction(instruction('FREEZE'), 1);
      counts.set(fault.kind, (counts.get(fault.kind) ?? 0) + 1);
      if ('ms' in fault) assert.ok(fault.ms >= 1 && fault.ms <= 500);
    }
    for (const [kind, share] of Object.entries(rates.instruction ?? {})) {
      const seen = (counts.get(kind) ?? 0) / draws;
      assert.ok(Math.abs(seen - share) < 0.02, `${kind}: ${seen}, not ${share}`);
    }
    assert.equal(seededScript(7, {}).instruction(instruction('FREEZE'), 1).kind, 'NONE');
  });
});
