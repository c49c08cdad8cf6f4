import type { PaymentSnapshot } from '../../domain/payment.ts';
import { ApiError } from '../../domain/reason.ts';
import {
  type PaymentInstruction,
  type PaymentProvider,
  ProviderFailure,
  type Surroundings,
} from '../provider.ts';
import { behaviorFor, slowAnswerMs } from './behaviors.ts';
import { openBooks } from './books.ts';
import { advance, carryOut, type Hold, recordSending, snapshotOf } from './hold.ts';

/** How long it sleeps at most before it looks at the time again, in milliseconds: the wall clock may be set. */
const sleepMaxMs = 60 * 60 * 1000;
/** How long it waits before it sends a notification again that failed, in milliseconds. */
const retryMs = 1_000;
/** How many holds are read at once. */
const batchSize = 100;

/** What the simulated provider works with. */
export interface SimulatedOptions extends Pick<Surroundings, 'clock' | 'notify'> {
  /** The file of its books, in a folder that exists. */
  readonly file: string;
}

/**
 * A provider for sandboxes: it moves no money, but keeps books that outlive the process. The ids of the parties decide what
 * goes wrong (see behaviors.ts). It notifies of what happens without an instruction: at least once, and again after a
 * restart. Closing it rejects the calls in flight and closes its file.
 */
export function createSimulatedProvider({ file, clock, notify }: SimulatedOptions): PaymentProvider {
  const books = openBooks(file);
  const closing = new AbortController();
  let isNotifying = false;
  let cancelTimer = () => {};

  /** Sets the timer for the next event; a pass that is under way does so at its end. */
  function setTimer(): void {
    if (isNotifying || notify === undefined) return;
    cancelTimer();
    const [next] = books.planned(1);
    if (next === undefined) return;
    const sleepMs = Math.min(Math.max(dueAtMs(next) - clock.nowMs(), 1), sleepMaxMs);
    cancelTimer = clock.after(sleepMs, () => void notifyDue(notify));
  }

  async function notifyDue(send: NonNullable<Surroundings['notify']>): Promise<void> {
    isNotifying = true;
    try {
      for (const hold of books.planned(batchSize)) {
        if (dueAtMs(hold) > clock.nowMs()) break;
        const { holdId } = hold;
        await send({ eventId: `${holdId}@${dueAtMs(hold)}`, about: { holdId } });
        if (closing.signal.aborted) return;
        // A kill before this sends the notification again.
        books.change(hold, (current) => advance(current, clock.nowMs()));
      }
      isNotifying = false;
      setTimer();
    } catch {
      // The service is starting, or the disk is full: what is due stays due.
      if (!closing.signal.aborted) cancelTimer = clock.after(retryMs, () => void notifyDue(send));
    }
  }

  function throwIfOver(signal: AbortSignal): void {
    signal.throwIfAborted();
    closing.signal.throwIfAborted();
  }

  /** Resolves after so long, or never; rejects when the signal is aborted or the provider closed. */
  function sleep(ms: number | undefined, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, closing.signal]);
    return new Promise((resolve, reject) => {
      const cancel = ms === undefined ? () => {} : clock.after(ms, resolve);
      over.addEventListener('abort', () => {
        cancel();
        reject(over.reason);
      });
    });
  }

  async function instruct(instruction: PaymentInstruction, signal: AbortSignal): Promise<PaymentSnapshot> {
    throwIfOver(signal);
    const { message, verdict = 'CONSENTED', course = {} } = behaviorFor(instruction);
    if (message === 'SILENT') await sleep(undefined, signal);
    const arrive = (hold: Hold) => carryOut(hold, instruction, { verdict, course }, clock.nowMs());
    const payment = books.change(instruction, (hold) => {
      const isFirst = recordSending(hold, instruction);
      if (isFirst && message === 'LOST_REQUEST') return undefined;
      const answer = arrive(hold);
      return isFirst && message === 'LOST_ANSWER' ? undefined : answer;
    });
    if (message === 'DUPLICATE') books.change(instruction, arrive);
    setTimer();
    if (payment === undefined) {
      throw new ProviderFailure('UNREACHABLE', 'The connection to the simulated provider broke.');
    }
    if (message === 'SLOW') await sleep(slowAnswerMs, signal);
    return payment;
  }

  setTimer();
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
      cancelTimer();
      books.close();
    },
  };
}

/** When something happens next to a hold without an instruction, in Unix milliseconds. */
const dueAtMs = ({ plan }: Hold): number => plan[0]?.atMs ?? Number.POSITIVE_INFINITY;
