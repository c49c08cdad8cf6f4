import { createHmac, randomUUID } from 'node:crypto';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentSnapshot, PaymentStatus } from '../../src/domain/payment.ts';
import type { Institution, PaymentInstruction, PaymentOrder } from '../../src/payment/institution.ts';
import {
  readSigned,
  type SignedNotification,
  signatureHeader,
} from '../../src/payment/simulated/notifications.ts';

/**
 * What becomes of instructions of the one kind: they wait for `answer` or `fail`; they are carried out at
 * once, or declined; the connection breaks before they arrive, or after they were carried out; they arrive, are not
 * carried out and never answered.
 */
export type Treatment = 'HELD' | 'CONFIRMED' | 'DECLINED' | 'LOST' | 'ANSWER_LOST' | 'SILENT';

/** An institution in memory that keeps the port's contract; the test decides what becomes of one kind. */
export interface HeldInstitution extends Institution {
  /** All instructions that came, of every kind and repeated ones too, in their order. */
  readonly instructions: readonly PaymentInstruction[];
  /** All questions that came. */
  readonly lookUps: readonly PaymentOrder[];
  /** Resolves when so many instructions of the one kind have come. */
  instructed(count: number): Promise<void>;
  /** Carries all instructions that wait out, or declines them, and answers them. */
  answer(verdict: 'CONFIRMED' | 'DECLINED'): void;
  /** Breaks the connection of all instructions that wait: they never arrived. */
  fail(error: Error): void;
  /** Treats instructions of the one kind, or of another, otherwise from now on. */
  treat(treatment: Treatment, of?: InstructionKind): void;
  /** Answers no question from now on, or all of them again. */
  answersQuestions(does: boolean): void;
  /** How often an instruction of this kind moved money, or made sure that none is. */
  carriedOut(kind: InstructionKind): number;
  /** Where the money of an order stands, by its escrow id. */
  standingOf(escrowId: string): PaymentStatus;
  /** Lets the hold of an order run out. */
  lapse(escrowId: string): void;
  /** A genuine notification about an order, as far as nothing else is asked for. */
  notification(escrowId: string, options?: NotificationOptions): SignedNotification;
}

/** What a notification may differ in. */
export interface NotificationOptions {
  readonly eventId?: string;
  /** What it says beyond event and order; a text takes the place of all that it says. */
  readonly claims?: object | string;
  /** When it was signed, Unix seconds. */
  readonly nowS?: number;
  /** Of the signature; another one makes a forgery. */
  readonly secret?: Uint8Array;
}

/** Where each instruction takes the money from; what does not apply leaves it where it is. */
const moves: Readonly<Record<InstructionKind, Readonly<Partial<Record<PaymentStatus, PaymentStatus>>>>> = {
  FREEZE: { ABSENT: 'HELD' },
  RELEASE: { HELD: 'PAID_OUT' },
  REFUND: { HELD: 'RETURNED' },
  CANCEL: { ABSENT: 'VOID', HELD: 'RETURNED' },
};

/** A call whose answer is kept back. */
interface Waiting {
  readonly instruction: PaymentInstruction;
  readonly answered: PromiseWithResolvers<PaymentSnapshot>;
}

/** An order at the institution. */
interface Book {
  readonly order: PaymentOrder;
  standing: PaymentStatus;
}

const heldSecret = Buffer.from('the secret of the held institution');

