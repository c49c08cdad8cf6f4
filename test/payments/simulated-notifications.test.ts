import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import {
  deliveryDelayMs,
  keptBackMaxMs,
  receiverTimeoutMs,
  retryDelaysMs,
} from '../../src/payments/simulated/deliveries.ts';
import { faultless, type NotificationFault, type Script } from '../../src/payments/simulated/faults.ts';
import { signatureHeader, signatureToleranceS } from '../../src/payments/simulated/notifications.ts';
import { apiError } from '../support/rejected.ts';
import {
  instruction,
  never,
  openTestSimulator,
  order,
  sent,
  startMs,
  testSecret,
} from './simulated-support.ts';

/** Gives the faults in turn to deliveries, and none after them. */
function inTurn(...faults: readonly NotificationFault[]): Script {
  const left = [...faults];
  return { ...faultless, notification: () => left.shift() ?? { kind: 'NONE' } };
}

const ids = (events: readonly { readonly eventId: string }[]) => events.map(({ eventId }) => eventId);

describe('notifications of the simulated provider', () => {
  test('each change is told once, a moment later, and nothing else is', async (t) => {
    const { connection, pass, events } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE'), never);
    await connection.instruct(instruction('FREEZE'), never);
    await connection.lookUp(order(), never);
    await connection.instruct(instruction('RELEASE'), never);
    await connection.instruct(instruction('REFUND'), never);
    assert.deepEqual(events, []);
    await pass(deliveryDelayMs);
    assert.deepEqual(events, [
      { eventId: 'sim-evt-1', about: { holdId: 'hold-1' } },
      { eventId: 'sim-evt-2', about: { holdId: 'hold-1' } },
    ]);
    await pass(60_000);
    assert.equal(events.length, 2);
  });

  test('one that was not delivered leaves after a kill, one that was does not', async (t) => {
    const { connection, pass, events, simulator } = openTestSimulator(t);
    await connection.instruct(instruction('FREEZE', order('1')), never);
    await pass(deliveryDelayMs);
    await connection.instruct(instruction('FREEZE', order('2')), never);
    simulator.kill();
    await pass(1_000);
    assert.deepEqual(ids(events), ['sim-evt-1']);
    simulator.reopen();
    await pass(1_000);
    assert.deepEqual(ids(events), ['sim-evt-1', 'sim-evt-2']);
  });

  test('late, lost and duplicate ones', async (t) => {
    const script = inTurn({ kind: 'LATE', ms: 500 }, { kind: 'LOST' }, { kind: 'DUPLICATE' });
    const { connection, pass, events } = openTestSimulator(t, { script });
    for (const name of ['1', '2', '3']) await connection.instruct(instruction('FREEZE', order(name)), never);
    await pass(500);
    assert.deepEqual(ids(events), ['sim-evt-3', 'sim-evt-3']);
    await pass(60_000);
    assert.deepEqual(ids(events), ['sim-evt-3', 'sim-evt-3', 'sim-evt-1']);
  });

  test('one that is overtaken follows the next one, or leaves when none comes', async (t) => {
    const script = inTurn({ kind: 'REORDERED' }, { kind: 'NONE' }, { kind: 'REORDERED' });
    const { connection, pass, events } = openTestSimulator(t, { script });
    await connection.instruct(instruction('FREEZE', order('1')), never);
    await pass(1_000);
    assert.deepEqual(ids(events), []);
    await connection.instruct(instruction('FREEZE', order('2')), never);
    await pass(100);
    assert.deepEqual(ids(events), ['sim-evt-2', 'sim-evt-1']);
    await connection.instruct(instruction('FREEZE', order('3')), never);
    await pass(keptBackMaxMs);
    assert.equal(events.length, 2);
    await pass(deliveryDelayMs);
    assert.deepEqual(ids(events), ['sim-evt-2', 'sim-evt-1', 'sim-evt-3']);
  });

  test('one that is not taken is tried again, signed anew, until it is', async (t) => {
    let refusals = 2;
    const { connection, pass, posted, clock } = openTestSimulator(t, {
      receive: async () => {
        refusals -= 1;
        if (refusals >= 0) throw new Error('503');
      },
    });
    await connection.instruct(instruction('FREEZE'), never);
    await pass(60_000);
    const signatures = posted.map(({ headers }) => headers[signatureHeader]);
    assert.equal(new Set(signatures).size, 3);
    const last = posted.at(-1);
    assert.ok(last);
    assert.equal(connection.readNotification(sent(last, clock)).eventId, 'sim-evt-1');
    await pass(60_000);
    assert.equal(posted.length, 3);
  });

  test('a receiver that never takes one is left alone after the last retry', async (t) => {
    const { connection, clock, pass, posted, simulator } = openTestSimulator(t, {
      receive: () => Promise.reject(new Error('503')),
    });
    await connection.instruct(instruction('FREEZE'), never);
    await pass(deliveryDelayMs);
    for (const [failures, delayMs] of retryDelaysMs.entries()) {
      assert.equal(posted.length, failures + 1);
      clock.advance(delayMs - 1);
      assert.equal(posted.length, failures + 1);
      clock.advance(1);
      await pass(deliveryDelayMs);
    }
    assert.equal(posted.length, retryDelaysMs.length + 1);
    simulator.reopen();
    await pass(60_000);
    assert.equal(posted.length, retryDelaysMs.length + 1);
  });

  test('a receiver that does not answer is given up, and does not hold the others up', async (t) => {
    const aborted: string[] = [];
    const { connection, pass, posted } = openTestSimulator(t, {
      receive: (_, signal) =>
        new Promise(() => {
          signal.addEventListener('abort', () => aborted.push(signal.reason.message));
        }),
    });
    for (let n = 1; n <= 20; n += 1)
      await connection.instruct(instruction('FREEZE', order(String(n))), never);
    await pass(deliveryDelayMs + 1_000);
    assert.equal(posted.length, 16, 'as many at once as it allows itself');
    await pass(receiverTimeoutMs);
    assert.equal(aborted.length, 16);
    assert.match(aborted[0] ?? '', /within 10000 ms/);
    const seen = new Set(posted.map(({ body }) => Buffer.from(body).toString()));
    assert.equal(seen.size, 20);
  });

  test('what is being delivered when the simulator ends is called off', async (t) => {
    let reason = '';
    const { connection, pass, simulator, clock } = openTestSimulator(t, {
      receive: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason.message;
            reject(signal.reason);
          });
        }),
    });
    await connection.instruct(instruction('FREEZE'), never);
    await pass(deliveryDelayMs);
    simulator.close();
    await pass(10);
    assert.match(reason, /has ended/);
    assert.equal(clock.nextDueMs(), undefined);
  });
});

