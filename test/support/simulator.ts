import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { InstructionFault, LookUpFault, Script } from '../../simulation/faults.ts';
import { openFaultyProvider } from '../../simulation/faulty-provider.ts';
import type { Clock } from '../../src/domain/clock.ts';
import type { InstructionKind } from '../../src/domain/escrow.ts';
import type { PaymentStatus } from '../../src/domain/payment.ts';
import { ApiError } from '../../src/domain/reason.ts';
import { systemClock } from '../../src/operations/registry.ts';
import type {
  Notification,
  PaymentInstruction,
  PaymentOrder,
  PaymentProvider,
  SentNotification,
} from '../../src/payments/provider.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The faults of the simulator's script that tests choose by a word. */
const faults = {
  CONFIRMED: { kind: 'NONE' },
  DECLINED: { kind: 'REFUSE' },
  LOST: { kind: 'LOST_REQUEST' },
  ANSWER_LOST: { kind: 'LOST_ANSWER' },
  SILENT: { kind: 'SILENT', carriedOut: false },
} as const satisfies Record<string, InstructionFault>;

/** How the provider treats an instruction. One that is kept back waits for `answer` or `fail`. */
export type Treatment = keyof typeof faults | 'KEPT_BACK' | InstructionFault;

/** How the provider treats instructions of each kind; by default it carries them out. */
export type Treatments = Readonly<Partial<Record<InstructionKind, Treatment>>>;

/** What the provider reports about an order instead of the truth. */
export type Report = NonNullable<Script['report']>;

/** What a notification may differ in. */
export interface NotificationOptions {
  readonly eventId?: string;
  /** What it says beyond event and order; a text takes the place of all that it says. */
  readonly claims?: object | string;
  /** Another one makes a forgery. */
  readonly secret?: string;
}