/** Makes an institution that treats `kind` as told, and carries all others out at once. */
export function createHeldInstitution(kind: InstructionKind, first: Treatment = 'HELD'): HeldInstitution {
  const treatments = new Map([[kind, first]]);
  let hears = true;
  let waiting: Waiting[] = [];
  let watchers: { readonly count: number; readonly resolve: () => void }[] = [];
  const books = new Map<string, Book>();
  const ended = new Set<string>();
  const moved: InstructionKind[] = [];
  const instructions: PaymentInstruction[] = [];
  const lookUps: PaymentOrder[] = [];
  const countOfKind = () => instructions.filter((instruction) => instruction.kind === kind).length;

  function bookOf(order: PaymentOrder): Book {
    const book = books.get(order.holdId) ?? { order, standing: 'ABSENT' };
    books.set(order.holdId, book);
    return book;
  }
  function bookFor(escrowId: string): Book {
    const book = [...books.values()].find(({ order }) => order.escrowId === escrowId);
    if (book === undefined) throw new Error(`The institution has not heard of ${escrowId}.`);
    return book;
  }
  function holdOf(asked: PaymentOrder): PaymentSnapshot {
    const { order, standing } = bookOf(asked);
    if (standing === 'ABSENT' || standing === 'VOID') return { standing };
    const { amount, currency, holdId } = order;
    return { standing, amount, currency, reference: `held-${holdId}` };
  }
  function carryOut(instruction: PaymentInstruction, declined: boolean): PaymentSnapshot {
    if (!ended.has(instruction.instructionId)) {
      ended.add(instruction.instructionId);
      const book = bookOf(instruction);
      const after = moves[instruction.kind][book.standing];
      if (declined && instruction.kind === 'FREEZE' && book.standing === 'ABSENT') book.standing = 'VOID';
      if (!declined && after !== undefined) {
        book.standing = after;
        moved.push(instruction.kind);
      }
    }
    return holdOf(instruction);
  }
  function hold(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot> {
    const answered = Promise.withResolvers<PaymentSnapshot>();
    waiting.push({ instruction, answered });
    signal.addEventListener('abort', () => answered.reject(signal.reason));
    return answered.promise;
  }
  function meet(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot> {
    const broken = new Error('The connection to the held institution broke.');
    switch (treatments.get(instruction.kind) ?? 'CONFIRMED') {
      case 'CONFIRMED':
        return Promise.resolve(carryOut(instruction, false));
      case 'DECLINED':
        return Promise.resolve(carryOut(instruction, true));
      case 'LOST':
        return Promise.reject(broken);
      case 'ANSWER_LOST':
        carryOut(instruction, false);
        return Promise.reject(broken);
      case 'SILENT':
        return never();
      case 'HELD':
        return hold(instruction, signal);
    }
  }
  function takeWaiting(): Waiting[] {
    const taken = waiting;
    waiting = [];
    return taken;
  }

  return {
    instructions,
    lookUps,
    check: () => [],
    instruct: (instruction, signal) => {
      instructions.push(instruction);
      bookOf(instruction);
      const met = meet(instruction, signal);
      for (const { count, resolve } of watchers) if (countOfKind() >= count) resolve();
      return met;
    },
    lookUp: (order) => {
      lookUps.push(order);
      return hears ? Promise.resolve(holdOf(order)) : never();
    },
    readNotification: (notification) => readSigned(heldSecret, notification),
    close: async () => {},
    instructed: (count) => {
      if (countOfKind() >= count) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      watchers = [...watchers, { count, resolve }];
      return promise;
    },
    answer: (verdict) => {
      for (const { instruction, answered } of takeWaiting()) {
        answered.resolve(carryOut(instruction, verdict === 'DECLINED'));
      }
    },
    fail: (error) => {
      for (const { answered } of takeWaiting()) answered.reject(error);
    },
    treat: (treatment, of = kind) => {
      treatments.set(of, treatment);
    },
    answersQuestions: (does) => {
      hears = does;
    },
    carriedOut: (counted) => moved.filter((one) => one === counted).length,
    standingOf: (escrowId) => bookFor(escrowId).standing,
    lapse: (escrowId) => {
      const book = bookFor(escrowId);
      if (book.standing === 'HELD') book.standing = 'LAPSED';
    },
    notification: (escrowId, { eventId = randomUUID(), claims = {}, nowS, secret = heldSecret } = {}) => {
      const { holdId } = bookFor(escrowId).order;
      const event = { id: eventId, type: 'hold.changed', holdId };
      const body = Buffer.from(typeof claims === 'string' ? claims : JSON.stringify({ ...event, ...claims }));
      const signedAtS = nowS ?? Math.floor(Date.now() / 1000);
      const mac = createHmac('sha256', secret).update(`${signedAtS}.`).update(body).digest('hex');
      const headers = { 'content-type': 'application/json', [signatureHeader]: `t=${signedAtS},v1=${mac}` };
      return { headers, body };
    },
  };
}

function never(): Promise<never> {
  return Promise.withResolvers<never>().promise;
}
