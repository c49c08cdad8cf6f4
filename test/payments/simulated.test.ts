import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { openBooks } from '../../src/payments/simulated/books.ts';
import { holdLastsMs, rejections } from '../../src/payments/simulated/hold.ts';
import { apiError } from '../support/rejected.ts';
import { providerSuite } from './provider-suite.ts';
import { fate, instruction, never, openProvider, order, startMs, turn } from './simulated-support.ts';

const booked = { amount: 128_000_000n, currency: 'CNY', reference: 'sim-hold-hold-1' };
const held = { ...booked, status: 'HELD', holdExpiresAtMs: startMs + holdLastsMs };

providerSuite('simulated', {
  open: async (t) => {
    const { provider, befall } = openProvider(t);
    let orders = 0;
    const buyers = { declined: 'sim-decline-1', acting: 'sim-must-act-never-1' };
    return {
      provider,
      order: (buyer) => {
        orders += 1;
        return order(String(orders), { buyerId: buyer ? buyers[buyer] : 'buyer' });
      },
      lapse: async (of) => befall(of, 'LAPSE'),
      act: async (of, how) => befall(of, how === 'DONE' ? 'BUYER_ACTS' : 'BUYER_FAILS'),
      happen: async (of, event) => befall(of, event),
    };
  },
});

describe('instructions of the simulated provider', () => {
  test('one that did not apply does not apply later under its id; another one does', async (t) => {
    const { provider } = openProvider(t);
    const statusOf = async (kind: InstructionKind, attempt = '') =>
      (await provider.instruct(instruction(kind, order(), attempt), never)).status;
    assert.equal(await statusOf('REFUND'), 'ABSENT');
    assert.equal(await statusOf('FREEZE'), 'HELD');
    assert.equal(await statusOf('REFUND'), 'HELD');
    assert.equal(await statusOf('REFUND', '-again'), 'RETURNED');
    assert.equal(await statusOf('FREEZE'), 'RETURNED', 'where the money is now');
  });

  test('an id that another instruction has is an error, and changes nothing', async (t) => {
    const { provider } = openProvider(t);
    await provider.instruct(instruction('FREEZE'), never);
    const wrong = { ...instruction('RELEASE'), instructionId: instruction('FREEZE').instructionId };
    await assert.rejects(provider.instruct(wrong, never), /another instruction: FREEZE of hold-1/);
    assert.deepEqual(await provider.lookUp(order(), never), held);
  });

  test('the reason of a declined instruction is in its response alone, each time it is sent', async (t) => {
    const { provider } = openProvider(t);
    const declining = order('1', { sellerId: 'sim-decline' });
    await provider.instruct(instruction('FREEZE', declining), never);
    for (const repeated of [1, 2]) {
      const { status, declined } = await provider.instruct(instruction('RELEASE', declining), never);
      assert.deepEqual([status, declined], ['HELD', rejections.DECLINED], `${repeated}`);
    }
    assert.equal((await provider.lookUp(declining, never)).declined, undefined);
    await provider.instruct(instruction('RELEASE', order(), '-again'), never);
    assert.equal((await provider.instruct(instruction('RELEASE', declining), never)).declined, undefined);
  });
});

