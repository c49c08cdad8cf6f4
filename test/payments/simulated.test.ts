import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { faultless } from '../../src/payments/simulated/faults.ts';
import { signNotification } from '../../src/payments/simulated/notifications.ts';
import { createSimulatedProvider } from '../../src/payments/simulated/provider.ts';
import { holdLastsMs } from '../../src/payments/simulated/run.ts';
import { partyPrefixes, scriptByParties } from '../../src/payments/simulated/script-by-parties.ts';
import { createManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { providerSuite } from './provider-suite.ts';
import {
  fate,
  faultsInTurn,
  instruction,
  never,
  openTestSimulator,
  order,
  sent,
  startMs,
  testSecret,
  turn,
} from './simulated-support.ts';

const booked = { amount: 128_000_000n, currency: 'CNY', reference: 'sim-hold-1' };
const held = { ...booked, status: 'HELD', holdExpiresAtMs: startMs + holdLastsMs };

providerSuite('simulated', {
  has: ['tellsWhy', 'awaitsBuyer', 'callsOff', 'takesBack', 'takesPartBack', 'disputes'],
  open: async (t) => {
    const { simulator, connection, clock } = openTestSimulator(t, { script: scriptByParties() });
    let orders = 0;
    let events = 0;
    return {
      provider: connection,
      order: (buyer) => {
        orders += 1;
        return order(String(orders), buyer === 'declined' ? { buyerId: `${partyPrefixes.declined}-1` } : {});
      },
      lapse: async ({ holdId }) => simulator.lapse(holdId),
      awaitsBuyer: {
        order: () => {
          orders += 1;
          return order(String(orders), { buyerId: `${partyPrefixes.neverActing}-1` });
        },
        act: async ({ holdId }, how) =>
          simulator.befall(holdId, how === 'DONE' ? 'BUYER_ACTS' : 'BUYER_FAILS'),
      },
      takesBack: async ({ holdId }, event) => simulator.befall(holdId, event),
      notification: ({ holdId }, sentAtS) => {
        events += 1;
        const signed = signNotification(testSecret, { eventId: `sim-evt-${events}`, holdId }, sentAtS);
        return { ...sent(signed, clock), nowS: sentAtS };
      },
    };
  },
});

describe('simulated provider', () => {
  test('holds, pays out, and tells the same when asked', async (t) => {
    const { connection } = openTestSimulator(t);
    assert.deepEqual(
      connection.check({ amount: 1n, currency: 'CNY', buyerId: 'buyer', sellerId: 'seller' }),
      [],
    );
    assert.deepEqual(await connection.lookUp(order(), never), { status: 'ABSENT' });
    assert.deepEqual(await connection.instruct(instruction('FREEZE'), never), held);
    assert.deepEqual(await connection.lookUp(order(), never), held);
    const paidOut = { ...booked, status: 'PAID_OUT' };
    assert.deepEqual(await connection.instruct(instruction('RELEASE'), never), paidOut);
    assert.deepEqual(await connection.lookUp(order(), never), paidOut);
  });

  test('a hold runs out by itself', async (t) => {
    const { connection, simulator, pass, clock, events } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    clock.advance(holdLastsMs - 1);
    assert.equal(simulator.holds()[0]?.status, 'HELD');
    await pass(30);
    assert.deepEqual(
      events.map(({ eventId }) => eventId),
      ['sim-evt-1', 'sim-evt-2'],
      'told without being asked',
    );
  });

  test('a hold that ran out while the wall clock was set is not paid out', async (t) => {
    const { connection, clock } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    clock.setWall(startMs + holdLastsMs);
    assert.equal((await connection.instruct(instruction('RELEASE'), never)).status, 'LAPSED');
  });

  test('a test can make a hold run out', async (t) => {
    const { connection, simulator } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    simulator.lapse('hold-1');
    assert.equal((await connection.lookUp(order(), never)).status, 'LAPSED');
    simulator.lapse('hold-1');
    simulator.lapse('hold-of-nobody');
    assert.equal(simulator.holds().length, 1);
  });

  test('a call whose signal is aborted gives up, and leaves no timer', async (t) => {
    const { connection, clock, simulator } = openTestSimulator(t, {
      script: faultsInTurn({ kind: 'SLOW', ms: 3_000 }, { kind: 'SILENT', carriedOut: false }),
    });
    simulator.follow({ ...faultless, lookUp: () => ({ kind: 'SLOW', ms: 3_000 }) });
    const slow = new AbortController();
    const asked = connection.lookUp(order(), slow.signal);
    assert.equal(clock.nextDueMs(), 3_000);
    slow.abort(new Error('enough'));
    await assert.rejects(asked, /enough/);
    assert.equal(clock.nextDueMs(), undefined);

    simulator.follow(faultsInTurn({ kind: 'SILENT', carriedOut: false }));
    const silent = new AbortController();
    const told = connection.instruct(instruction('FREEZE'), silent.signal);
    assert.equal(await fate(told), 'PENDING');
    silent.abort();
    await assert.rejects(told, { name: 'AbortError' });

    await assert.rejects(connection.instruct(instruction('FREEZE'), silent.signal), { name: 'AbortError' });
    assert.deepEqual(simulator.holds(), [], 'what was aborted before is not sent');
  });

  test('goes on where it was after a kill; who waited then hears nothing', async (t) => {
    const { connection, simulator, clock, pass } = openTestSimulator(t, {
      script: faultsInTurn({ kind: 'SLOW', ms: 1_000 }, { kind: 'LATE_REQUEST', ms: 1_000 }),
    });
    const slow = connection.instruct(instruction('FREEZE', order('1')), never);
    await assert.rejects(connection.instruct(instruction('FREEZE', order('2')), never), /broke/);
    simulator.kill();
    assert.equal(clock.nextDueMs(), undefined);
    await assert.rejects(connection.lookUp(order('1'), never), /does not run/);
    assert.throws(() => simulator.holds(), /does not run/);
    simulator.reopen();
    await pass(2_000);
    assert.equal(await fate(slow), 'PENDING');
    assert.deepEqual(await connection.instruct(instruction('FREEZE', order('1')), never), held);
    assert.equal((await connection.lookUp(order('2'), never)).status, 'ABSENT', 'it died on its way');
    simulator.reopen();
    assert.deepEqual(
      simulator.holds().map(({ holdId, status }) => [holdId, status]),
      [['hold-1', 'HELD']],
    );
  });

  test('outlives those who are connected to it', async (t) => {
    const { connection, simulator, pass } = openTestSimulator(t, {
      script: faultsInTurn({ kind: 'SLOW', ms: 100 }, { kind: 'SLOW', ms: 100 }),
    });
    const cut = connection.instruct(instruction('FREEZE', order('1')), never);
    connection.cut();
    const second = simulator.connect();
    const closed = second.instruct(instruction('FREEZE', order('2')), never);
    const failed = assert.rejects(closed, /closed/);
    await second.close();
    await failed;
    await assert.rejects(second.lookUp(order('2'), never), /closed/);
    await pass(200);
    assert.equal(await fate(cut), 'PENDING');
    assert.equal(await fate(connection.lookUp(order('1'), never)), 'PENDING');
    assert.equal((await simulator.connect().lookUp(order('2'), never)).status, 'HELD');
  });

  test('as the service has it: closing it ends calls, timers and deliveries', async (t) => {
    const clock = createManualClock(startMs);
    let posts = 0;
    const options = {
      dataDir: temporaryFolder(t),
      clock,
      deliver: async () => {
        posts += 1;
      },
    };
    const first = createSimulatedProvider(options);
    await first.instruct(instruction('FREEZE'), never);
    const silent = first.instruct(instruction('FREEZE', order('2', { buyerId: 'sim-silent-2' })), never);
    const failed = assert.rejects(silent, /closed/);
    await first.close();
    await failed;
    assert.equal(clock.nextDueMs(), undefined);
    clock.advance(60_000);
    assert.equal(posts, 0);
    await first.close();
    const second = createSimulatedProvider(options);
    assert.equal((await second.lookUp(order(), never)).status, 'HELD');
    clock.advance(60_000);
    await turn();
    assert.equal(posts, 1, 'what was not delivered is');
    await second.close();
  });
});
