import { isReturn, type PaymentSnapshot } from '../../domain/payment.ts';
import { ApiError } from '../../domain/reason.ts';
import { every, sleep } from '../../lib/timing.ts';
import {
  type PaymentInstruction,
  type PaymentProvider,
  ProviderFailure,
  type Surroundings,
} from '../provider.ts';
import { openBooks } from './books.ts';
import {
  advance,
  type CourseEvent,
  carryOut,
  type Hold,
  recordSending,
  snapshotOf,
  type Treatment,
} from './hold.ts';

/** How often it looks for what happened without an instruction, in milliseconds. */
const notifyEveryMs = 1_000;
/** How many holds are read at once. */
const batchSize = 100;

/** What the simulated provider works with. */
export interface SimulatedOptions extends Pick<Surroundings, 'clock' | 'notify'> {
  /** The file of its books, in a folder that exists. */
  readonly file: string;
}

/**
 * A provider for sandboxes: it moves no money, but keeps books that outlive the process. The ids of the parties decide what
 * goes wrong. It notifies of what happens without an instruction within a second: at least once, and again after a
 * restart. Closing it rejects the calls in flight and closes its file.
 */
export function createSimulatedProvider({ file, clock, notify }: SimulatedOptions): PaymentProvider {
  const books = openBooks(file);
  const closing = new AbortController();

  async function notifyDue(send: NonNullable<Surroundings['notify']>): Promise<void> {
    try {
      for (const hold of books.planned(batchSize)) {
        if (dueAtMs(hold) > clock.nowMs()) break;
        const { holdId } = hold;
        await send({ eventId: `${holdId}@${dueAtMs(hold)}`, about: { holdId } });
        if (closing.signal.aborted) return;
        // A kill before this sends the notification again.
        books.change(hold, (current) => advance(current, clock.nowMs()));
      }
    } catch {
      // The service is starting, or the disk is full: what is due stays due.
    }
  }

  function throwIfOver(signal: AbortSignal): void {
    signal.throwIfAborted();
    closing.signal.throwIfAborted();
  }

  /** Resolves after so long; rejects when the signal is aborted or the provider closed. */
  async function wait(ms: number, signal: AbortSignal): Promise<void> {
    await sleep(clock, ms, AbortSignal.any([signal, closing.signal]));
    throwIfOver(signal);
  }

  async function instruct(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot> {
    throwIfOver(signal);
    const { message, verdict = 'CONSENTED', course = {} } = behaviorFor(instruction);
    if (message === 'SILENT') await wait(silenceMs, signal);
    const payment = books.change(instruction, (hold) => {
      const isFirst = recordSending(hold, instruction);
      if (isFirst && message === 'LOST_REQUEST') return undefined;
      const answer = carryOut(hold, instruction, { verdict, course }, clock.nowMs());
      return isFirst && message === 'LOST_ANSWER' ? undefined : answer;
    });
    if (payment === undefined) {
      throw new ProviderFailure('UNREACHABLE', 'The connection to the simulated provider broke.');
    }
    if (message === 'SLOW') await wait(slowAnswerMs, signal);
    return payment;
  }

  const notifying =
    notify &&
    every(
      clock,
      () => notifyEveryMs,
      () => notifyDue(notify),
    );
  void notifying?.start();
  return {
    checkAccess: async () => ({ kind: 'ACCEPTED' }),
    check: () => [],
    instruct,
    lookUp: async (order, signal) => {
      throwIfOver(signal);
      return books.change(order, (hold) => {
        advance(hold, clock.nowMs());
        return snapshotOf(hold);
      });
    },
    notificationMethod: 'POST',
    readNotification: () => {
      throw new ApiError('SIGNATURE_INVALID', 'The simulated provider sends no notifications over HTTP.');
    },
    close: async () => {
      if (closing.signal.aborted) return;
      closing.abort(new Error('The simulated provider is closed.'));
      // A notification in flight ends without an effect.
      void notifying?.stop();
      books.close();
    },
  };
}

/** When something happens next to a hold without an instruction, in Unix milliseconds. */
const dueAtMs = ({ plan }: Hold): number => plan[0]?.atMs ?? Number.POSITIVE_INFINITY;

/**
 * What goes wrong with a message.
 *
 * - SILENT: the provider never answers and does nothing.
 * - LOST_REQUEST, LOST_ANSWER: the first sending never arrives, or its answer is lost.
 * - SLOW: the answer takes `slowAnswerMs`.
 */
type MessageFault = 'SILENT' | 'LOST_REQUEST' | 'LOST_ANSWER' | 'SLOW';

/** What differs from an instruction that is carried out. */
interface Behavior extends Partial<Treatment> {
  readonly message?: MessageFault;
}

/** How long a slow answer takes, in milliseconds. */
const slowAnswerMs = 3_000;
/** Longer than any call waits for an answer, in milliseconds. */
const silenceMs = 86_400_000;
const shortHoldMs = 5_000;
/** Less than a day, so that the service announces the end of the hold. */
const dayHoldMs = 20 * 3_600_000;
/** The time until an event, and from one event to the next, in milliseconds. */
const stepMs = 5_000;

const inSteps = (...events: CourseEvent['event'][]): CourseEvent[] =>
  events.map((event, index) => ({ event, afterMs: (index + 1) * stepMs }));
const buyer = (...events: CourseEvent['event'][]): Behavior => ({ course: { buyer: inSteps(...events) } });
const afterPayout = (...events: CourseEvent['event'][]): Behavior => ({
  course: { afterPayout: inSteps(...events) },
});

/** What each documented prefix of a party id makes the provider do. */
const behaviors = {
  'sim-decline': () => ({ verdict: 'DECLINED' }),
  'sim-refuse-return': ({ kind }) => (isReturn(kind) ? { verdict: 'REFUSED' } : {}),
  'sim-silent': () => ({ message: 'SILENT' }),
  'sim-lost-answer': () => ({ message: 'LOST_ANSWER' }),
  'sim-lost-request': () => ({ message: 'LOST_REQUEST' }),
  'sim-slow': () => ({ message: 'SLOW' }),
  'sim-lapse': () => ({ course: { holdLastsMs: shortHoldMs } }),
  'sim-lapse-today': () => ({ course: { holdLastsMs: dayHoldMs } }),
  'sim-must-act': () => buyer('BUYER_ACTS'),
  'sim-must-act-fail': () => buyer('BUYER_FAILS'),
  'sim-must-act-never': () => buyer(),
  'sim-wrong-amount': ({ amount }) => ({ course: { amount: amount + 1n } }),
  'sim-contradiction': () => ({ course: { contradicts: true } }),
  'sim-refund-later': () => afterPayout('RETURN_ALL'),
  'sim-refund-part-later': () => afterPayout('RETURN_PART'),
  'sim-refund-failed-later': () => afterPayout('RETURN_PART', 'RETURN_FAILED'),
  'sim-dispute-later': () => afterPayout('DISPUTE'),
  'sim-dispute-won-later': () => afterPayout('DISPUTE', 'DISPUTE_WON'),
  'sim-dispute-lost-later': () => afterPayout('DISPUTE', 'DISPUTE_LOST'),
} as const satisfies Record<string, (instruction: PaymentInstruction) => Behavior>;

type Prefix = keyof typeof behaviors;

/** The prefixes that party ids may begin with, longest first: the first that matches counts. */
export const partyPrefixes = (Object.keys(behaviors) as Prefix[]).sort((a, b) => b.length - a.length);

/**
 * What the provider does with an instruction: the buyerId decides for a FREEZE, the sellerId for what follows. A CANCEL is
 * carried out for every party except `sim-refuse-return`, so that orders end.
 */
function behaviorFor(instruction: PaymentInstruction): Behavior {
  const { kind, buyerId, sellerId } = instruction;
  const partyId = kind === 'FREEZE' ? buyerId : sellerId;
  const prefix = partyPrefixes.find((candidate) => partyId.startsWith(candidate));
  if (prefix === undefined || (kind === 'CANCEL' && prefix !== 'sim-refuse-return')) return {};
  return behaviors[prefix](instruction);
}
