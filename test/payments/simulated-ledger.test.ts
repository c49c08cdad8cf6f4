import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import type { MoneyEvent } from '../../src/payments/simulated/course.ts';
import { type Ledger, openLedger, type Treatment } from '../../src/payments/simulated/ledger.ts';
import { ledgerFileName } from '../../src/payments/simulated/ledger-file-name.ts';
import { refusals, statusAfter, type Verdict } from '../../src/payments/simulated/rules.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { instruction, order, startMs } from './simulated-support.ts';

const treatment: Treatment = { verdict: 'CONSENTED', holdLastsMs: 1_000 };
const newSecret = () => Buffer.alloc(32, 1);

type Cleanup = Parameters<typeof temporaryFolder>[0];

function open(cleanup: Cleanup, dataDir = temporaryFolder(cleanup)): Ledger {
  const ledger = openLedger(dataDir, newSecret);
  cleanup.after(() => ledger.close());
  return ledger;
}

function tell(
  ledger: Ledger,
  kind: InstructionKind,
  id = '',
  nowMs = startMs,
  given = treatment,
): PaymentStatus {
  const told = instruction(kind, order(), id);
  ledger.countAttempt(told);
  return ledger.carryOut(told, given, nowMs).status;
}

describe('rules of the simulated provider', () => {
  const ended: PaymentStatus[] = ['PAID_OUT', 'PARTLY_RETURNED', 'DISPUTED', 'RETURNED', 'LAPSED'];
  const statuses: PaymentStatus[] = ['ABSENT', 'AWAITING_BUYER', 'VOID', 'HELD', ...ended];
  const expected: Record<InstructionKind, PaymentStatus[]> = {
    FREEZE: ['HELD', 'AWAITING_BUYER', 'VOID', 'HELD', ...ended],
    RELEASE: ['ABSENT', 'AWAITING_BUYER', 'VOID', 'PAID_OUT', ...ended],
    REFUND: ['ABSENT', 'VOID', 'VOID', 'RETURNED', ...ended],
    CANCEL: ['VOID', 'VOID', 'VOID', 'RETURNED', ...ended],
  };
  const declined: Record<InstructionKind, PaymentStatus[]> = {
    ...expected,
    FREEZE: ['VOID', ...expected.FREEZE.slice(1)],
    RELEASE: statuses,
  };
  const refused: Record<InstructionKind, PaymentStatus[]> = {
    ...declined,
    REFUND: statuses,
    CANCEL: ['VOID', ...statuses.slice(1)],
  };
  for (const kind of ['FREEZE', 'RELEASE', 'REFUND', 'CANCEL'] as const) {
    test(`where a ${kind} leads from each status`, () => {
      for (const [verdict, led] of [
        ['CONSENTED', expected],
        ['DECLINED', declined],
        ['REFUSED', refused],
      ] as const) {
        assert.deepEqual(
          statuses.map((status) => statusAfter(kind, status, verdict)),
          led[kind],
          verdict,
        );
      }
    });
  }
});