describe('documented party ids', () => {
  const freeze = (buyerId: string) => instruction('FREEZE', order('1', { buyerId }));

  /** The statuses at once and after each further five seconds. */
  const courses: [partyId: string, party: 'buyerId' | 'sellerId', statuses: PaymentStatus[]][] = [
    ['sim-decline', 'buyerId', ['VOID']],
    ['sim-decline', 'sellerId', ['HELD']],
    ['sim-lapse', 'buyerId', ['HELD', 'LAPSED', 'LAPSED']],
    ['sim-must-act', 'buyerId', ['AWAITING_BUYER', 'HELD', 'HELD']],
    ['sim-must-act-fail', 'buyerId', ['AWAITING_BUYER', 'VOID', 'VOID']],
    ['sim-must-act-never', 'buyerId', ['AWAITING_BUYER', 'AWAITING_BUYER', 'AWAITING_BUYER']],
    ['sim-contradiction', 'buyerId', ['PAID_OUT', 'PAID_OUT', 'PAID_OUT']],
    ['sim-contradiction', 'sellerId', ['VOID', 'VOID', 'VOID']],
    ['sim-refund-later', 'sellerId', ['PAID_OUT', 'RETURNED', 'RETURNED']],
    ['sim-refund-part-later', 'sellerId', ['PAID_OUT', 'PARTLY_RETURNED', 'PARTLY_RETURNED']],
    ['sim-lapse-today', 'buyerId', ['HELD', 'HELD', 'HELD']],
    ['sim-refund-failed-later', 'sellerId', ['PAID_OUT', 'PARTLY_RETURNED', 'PAID_OUT']],
    ['sim-dispute-later', 'sellerId', ['PAID_OUT', 'DISPUTED', 'DISPUTED']],
    ['sim-dispute-won-later', 'sellerId', ['PAID_OUT', 'DISPUTED', 'PAID_OUT']],
    ['sim-dispute-lost-later', 'sellerId', ['PAID_OUT', 'DISPUTED', 'RETURNED']],
  ];
  for (const [partyId, party, expected] of courses) {
    test(`${partyId} as ${party}: ${expected.join(', ')}, and what happens later is notified`, async (t) => {
      const { provider, pass, events } = openProvider(t);
      const of = order('1', { [party]: `${partyId}-1` });
      let answer = provider.instruct(instruction('FREEZE', of), never);
      await answer;
      if (party === 'sellerId') answer = provider.instruct(instruction('RELEASE', of), never);
      const statuses = [(await answer).status];
      for (let times = 1; times < expected.length; times += 1) {
        await pass(5_000);
        statuses.push((await provider.lookUp(of, never)).status);
      }
      assert.deepEqual(statuses, expected);
      const changes = expected.filter((status, index) => index > 0 && status !== expected[index - 1]);
      assert.equal(events.length, changes.length);
    });
  }

  test('sim-wrong-amount holds one minor unit more, and pays that out', async (t) => {
    const { provider } = openProvider(t);
    const of = order('1', { buyerId: 'sim-wrong-amount-1' });
    assert.equal((await provider.instruct(instruction('FREEZE', of), never)).amount, of.amount + 1n);
    assert.equal((await provider.instruct(instruction('RELEASE', of), never)).amount, of.amount + 1n);
  });

  test('sim-refuse-return pays out, but gives nothing back', async (t) => {
    const { provider } = openProvider(t);
    const of = order('1', { sellerId: 'sim-refuse-return-1' });
    const absent = order('2', { sellerId: 'sim-refuse-return-1' });
    assert.equal((await provider.instruct(instruction('CANCEL', absent), never)).status, 'VOID');
    await provider.instruct(instruction('FREEZE', of), never);
    for (const kind of ['REFUND', 'CANCEL'] as const) {
      const { status, declined } = await provider.instruct(instruction(kind, of), never);
      assert.deepEqual([status, declined], ['HELD', rejections.REFUSED]);
    }
    assert.equal((await provider.instruct(instruction('RELEASE', of), never)).status, 'PAID_OUT');
  });

  test('a CANCEL is carried out for other ids', async (t) => {
    const { provider } = openProvider(t);
    const of = order('1', { sellerId: 'sim-silent-1' });
    await provider.instruct(instruction('FREEZE', of), never);
    assert.equal((await provider.instruct(instruction('CANCEL', of), never)).status, 'RETURNED');
  });

  for (const [partyId, between] of [
    ['sim-lost-answer', 'HELD'],
    ['sim-lost-request', 'ABSENT'],
  ] as const) {
    test(`${partyId}: the first sending fails, the second does not, even after a restart`, async (t) => {
      const { provider, file } = openProvider(t);
      const of = freeze(`${partyId}-1`);
      await assert.rejects(provider.instruct(of, never), { kind: 'UNREACHABLE', message: /broke/ });
      assert.equal((await provider.lookUp(of, never)).status, between);
      await provider.close();
      const next = openProvider(t, file);
      assert.equal((await next.provider.instruct(of, never)).status, 'HELD');
    });
  }

  test('sim-silent never answers and does nothing; sim-slow answers after 3 s', async (t) => {
    const { provider, clock, pass } = openProvider(t);
    assert.equal(await fate(provider.instruct(freeze('sim-silent-1'), never)), 'PENDING');
    assert.deepEqual(await provider.lookUp(order(), never), { status: 'ABSENT' });
    const slow = provider.instruct(freeze('sim-slow-1'), never);
    await pass(2_990);
    assert.equal(await fate(slow), 'PENDING');
    clock.advance(10);
    assert.equal((await slow).status, 'HELD');
  });

  test('an aborted signal, and closing, end a silent and a slow call', async (t) => {
    for (const buyerId of ['sim-silent-1', 'sim-slow-1']) {
      const { provider, clock } = openProvider(t);
      const abort = new AbortController();
      const aborted = provider.instruct(freeze(buyerId), abort.signal);
      const closed = provider.instruct(freeze(buyerId), never);
      await turn();
      abort.abort(new Error('enough'));
      await assert.rejects(aborted, /enough/);
      const rejected = assert.rejects(closed, /closed/);
      await provider.close();
      await rejected;
      assert.equal(clock.nextDueMs(), undefined);
    }
  });
});

describe('notifications of the simulated provider', () => {
  const lapsing = instruction('FREEZE', order('1', { buyerId: 'sim-lapse-1' }));

  test('one that fails is sent again, under the same id, until it is accepted', async (t) => {
    let failures = 2;
    const { provider, pass, events } = openProvider(t, undefined, async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('starting');
    });
    await provider.instruct(lapsing, never);
    await pass(10_000);
    assert.equal(events.length, 3);
    assert.equal(new Set(events.map(({ eventId }) => eventId)).size, 1);
    assert.deepEqual(events[0]?.about, { holdId: 'hold-1' });
  });

  test('what happened while the process was down is notified at the start', async (t) => {
    const before = openProvider(t);
    await before.provider.instruct(lapsing, never);
    await before.provider.close();
    assert.equal(before.clock.nextDueMs(), undefined);
    const { clock, pass, events } = openProvider(t, before.file);
    clock.setWall(startMs + 60_000);
    await pass(5_000);
    assert.equal(events.length, 1);
  });

  test('one that is in flight when the provider closes changes nothing', async (t) => {
    const { promise: accepted, resolve } = Promise.withResolvers<void>();
    const { provider, pass, events, file } = openProvider(t, undefined, () => accepted);
    await provider.instruct(lapsing, never);
    await pass(5_000);
    await provider.close();
    resolve();
    await turn();
    assert.equal(events.length, 1);
    const books = openBooks(file);
    t.after(() => books.close());
    assert.equal(books.all()[0]?.status, 'HELD');
  });

  test('none is accepted over HTTP', (t) => {
    const sent = { query: '', headers: {}, body: Buffer.from('{}'), nowS: 0 };
    assert.throws(() => openProvider(t).provider.readNotification(sent), apiError('SIGNATURE_INVALID'));
  });
});

test('the books of the simulated provider are its owner’s alone', (t) => {
  const { file } = openProvider(t);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});
