import type { Clock } from '../src/domain/clock.ts';
import type { PaymentSnapshot } from '../src/domain/payment.ts';
import {
  type Notification,
  type PaymentInstruction,
  type PaymentOrder,
  type PaymentProvider,
  ProviderFailure,
} from '../src/payments/provider.ts';
import { type Books, openBooks } from '../src/payments/simulated/books.ts';
import {
  advance,
  carryOut,
  type Hold,
  happen,
  type MoneyEvent,
  recordSending,
  snapshotOf,
  type Verdict,
} from '../src/payments/simulated/hold.ts';
import type { InstructionFault, Script } from './faults.ts';

/** The delay between a change and its notification, in milliseconds. */
const notificationDelayMs = 20;
/** The longest timer, in milliseconds. The wall clock may jump, so the provider must read it again. */
const sleepMaxMs = 3_600_000;
/** The delay after each failed attempt to send a notification, in milliseconds. After the last it is dropped. */
const retryDelaysMs: readonly number[] = [1_000, 5_000, 30_000, 120_000];

/** The error for an instruction that arrives again, if the script has `repeats: 'REFUSED'`. */
export class DuplicateKey extends Error {
  override name = 'DuplicateKey';
}

interface FaultyProviderOptions {
  /** The file of its database. */
  readonly file: string;
  readonly clock: Clock;
  readonly script: Script;
  /** Sends a notification. Rejects if the provider must retry. */
  readonly deliver: (notification: Notification) => Promise<void>;
}

/** A connection of the service to the provider. Closing it does not close the provider. */
export interface FaultyConnection extends PaymentProvider {
  /** Simulates a crash of the service: no call of this connection settles any more. */
  cut(): void;
}

/** A run of the provider, from opening its database to closing it. */
interface Run {
  readonly books: Books;
  /** Resolves after `ms`; never, if the run ends before. */
  sleep(ms: number): Promise<void>;
  isOver(): boolean;
  end(): void;
}

/** Opens the simulated payment provider with its file. It has faults from a script, and can be killed and reopened. */
export function openFaultyProvider(options: FaultyProviderOptions) {
  const { file, clock, deliver } = options;
  let { script } = options;
  let cancelTimer = () => {};
  let notifications = 0;
  let current: Run | undefined = openRun(file, clock);

  function running(): Run {
    if (current === undefined) throw new Error('The simulated provider is not running.');
    return current;
  }
  const sleepMsUntil = (atMs: number) => Math.min(Math.max(atMs - clock.nowMs(), 1), sleepMaxMs);
  function setTimer({ books }: Run): void {
    cancelTimer();
    const [next] = books.planned(1);
    const atMs = next?.plan[0]?.atMs;
    if (next !== undefined && atMs !== undefined) {
      cancelTimer = clock.after(sleepMsUntil(atMs), () => change(next, () => {}));
    }
  }
  /** Changes a hold after its due events. Sends a notification if its money moved. */
  function change<T>(order: Pick<Hold, 'holdId' | 'escrowId'>, apply: (hold: Hold) => T): T {
    const run = running();
    const { result, hasMoved } = run.books.change(order, (hold) => {
      const before = stateOf(hold);
      advance(hold, clock.nowMs());
      const result = apply(hold);
      return { result, hasMoved: stateOf(hold) !== before };
    });
    setTimer(run);
    if (hasMoved) {
      notifications += 1;
      const notification = { eventId: `sim-evt-${notifications}`, about: { holdId: order.holdId } };
      void notify(run, notification);
    }
    return result;
  }
  async function notify(run: Run, notification: Notification): Promise<void> {
    const fault = script.notification(notification);
    if (fault.kind === 'LOST') return;
    await run.sleep(notificationDelayMs + (fault.kind === 'LATE' ? fault.ms : 0));
    if (fault.kind === 'DUPLICATE') void deliver(notification).catch(() => {});
    for (const delayMs of retryDelaysMs) {
      if (
        await deliver(notification).then(
          () => true,
          () => false,
        )
      )
        return;
      await run.sleep(delayMs);
    }
  }
  function deliverLater(run: Run, ms: number, instruction: PaymentInstruction): void {
    void run
      .sleep(ms)
      .then(() => change(instruction, (hold) => execute(hold, instruction, { kind: 'NONE' })));
  }
  function execute(hold: Hold, instruction: PaymentInstruction, fault: InstructionFault): PaymentSnapshot {
    const course = script.course?.(instruction) ?? {};
    const shortened = fault.kind === 'SHORT_HOLD' ? { ...course, holdLastsMs: fault.ms } : course;
    return carryOut(hold, instruction, { verdict: verdictOf(fault), course: shortened }, clock.nowMs());
  }
  async function receive(
    instruction: PaymentInstruction,
    choose: () => InstructionFault,
  ): Promise<PaymentSnapshot> {
    const run = running();
    const { fault, payment } = change(instruction, (hold) => {
      const { instructionId } = instruction;
      recordSending(hold, instruction);
      const hasArrived = hold.instructions[instructionId]?.outcome !== undefined;
      if (script.repeats === 'REFUSED' && hasArrived)
        throw new DuplicateKey(`The instruction id ${instructionId} was used before.`);
      const chosen = choose();
      return { fault: chosen, payment: isExecuted(chosen) ? execute(hold, instruction, chosen) : undefined };
    });
    switch (fault.kind) {
      case 'KEPT_BACK': {
        const next = await fault.until;
        return run.isOver() ? never() : receive(instruction, () => next);
      }
      case 'SILENT':
        return never();
      case 'LATE_REQUEST':
      case 'DUPLICATE_REQUEST':
        deliverLater(run, fault.ms, instruction);
    }
    if (payment === undefined || fault.kind === 'LOST_ANSWER') throw connectionLost();
    const reported = report(instruction, payment);
    if (fault.kind === 'SLOW') await run.sleep(fault.ms);
    return reported;
  }
  async function lookUp(order: PaymentOrder): Promise<PaymentSnapshot> {
    const run = running();
    const fault = script.lookUp(order);
    if (fault.kind === 'LOST') throw connectionLost();
    const payment = report(order, change(order, snapshotOf));
    if (fault.kind === 'SILENT') return never();
    if (fault.kind === 'SLOW') await run.sleep(fault.ms);
    return payment;
  }
  const report = (order: PaymentOrder, truth: PaymentSnapshot) => script.report?.(order, truth) ?? truth;

  function kill(): void {
    cancelTimer();
    current?.end();
    current = undefined;
  }

  setTimer(current);
  return {
    /** Opens a connection, which survives kills of the provider. */
    connect: () =>
      connectTo({
        instruct: (instruction) => receive(instruction, () => script.instruction(instruction)),
        lookUp,
      }),
    /** All holds, including those that were cancelled before they were made. */
    holds: () => {
      const { books } = running();
      for (const hold of books.all()) change(hold, () => {});
      return books.all().filter(({ status }) => status !== 'ABSENT');
    },
    /** Applies an event to a hold. An event that its status does not allow changes nothing. */
    befall: (holdId: string, event: MoneyEvent) => {
      const hold = running()
        .books.all()
        .find((one) => one.holdId === holdId);
      if (hold !== undefined) change(hold, (found) => happen(found, event, clock.nowMs()));
    },
    /** Changes the script. */
    follow: (next: Script) => {
      script = next;
    },
    /** Simulates a crash: calls in flight never settle, notifications are lost, later calls reject. */
    kill,
    /** Opens it again with the same file. */
    reopen: () => {
      kill();
      current = openRun(file, clock);
      setTimer(current);
    },
    close: kill,
  };
}

