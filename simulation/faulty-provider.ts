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

/** How long after a change its notification is sent, in milliseconds. */
const notificationDelayMs = 20;
/** How long it sleeps at most before it looks at the time again, in milliseconds: the wall clock may be set. */
const sleepMaxMs = 3_600_000;
/** How long it waits before it sends a notification again, in milliseconds; one that fails once more is lost. */
const retryDelaysMs: readonly number[] = [1_000, 5_000, 30_000, 120_000];

/** An instruction came under an id that was used before, where the script rejects such. */
export class DuplicateKey extends Error {
  override name = 'DuplicateKey';
}

/** What the provider works with. */
export interface FaultyProviderOptions {
  /** The file of its books. */
  readonly file: string;
  readonly clock: Clock;
  readonly script: Script;
  /** Rejects if the notification has to be sent again. */
  readonly deliver: (notification: Notification) => Promise<void>;
}

/** A payment provider on the books of the simulated one, whose messages suffer what a script decides. It can be killed. */
export interface FaultyProvider {
  /** A connection, which stays while the provider is killed and opened again. */
  connect(): FaultyConnection;
  /** All holds, those that were cancelled before they were made included. */
  holds(): readonly Hold[];
  /** Makes an event happen to a hold; one that does not fit its status changes nothing. */
  befall(holdId: string, event: MoneyEvent): void;
  /** Changes the script. */
  follow(script: Script): void;
  /** Ends it as a crash would: calls in flight are never answered, notifications are lost, later calls reject. */
  kill(): void;
  /** Opens it again on the same file. */
  reopen(): void;
  close(): void;
}

/** The provider as a service sees it. Closing the connection leaves the provider as it is. */
export interface FaultyConnection extends PaymentProvider {
  /** Ends the connection as a crash of the service would: none of its calls ever settles. */
  cut(): void;
}

/** The provider from an opening of its books to its end. */
interface Run {
  readonly books: Books;
  /** Resolves after so long, unless the run ends before. */
  sleep(ms: number): Promise<void>;
  isOver(): boolean;
  end(): void;
}