describe('reading a notification of the simulated provider', () => {
  const nowS = startMs / 1000;
  const genuine = Buffer.from('{"id":"sim-evt-9","type":"hold.changed","holdId":"hold-9"}');
  const sign = (body: Uint8Array, timestamp: number | string = nowS, key = testSecret) =>
    `t=${timestamp},v1=${createHmac('sha256', key).update(`${timestamp}.`).update(body).digest('hex')}`;
  const notification = (body: Uint8Array, ...signatures: string[]) => ({
    ...{ method: 'POST', query: '' },
    headers: { [signatureHeader]: signatures },
    body,
    nowS,
  });

  test('a genuine one is read, at the edges of its time as well', (t) => {
    const { connection } = openTestSimulator(t);
    for (const ageS of [0, signatureToleranceS, -signatureToleranceS]) {
      assert.deepEqual(connection.readNotification(notification(genuine, sign(genuine, nowS - ageS))), {
        eventId: 'sim-evt-9',
        about: { holdId: 'hold-9' },
      });
    }
    const aboutNothing = Buffer.from('{"id":"sim-evt-9"}');
    assert.deepEqual(connection.readNotification(notification(aboutNothing, sign(aboutNothing))), {
      eventId: 'sim-evt-9',
      about: undefined,
    });
  });

  test('a forged, torn, old or doubly signed one is not', (t) => {
    const { connection } = openTestSimulator(t);
    const good = sign(genuine);
    const forged: [string, string[]][] = [
      ['no signature', []],
      ['an empty one', ['']],
      ['two', [good, good]],
      ['joined', [`${good},${good}`]],
      ['of another key', [sign(genuine, nowS, Buffer.alloc(32, 8))]],
      ['of another body', [sign(Buffer.from('{}'))]],
      ['of another time', [good.replace(/t=\d+/, `t=${nowS + 1}`)]],
      ['too old', [sign(genuine, nowS - signatureToleranceS - 1)]],
      ['from the future', [sign(genuine, nowS + signatureToleranceS + 1)]],
      ['shorter', [good.slice(0, -2)]],
      ['longer', [`${good}00`]],
      ['in capitals', [good.toUpperCase()]],
      ['a time that is none', [sign(genuine, '1e9')]],
      ['an endless time', [sign(genuine, '9'.repeat(16))]],
    ];
    for (const [what, signatures] of forged) {
      assert.throws(
        () => connection.readNotification(notification(genuine, ...signatures)),
        apiError('SIGNATURE_INVALID', /sim-signature/),
        what,
      );
    }
    assert.throws(
      () => connection.readNotification({ method: 'POST', query: '', headers: {}, body: genuine, nowS }),
      apiError('SIGNATURE_INVALID'),
    );
  });

  test('a genuine one that is no event is refused as such', (t) => {
    const { connection } = openTestSimulator(t);
    const bodies = ['', '{', 'null', '[]', '"x"', '{}', '{"id":7}', '{"id":""}', '{"holdId":"hold-9"}'];
    for (const body of [...bodies.map((text) => Buffer.from(text)), Buffer.from([0x22, 0xff, 0x22])]) {
      assert.throws(
        () => connection.readNotification(notification(body, sign(body))),
        apiError('INVALID_JSON'),
        body.toString(),
      );
    }
  });
});
