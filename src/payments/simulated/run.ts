import { randomBytes } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { type PaymentInstruction, type PaymentOrder, ProviderFailure } from '../provider.ts';
import type { Call } from './calls.ts';
import type { MoneyEvent } from './course.ts';
import { createDeliveries } from './deliveries.ts';
import type { InstructionFault, LookUpFault, Script } from './faults.ts';
import type { SimulatedHold } from './hold-rows.ts';
import { openLedger } from './ledger.ts';
import { type SignedNotification, signNotification } from './notifications.ts';
import type { Verdict } from './rules.ts';
import { createTimers } from './timers.ts';

/** How long a hold lasts, in milliseconds. */
export const holdLastsMs = 7 * 24 * 60 * 60 * 1000;
/** How long it sleeps at most before it looks what is due: the wall clock may be set. */
const sleepMaxMs = 60 * 60 * 1000;
const secretBytes = 32;

/** An instruction came under an id that has been used, where the script has those refused. */
export class DuplicateKey extends Error {
  override name = 'DuplicateKey';
}

/** What a run needs. */
export interface RunOptions {
  /** A folder that exists; the simulator has a file of its own in it. */
  readonly dataDir: string;
  readonly clock: Clock;
  /** Signs notifications in a file that is new; others keep theirs. Random bytes if not given. */
  readonly secret?: Uint8Array;
  /** Posts a notification: resolves when its receiver has taken it; rejects, and it is tried again. */
  readonly deliver: (notification: SignedNotification, signal: AbortSignal) => Promise<void>;
}

/** The simulator from an opening of its file to its end. */
export interface Run {
  readonly secret: Uint8Array;
  /** Meets a call. Returns what calls off its answer. */
  instruct(instruction: PaymentInstruction, call: Call<PaymentSnapshot>): (() => void) | undefined;
  /** The same for a look-up; throws where the connection breaks. */
  lookUp(order: PaymentOrder, call: Call<PaymentSnapshot>): (() => void) | undefined;
  holds(): SimulatedHold[];
  lapse(holdId: string): void;
  befall(holdId: string, event: MoneyEvent): void;
  /** Lets go of the file; no answer and no notification comes any more. */
  end(): void;
}

/** Opens the file, and sends the notifications that it still has. The script may change on the way. */
export function openRun({ dataDir, clock, secret, deliver }: RunOptions, script: () => Script): Run {
  const ledger = openLedger(dataDir, () => secret ?? randomBytes(secretBytes));
  const timers = createTimers(clock);
  const deliveries = createDeliveries({
    outbox: ledger.outbox,
    timers,
    script,
    send: async (notification, signal) => {
      const nowS = Math.floor(clock.nowMs() / 1000);
      await deliver(signNotification(ledger.secret, notification, nowS), signal);
    },
  });
  let wakeUp: (() => void) | undefined;

  /** Follows each change, once it is written down. */
  function changed(): void {
    deliveries.pickUp();
    wakeUp?.();
    const nextMs = ledger.nextDueMs();
    if (nextMs === undefined) return;
    const sleepMs = Math.min(Math.max(nextMs - clock.nowMs(), 1), sleepMaxMs);
    wakeUp = timers.after(sleepMs, catchUp);
  }
  function catchUp(): void {
    ledger.catchUp(clock.nowMs());
    changed();
  }
  function carryOut(instruction: PaymentInstruction, fault: InstructionFault): PaymentSnapshot {
    const course = script().course?.(instruction) ?? {};
    const lastsMs = fault.kind === 'SHORT_HOLD' ? fault.ms : (course.holdLastsMs ?? holdLastsMs);
    const treatment = { verdict: verdictOf(fault), holdLastsMs: lastsMs, course };
    return ledger.carryOut(instruction, treatment, clock.nowMs());
  }
  function arriveAfter(ms: number, instruction: PaymentInstruction, fault: InstructionFault): void {
    timers.after(ms, () => {
      carryOut(instruction, fault);
      changed();
    });
  }
  /** Carries an instruction out, or not, and answers its call, or not, as is chosen in the same transaction. */
  function meet(
    instruction: PaymentInstruction,
    choose: () => InstructionFault,
    call: Call<PaymentSnapshot>,
  ): (() => void) | undefined {
    const { fault, payment } = ledger.together(() => {
      if (script().repeats === 'REFUSED' && ledger.hasArrived(instruction.instructionId)) {
        throw new DuplicateKey(`${instruction.instructionId} has been used.`);
      }
      const chosen = choose();
      return { fault: chosen, payment: arrives(chosen) ? carryOut(instruction, chosen) : undefined };
    });
    changed();
    // On its way whatever becomes of the call.
    if (arrivesLater(fault)) arriveAfter(fault.ms, instruction, fault);
    if (fault.kind === 'KEPT_BACK') return keepBack(instruction, fault.until, call);
    if (fault.kind === 'SILENT') return undefined;
    if (payment !== undefined && fault.kind !== 'LOST_ANSWER')
      return answer(instruction, payment, fault, call);
    call.fail(connectionBroken());
    return undefined;
  }
  function keepBack(
    instruction: PaymentInstruction,
    until: Promise<InstructionFault>,
    call: Call<PaymentSnapshot>,
  ): undefined {
    void until.then(
      (fault) => timers.now(() => meet(instruction, () => fault, call)),
      (error) => timers.now(() => call.fail(error)),
    );
  }
  function answer(
    question: PaymentInstruction | PaymentOrder,
    truth: PaymentSnapshot,
    fault: InstructionFault | LookUpFault,
    call: Call<PaymentSnapshot>,
  ): (() => void) | undefined {
    const payment = script().report?.(question, truth) ?? truth;
    if (fault.kind === 'SLOW') return timers.after(fault.ms, () => call.answer(payment));
    call.answer(payment);
    return undefined;
  }

  catchUp();
  return {
    secret: ledger.secret,
    instruct: (instruction, call) =>
      meet(instruction, () => script().instruction(instruction, ledger.countAttempt(instruction)), call),
    lookUp: (order, call) => {
      const fault = script().lookUp(order);
      if (fault.kind === 'LOST') throw connectionBroken();
      const payment = ledger.find(order.holdId, clock.nowMs());
      changed();
      return fault.kind === 'SILENT' ? undefined : answer(order, payment, fault, call);
    },
    holds: () => {
      catchUp();
      return ledger.holds();
    },
    lapse: (holdId) => {
      ledger.lapse(holdId);
      changed();
    },
    befall: (holdId, event) => {
      ledger.befall(holdId, event, clock.nowMs());
      changed();
    },
    end: () => {
      timers.end();
      deliveries.end();
      ledger.close();
    },
  };
}

function verdictOf({ kind }: InstructionFault): Verdict {
  if (kind === 'DECLINE') return 'DECLINED';
  return kind === 'REFUSE' ? 'REFUSED' : 'CONSENTED';
}

function arrives(fault: InstructionFault): boolean {
  if (fault.kind === 'SILENT') return fault.carriedOut;
  return !['LOST_REQUEST', 'LATE_REQUEST', 'KEPT_BACK'].includes(fault.kind);
}

function arrivesLater(
  fault: InstructionFault,
): fault is InstructionFault & { readonly kind: 'LATE_REQUEST' | 'DUPLICATE_REQUEST' } {
  return fault.kind === 'LATE_REQUEST' || fault.kind === 'DUPLICATE_REQUEST';
}

function connectionBroken(): Error {
  return new ProviderFailure('UNREACHABLE', 'The connection to the simulated provider broke.');
}