/** Opens the books in a file. */
export function openFaultyProvider(options: FaultyProviderOptions): FaultyProvider {
  const { file, clock, deliver } = options;
  let { script } = options;
  let cancelAlarm = () => {};
  let notifications = 0;
  let current: Run | undefined = openRun(file, clock);

  function running(): Run {
    if (current === undefined) throw new Error('The simulated provider does not run.');
    return current;
  }
  const sleepMsUntil = (atMs: number) => Math.min(Math.max(atMs - clock.nowMs(), 1), sleepMaxMs);
  function setAlarm({ books }: Run): void {
    cancelAlarm();
    const [next] = books.planned(1);
    const atMs = next?.plan[0]?.atMs;
    if (next !== undefined && atMs !== undefined) {
      cancelAlarm = clock.after(sleepMsUntil(atMs), () => change(next, () => {}));
    }
  }
  /** Changes a hold as of now, and notifies if its money has moved. */
  function change<T>(order: Pick<Hold, 'holdId' | 'escrowId'>, apply: (hold: Hold) => T): T {
    const run = running();
    const { result, hasMoved } = run.books.change(order, (hold) => {
      const before = stateOf(hold);
      advance(hold, clock.nowMs());
      const result = apply(hold);
      return { result, hasMoved: stateOf(hold) !== before };
    });
    setAlarm(run);
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
  function arriveLater(run: Run, ms: number, instruction: PaymentInstruction): void {
    void run.sleep(ms).then(() => change(instruction, (hold) => carry(hold, instruction, { kind: 'NONE' })));
  }
  function carry(hold: Hold, instruction: PaymentInstruction, fault: InstructionFault): PaymentSnapshot {
    const course = script.course?.(instruction) ?? {};
    const shortened = fault.kind === 'SHORT_HOLD' ? { ...course, holdLastsMs: fault.ms } : course;
    return carryOut(hold, instruction, { verdict: verdictOf(fault), course: shortened }, clock.nowMs());
  }
  async function meet(
    instruction: PaymentInstruction,
    choose: () => InstructionFault,
  ): Promise<PaymentSnapshot> {
    const run = running();
    const { fault, payment } = change(instruction, (hold) => {
      const { instructionId } = instruction;
      recordSending(hold, instruction);
      const hasArrived = hold.instructions[instructionId]?.outcome !== undefined;
      if (script.repeats === 'REFUSED' && hasArrived)
        throw new DuplicateKey(`${instructionId} was used before.`);
      const chosen = choose();
      return { fault: chosen, payment: arrives(chosen) ? carry(hold, instruction, chosen) : undefined };
    });
    switch (fault.kind) {
      case 'KEPT_BACK': {
        const next = await fault.until;
        return run.isOver() ? never() : meet(instruction, () => next);
      }
      case 'SILENT':
        return never();
      case 'LATE_REQUEST':
      case 'DUPLICATE_REQUEST':
        arriveLater(run, fault.ms, instruction);
    }
    if (payment === undefined || fault.kind === 'LOST_ANSWER') throw connectionBroken();
    const reported = report(instruction, payment);
    if (fault.kind === 'SLOW') await run.sleep(fault.ms);
    return reported;
  }
  async function lookUp(order: PaymentOrder): Promise<PaymentSnapshot> {
    const run = running();
    const fault = script.lookUp(order);
    if (fault.kind === 'LOST') throw connectionBroken();
    const payment = report(order, change(order, snapshotOf));
    if (fault.kind === 'SILENT') return never();
    if (fault.kind === 'SLOW') await run.sleep(fault.ms);
    return payment;
  }
  const report = (order: PaymentOrder, truth: PaymentSnapshot) => script.report?.(order, truth) ?? truth;

  function kill(): void {
    cancelAlarm();
    current?.end();
    current = undefined;
  }

  setAlarm(current);
  return {
    connect: () =>
      connectTo({
        instruct: (instruction) => meet(instruction, () => script.instruction(instruction)),
        lookUp,
      }),
    holds: () => {
      const { books } = running();
      for (const hold of books.all()) change(hold, () => {});
      return books.all().filter(({ status }) => status !== 'ABSENT');
    },
    befall: (holdId, event) => {
      const hold = running()
        .books.all()
        .find((one) => one.holdId === holdId);
      if (hold !== undefined) change(hold, (found) => happen(found, event, clock.nowMs()));
    },
    follow: (next) => {
      script = next;
    },
    kill,
    reopen: () => {
      kill();
      current = openRun(file, clock);
      setAlarm(current);
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

/** What a connection sends on. */
interface Verbs {
  instruct(instruction: PaymentInstruction): Promise<PaymentSnapshot>;
  lookUp(order: PaymentOrder): Promise<PaymentSnapshot>;
}

function connectTo({ instruct, lookUp }: Verbs): FaultyConnection {
  const closing = new AbortController();
  let isCut = false;

  async function call(signal: AbortSignal, send: () => Promise<PaymentSnapshot>): Promise<PaymentSnapshot> {
    if (isCut) return never();
    const over = AbortSignal.any([signal, closing.signal]);
    over.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      over.addEventListener('abort', () => reject(over.reason));
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
      throw new Error('Its notifications are not sent over HTTP.');
    },
    close: async () => closing.abort(new Error('The connection to the simulated provider is closed.')),
    cut: () => {
      isCut = true;
    },
  };
}

/** What of a hold is notified of when it changes. */
const stateOf = ({ status, afterPayout = [] }: Hold) => `${status} ${afterPayout.length}`;

function verdictOf({ kind }: InstructionFault): Verdict {
  if (kind === 'DECLINE') return 'DECLINED';
  return kind === 'REFUSE' ? 'REFUSED' : 'CONSENTED';
}

function arrives(fault: InstructionFault): boolean {
  if (fault.kind === 'SILENT') return fault.carriedOut;
  return !['LOST_REQUEST', 'LATE_REQUEST', 'KEPT_BACK'].includes(fault.kind);
}

function connectionBroken(): Error {
  return new ProviderFailure('UNREACHABLE', 'The connection to the simulated provider broke.');
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}