describe('ledger of the simulated provider', () => {
  test('an instruction under the id of an earlier one has no effect', (t) => {
    const ledger = open(t);
    assert.equal(tell(ledger, 'FREEZE'), 'HELD');
    assert.equal(tell(ledger, 'RELEASE', '', startMs, { ...treatment, verdict: 'DECLINED' }), 'HELD');
    assert.equal(tell(ledger, 'RELEASE'), 'HELD', 'declined for good under this id');
    assert.equal(tell(ledger, 'RELEASE', '-again'), 'PAID_OUT');
    assert.equal(tell(ledger, 'FREEZE'), 'PAID_OUT', 'the answer is where the money is now');
    assert.equal(ledger.outbox.after(0).length, 2);
  });

  test('an instruction that did not apply does not apply later under its id', (t) => {
    const ledger = open(t);
    assert.equal(tell(ledger, 'REFUND'), 'ABSENT');
    assert.equal(tell(ledger, 'FREEZE'), 'HELD');
    assert.equal(tell(ledger, 'REFUND'), 'HELD');
  });

  test('an id that another instruction has is an error, and changes nothing', (t) => {
    const ledger = open(t);
    tell(ledger, 'FREEZE');
    const wrong = { ...instruction('RELEASE'), instructionId: instruction('FREEZE').instructionId };
    assert.throws(() => ledger.countAttempt(wrong), /another instruction: FREEZE of hold-1/);
    assert.equal(ledger.countAttempt(instruction('FREEZE')), 2);
  });

  test('after a cancellation no hold is made', (t) => {
    const ledger = open(t);
    assert.equal(tell(ledger, 'CANCEL'), 'VOID');
    assert.equal(tell(ledger, 'FREEZE'), 'VOID');
    assert.deepEqual(ledger.find('hold-1', startMs), { status: 'VOID' });
  });

  test('a hold runs out at its time, and stays so if the clock goes back', (t) => {
    const ledger = open(t);
    tell(ledger, 'FREEZE');
    assert.equal(ledger.nextDueMs(), startMs + 1_000);
    assert.equal(ledger.find('hold-1', startMs + 999).status, 'HELD');
    assert.equal(tell(ledger, 'RELEASE', '', startMs + 1_000), 'LAPSED');
    assert.equal(ledger.find('hold-1', startMs).status, 'LAPSED');
    assert.equal(ledger.nextDueMs(), undefined);
  });

  test('all of it is there when the file is opened again', (t) => {
    const dataDir = temporaryFolder(t);
    const before = openLedger(dataDir, newSecret);
    tell(before, 'FREEZE');
    before.outbox.countFailure(1);
    const holds = before.holds();
    before.close();
    const after = openLedger(dataDir, () => Buffer.alloc(32, 2));
    t.after(() => after.close());
    assert.deepEqual(after.holds(), holds);
    assert.deepEqual(holds, [
      {
        holdId: 'hold-1',
        escrowId: 'ES-2026-1',
        status: 'HELD',
        amount: 128_000_000n,
        currency: 'CNY',
        expiresAtMs: startMs + 1_000,
      },
    ]);
    assert.deepEqual(after.outbox.after(0), [{ id: 1, holdId: 'hold-1', failures: 1 }]);
    assert.deepEqual(after.secret, newSecret());
    assert.equal(after.countAttempt(instruction('FREEZE')), 2);
  });

  const mustAct: Treatment = { ...treatment, course: { buyer: [{ event: 'BUYER_ACTS', afterMs: 500 }] } };

  test('a buyer who has to act: the hold is made when they do, and lasts from then on', (t) => {
    const dataDir = temporaryFolder(t);
    const ledger = open(t, dataDir);
    const nextActionUrl = 'https://simulated-provider.invalid/act/hold-1';
    assert.equal(tell(ledger, 'FREEZE', '', startMs, mustAct), 'AWAITING_BUYER');
    assert.equal(tell(ledger, 'FREEZE', '', startMs, mustAct), 'AWAITING_BUYER', 'again');
    assert.equal(tell(ledger, 'RELEASE'), 'AWAITING_BUYER');
    assert.deepEqual(ledger.find('hold-1', startMs), { status: 'AWAITING_BUYER', nextActionUrl });
    assert.equal(ledger.nextDueMs(), startMs + 500);
    ledger.close();
    const after = open(t, dataDir);
    assert.equal(after.holds()[0]?.status, 'AWAITING_BUYER');
    const { status, holdExpiresAtMs } = after.find('hold-1', startMs + 700);
    assert.deepEqual([status, holdExpiresAtMs], ['HELD', startMs + 700 + treatment.holdLastsMs]);
    assert.equal(after.outbox.after(0).length, 2, 'one of the waiting, one of the hold');
  });

  test('a buyer who acts after the cancellation makes no hold', (t) => {
    for (const kind of ['CANCEL', 'REFUND'] as const) {
      const ledger = open(t);
      tell(ledger, 'FREEZE', '', startMs, mustAct);
      assert.equal(tell(ledger, kind), 'VOID');
      assert.deepEqual(ledger.find('hold-1', startMs + 500), { status: 'VOID' });
      assert.equal(ledger.holds().length, 1);
    }
  });

  test('a buyer who acts and fails: VOID, with the reason', (t) => {
    const ledger = open(t);
    tell(ledger, 'FREEZE', '', startMs, { ...treatment, course: { buyer: [] } });
    assert.equal(ledger.nextDueMs(), undefined, 'nobody acts by themselves');
    ledger.befall('hold-1', 'BUYER_FAILS', startMs);
    ledger.befall('hold-1', 'BUYER_ACTS', startMs);
    assert.deepEqual(ledger.find('hold-1', startMs), { status: 'VOID', declined: refusals.BUYER_FAILS });
  });

  test('what happens to money after its pay-out, each with a notification', (t) => {
    const courses: [events: MoneyEvent[], PaymentStatus, amount: bigint][] = [
      [['RETURN_ALL'], 'RETURNED', 128_000_000n],
      [['RETURN_ALL', 'DISPUTE'], 'RETURNED', 128_000_000n],
      [['RETURN_PART'], 'PARTLY_RETURNED', 64_000_000n],
      [['RETURN_PART', 'RETURN_PART'], 'PARTLY_RETURNED', 32_000_000n],
      [['RETURN_PART', 'RETURN_ALL'], 'RETURNED', 128_000_000n],
      [['DISPUTE'], 'DISPUTED', 128_000_000n],
      [['DISPUTE', 'DISPUTE_WON'], 'PAID_OUT', 128_000_000n],
      [['DISPUTE', 'DISPUTE_LOST'], 'RETURNED', 128_000_000n],
      [['RETURN_PART', 'DISPUTE', 'DISPUTE_WON'], 'PARTLY_RETURNED', 64_000_000n],
      [['DISPUTE_WON', 'DISPUTE_LOST', 'BUYER_ACTS', 'BUYER_FAILS'], 'PAID_OUT', 128_000_000n],
    ];
    for (const [events, status, amount] of courses) {
      const ledger = open(t);
      tell(ledger, 'FREEZE');
      for (const event of events) ledger.befall('hold-1', event, startMs);
      assert.equal(ledger.outbox.after(0).length, 1, 'nothing happens to what is only held');
      const afterPayout = events.map((event, place) => ({ event, afterMs: place + 1 }));
      tell(ledger, 'RELEASE', '', startMs, { ...treatment, course: { afterPayout } });
      assert.equal(ledger.find('hold-1', startMs).status, 'PAID_OUT');
      const payment = ledger.find('hold-1', startMs + events.length);
      assert.deepEqual([payment.status, payment.amount], [status, amount], events.join());
      for (const kind of ['RELEASE', 'REFUND', 'CANCEL', 'FREEZE'] as const) {
        assert.equal(tell(ledger, kind, '-later', startMs + events.length), status);
      }
    }
  });

  test('why an instruction was not carried out is told with the answer, as often as it is given', (t) => {
    const ledger = open(t);
    const answer = (kind: InstructionKind, id: string, verdict: Verdict) => {
      const told = instruction(kind, order(), id);
      ledger.countAttempt(told);
      return ledger.carryOut(told, { ...treatment, verdict }, startMs);
    };
    answer('FREEZE', '', 'CONSENTED');
    for (const repeated of [1, 2]) {
      const { status, declined } = answer('RELEASE', '', 'DECLINED');
      assert.deepEqual([status, declined], ['HELD', refusals.DECLINED], `${repeated}`);
    }
    assert.equal(ledger.find('hold-1', startMs).declined, undefined);
    assert.equal(answer('REFUND', '', 'REFUSED').declined, refusals.REFUSED);
    assert.equal(answer('RELEASE', '-again', 'CONSENTED').status, 'PAID_OUT');
    assert.equal(answer('RELEASE', '', 'CONSENTED').declined, undefined, 'it was paid out since');
  });

  test('what cannot be: a hold is paid out as it is made, one that is to be paid is forgotten', (t) => {
    const wrong: Treatment = { ...treatment, course: { contradicts: true } };
    assert.equal(tell(open(t), 'FREEZE', '', startMs, wrong), 'PAID_OUT');
    for (const kind of ['RELEASE', 'REFUND'] as const) {
      const ledger = open(t);
      tell(ledger, 'FREEZE');
      assert.equal(tell(ledger, kind, '', startMs, wrong), 'VOID');
      assert.deepEqual(ledger.find('hold-1', startMs), { status: 'VOID' });
    }
  });

  test('a hold that lasts for ever has no end', (t) => {
    const ledger = open(t);
    tell(ledger, 'FREEZE', '', startMs, { ...treatment, holdLastsMs: Number.POSITIVE_INFINITY });
    assert.equal(ledger.find('hold-1', startMs * 2).holdExpiresAtMs, undefined);
    assert.equal(ledger.find('hold-1', startMs * 2).status, 'HELD');
  });

  test('a file from before learns the rest, and keeps what the artseal from then reads', (t) => {
    const dataDir = temporaryFolder(t);
    openLedger(dataDir, newSecret).close();
    const tables = () => {
      const connection = new Sqlite(join(dataDir, ledgerFileName));
      t.after(() => connection.close());
      const shape = connection.prepare<[], [string, string]>('SELECT name, sql FROM sqlite_schema').raw();
      return { connection, shape: new Map(shape.all()) };
    };
    const { connection, shape: now } = tables();
    const added = ['awaited_hold', 'after_payout', 'planned_event', 'apiError'];
    for (const name of added) connection.exec(`DROP TABLE ${name}`);
    connection.exec(
      `INSERT INTO hold VALUES (1, 'hold-1', 'ES-2026-1', 'PAID_OUT', 128000000, 'CNY', ${startMs})`,
    );
    const { shape: before } = tables();
    assert.equal(before.get('hold'), now.get('hold'));
    const ledger = open(t, dataDir);
    ledger.befall('hold-1', 'DISPUTE', startMs);
    assert.equal(ledger.find('hold-1', startMs).status, 'DISPUTED');
    assert.deepEqual(tables().shape, now);
    assert.equal(tables().connection.pragma('user_version', { simple: true }), 1);
  });

  test('a transaction that fails leaves nothing', (t) => {
    const ledger = open(t);
    assert.throws(
      () =>
        ledger.together(() => {
          tell(ledger, 'FREEZE');
          throw new Error('the power fails');
        }),
      /the power fails/,
    );
    assert.deepEqual(ledger.holds(), []);
    assert.deepEqual(ledger.outbox.after(0), []);
    assert.equal(ledger.countAttempt(instruction('FREEZE')), 1);
  });

  test('the file is its owner\u2019s alone, and one from a newer artseal is left alone', (t) => {
    const dataDir = temporaryFolder(t);
    openLedger(dataDir, newSecret).close();
    const file = join(dataDir, ledgerFileName);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const connection = new Sqlite(file);
    connection.pragma('user_version = 99');
    connection.close();
    assert.throws(() => openLedger(dataDir, newSecret), /schema 99/);
  });

  test('what was answered is there after a kill -9', async (t) => {
    const dataDir = temporaryFolder(t);
    const module = (path: string) => JSON.stringify(join(import.meta.dirname, path));
    const program = `
      import { writeSync } from 'node:fs';
      const { openLedger } = await import(${module('../../src/payments/simulated/ledger.ts')});
      const { instruction, order, startMs } = await import(${module('simulated-support.ts')});
      const ledger = openLedger(process.argv[1], () => Buffer.alloc(32, 1));
      for (let n = 1; n <= 10_000; n += 1) {
        const told = instruction('FREEZE', order(String(n)));
        ledger.countAttempt(told);
        ledger.carryOut(told, { verdict: 'CONSENTED', holdLastsMs: 1_000 }, startMs);
        writeSync(1, n + '\\n');
      }`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      if (output.length > 60) child.kill('SIGKILL');
    });
    const [, signal] = await once(child, 'close');
    assert.equal(signal, 'SIGKILL');
    const answered = output.split('\n').slice(0, -1);
    const holds = open(t, dataDir).holds();
    assert.deepEqual(
      holds.slice(0, answered.length).map(({ holdId }) => holdId),
      answered.map((n) => `hold-${n}`),
    );
    assert.ok(holds.every(({ status }) => status === 'HELD'));
  });
});
