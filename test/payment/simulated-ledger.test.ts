import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { type Ledger, openLedger, type Treatment } from '../../src/payment/simulated/ledger.ts';
import { ledgerFileName } from '../../src/payment/simulated/ledger-file-name.ts';
import { statusAfter } from '../../src/payment/simulated/rules.ts';
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

describe('rules of the simulated institution', () => {
  const statuses: PaymentStatus[] = ['ABSENT', 'VOID', 'HELD', 'PAID_OUT', 'RETURNED', 'LAPSED'];
  const expected: Record<InstructionKind, PaymentStatus[]> = {
    FREEZE: ['HELD', 'VOID', 'HELD', 'PAID_OUT', 'RETURNED', 'LAPSED'],
    RELEASE: ['ABSENT', 'VOID', 'PAID_OUT', 'PAID_OUT', 'RETURNED', 'LAPSED'],
    REFUND: ['ABSENT', 'VOID', 'RETURNED', 'PAID_OUT', 'RETURNED', 'LAPSED'],
    CANCEL: ['VOID', 'VOID', 'RETURNED', 'PAID_OUT', 'RETURNED', 'LAPSED'],
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

describe('ledger of the simulated institution', () => {
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
    assert.equal(ledger.nextExpiryMs(), startMs + 1_000);
    assert.equal(ledger.find('hold-1', startMs + 999).status, 'HELD');
    assert.equal(tell(ledger, 'RELEASE', '', startMs + 1_000), 'LAPSED');
    assert.equal(ledger.find('hold-1', startMs).status, 'LAPSED');
    assert.equal(ledger.nextExpiryMs(), undefined);
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
      const { openLedger } = await import(${module('../../src/payment/simulated/ledger.ts')});
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