function openRun(file: string, clock: Clock): Run {
  const books = openBooks(file);
  const waiting = new Set<() => void>();
  let isOver = false;
  return {
    books,
    sleep: (ms) =>
      new Promise((resolve) => {
        if (isOver) return;
        const cancel = clock.after(ms, () => {
          waiting.delete(cancel);
          resolve();
        });
        waiting.add(cancel);
      }),
    isOver: () => isOver,
    end: () => {
      isOver = true;
      for (const cancel of waiting) cancel();
      books.close();
    },
  };
}

/** The calls of a connection. */
interface ProviderCalls {
  instruct(instruction: PaymentInstruction): Promise<PaymentSnapshot>;
  lookUp(order: PaymentOrder): Promise<PaymentSnapshot>;
}

function connectTo({ instruct, lookUp }: ProviderCalls): FaultyConnection {
  const closing = new AbortController();
  let isCut = false;

  async function call(signal: AbortSignal, send: () => Promise<PaymentSnapshot>): Promise<PaymentSnapshot> {
    if (isCut) return never();
    const ended = AbortSignal.any([signal, closing.signal]);
    ended.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      ended.addEventListener('abort', () => reject(ended.reason));
    });
    const [outcome] = await Promise.allSettled([Promise.race([send(), aborted])]);
    if (isCut) return never();
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  }

  return {
    checkAccess: async () => ({ kind: 'ACCEPTED' }),
    check: () => [],
    instruct: (instruction, signal) => call(signal, () => instruct(instruction)),
    lookUp: (order, signal) => call(signal, () => lookUp(order)),
    notificationMethod: 'POST',
    readNotification: () => {
      throw new Error('The simulated provider does not send notifications over HTTP.');
    },
    close: async () => closing.abort(new Error('The connection to the simulated provider is closed.')),
    cut: () => {
      isCut = true;
    },
  };
}

/** The part of a hold whose change causes a notification. */
const stateOf = ({ status, afterPayout = [] }: Hold) => `${status} ${afterPayout.length}`;

function verdictOf({ kind }: InstructionFault): Verdict {
  if (kind === 'DECLINE') return 'DECLINED';
  return kind === 'REFUSE' ? 'REFUSED' : 'CONSENTED';
}

function isExecuted(fault: InstructionFault): boolean {
  if (fault.kind === 'SILENT') return fault.carriedOut;
  return !['LOST_REQUEST', 'LATE_REQUEST', 'KEPT_BACK'].includes(fault.kind);
}

function connectionLost(): Error {
  return new ProviderFailure('UNREACHABLE', 'The connection to the simulated provider broke.');
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