/** A notification as it is posted. */
export interface SignedNotification {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The header of the secret that makes a notification genuine. The tests of each provider have its signatures. */
const secretHeader = 'sim-secret';
const ownSecret = 'secret-of-the-simulator';

/** Reads a notification as PaymentProvider.readNotification does. */
function readNotification({ headers, body }: SentNotification): Notification {
  if (headers[secretHeader]?.join() !== ownSecret) {
    throw new ApiError('SIGNATURE_INVALID', 'The notification is not one of the provider.');
  }
  try {
    const { id, holdId } = JSON.parse(body.toString());
    return { eventId: id, about: typeof holdId === 'string' ? { holdId } : undefined };
  } catch {
    throw new ApiError('INVALID_JSON', 'The notification must be JSON.');
  }
}

/** Where a hold may stand after an instruction was carried out. */
const after: Readonly<Record<'FREEZE' | 'RELEASE' | 'REFUND', readonly PaymentStatus[]>> = {
  FREEZE: ['HELD', 'PAID_OUT', 'RETURNED', 'LAPSED'],
  RELEASE: ['PAID_OUT'],
  REFUND: ['RETURNED'],
};

/**
 * Opens the simulated provider with its own database, controlled by the test, which also makes its notifications. Closing it
 * ends the calls that are running; then another service can use it. It is closed after the test.
 */
export function openTestProvider(
  test: Pick<TestContext, 'after'>,
  first: Treatments = {},
  clock: Clock = systemClock,
) {
  let treatments = first;
  let lookUpFault: Script['lookUp'] = () => ({ kind: 'NONE' });
  const truth: Report = (_, payment) => payment;
  let report = truth;
  let keptBack = Promise.withResolvers<InstructionFault>();
  const arrivals = new EventEmitter<{ instruction: [] }>();
  const instructions: PaymentInstruction[] = [];
  const lookUps: (PaymentOrder & { atMs: number })[] = [];

  function faultOf(treatment: Treatment): InstructionFault {
    if (treatment === 'KEPT_BACK') return { kind: 'KEPT_BACK', until: keptBack.promise };
    return typeof treatment === 'string' ? faults[treatment] : treatment;
  }
  const script: Script = {
    instruction: (instruction) => {
      instructions.push(instruction);
      arrivals.emit('instruction');
      return faultOf(treatments[instruction.kind] ?? 'CONFIRMED');
    },
    lookUp: (order) => {
      lookUps.push({ ...order, atMs: clock.nowMs() });
      return lookUpFault(order);
    },
    notification: () => ({ kind: 'LOST' }),
    report: (...answer) => report(...answer),
  };
  const file = join(temporaryFolder(test), 'provider.db');
  const simulator = openFaultyProvider({ file, clock, script, deliver: async () => {} });
  test.after(() => simulator.close());
  let connection = simulator.connect();

  /** Ends the waiting of what is kept back; what waited has been met when it resolves. */
  async function endKeeping(end: (waiting: PromiseWithResolvers<InstructionFault>) => void): Promise<void> {
    const ended = keptBack;
    keptBack = Promise.withResolvers();
    end(ended);
    await ended.promise.catch(() => {});
  }
  function holdIdOf(escrowId: string): string {
    const instruction = instructions.find((one) => one.escrowId === escrowId);
    if (instruction === undefined) throw new Error(`The provider has not heard of ${escrowId}.`);
    return instruction.holdId;
  }

  const provider: PaymentProvider = {
    checkAccess: (signal) => connection.checkAccess(signal),
    check: (parties) => connection.check(parties),
    instruct: (instruction, signal) => connection.instruct(instruction, signal),
    lookUp: (order, signal) => connection.lookUp(order, signal),
    notificationMethod: connection.notificationMethod,
    readNotification,
    close: async () => {
      await connection.close();
      connection = simulator.connect();
    },
  };
  return {
    ...provider,
    /** All instructions that came, repeated ones too, in their order. */
    instructions,
    instructionsOf: (escrowId: string) => instructions.filter((one) => one.escrowId === escrowId),
    /** All look-ups that came, with their times in Unix milliseconds. */
    lookUps,
    /** Resolves when an instruction of this kind has come. */
    instructed: async (kind: InstructionKind) => {
      while (!instructions.some((instruction) => instruction.kind === kind)) {
        await once(arrivals, 'instruction');
      }
    },
    /** Treats instructions of these kinds in this way from now on. */
    treat: (changed: Treatments) => {
      treatments = { ...treatments, ...changed };
    },
    /** Carries out and answers all that is kept back; resolves when that is done. */
    answer: () => endKeeping(({ resolve }) => resolve(faults.CONFIRMED)),
    /** Breaks the connection of all instructions that are kept back: they never arrived. */
    fail: (error: Error) => endKeeping(({ reject }) => reject(error)),
    /** Treats look-ups in this way from now on, all of them or each by a function. */
    treatLookUps: (fault: LookUpFault | Script['lookUp']) => {
      lookUpFault = typeof fault === 'function' ? fault : () => fault;
    },
    /** Reports this from now on, or the truth again. */
    report: (next: Report = truth) => {
      report = next;
    },
    /** How many holds have been made, paid out or given back, each of which can happen to a hold but once. */
    carriedOut: (kind: keyof typeof after) =>
      simulator.holds().filter(({ status }) => after[kind].includes(status)).length,
    statusOf: (escrowId: string): PaymentStatus => {
      const holdId = holdIdOf(escrowId);
      return simulator.holds().find((hold) => hold.holdId === holdId)?.status ?? 'ABSENT';
    },
    /** Lets the hold of an order run out. */
    lapse: (escrowId: string) => simulator.befall(holdIdOf(escrowId), 'LAPSE'),
    /** Returns a notification about an order, genuine by default, as it is posted. */
    notification: (
      escrowId: string,
      { eventId = randomUUID(), claims = {}, secret = ownSecret }: NotificationOptions = {},
    ) => {
      const event = { id: eventId, type: 'hold.changed', holdId: holdIdOf(escrowId) };
      const text = typeof claims === 'string' ? claims : JSON.stringify({ ...event, ...claims });
      return {
        headers: { 'content-type': 'application/json', [secretHeader]: secret },
        body: Buffer.from(text),
      };
    },
  };
}
