import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { type InstructionKind, isAfterPayout, isByOperator, type NextAction } from '../../domain/escrow.ts';
import {
  type OpenInstruction,
  planNextStep,
  planUpdate,
  reviewOfSilence,
  type UpdatePlan,
} from '../../domain/order-update.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { ApiError } from '../../domain/reason.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import type { Instruction } from '../../store/escrow-commands.ts';
import type { BusinessTime } from '../../store/filing-commands.ts';
import type { EscrowCase, OrderUpdate } from '../../store/reconciliation-commands.ts';
import type { Execute } from '../../store/store.ts';
import type { PaymentOrder, PaymentProvider } from '../provider.ts';
import { jittered, type ReconciliationLimits, retryDelayMs } from './limits.ts';

/** Brings orders and the provider to agreement. Everything that is said to the provider is said here. */
export interface Reconciler {
  /**
   * Gives a prepared instruction and waits for the provider's answer, but not for ever; the instruction as it
   * then is. One that was sent before is not sent again. A store that fails leaves it to recovery, and it is returned
   * as it was.
   */
  carryOut(instruction: Instruction): Promise<Instruction>;
  /** Asks the provider about an order and does what is left to do for it. Rejects if it is to be tried again later. */
  recover(escrowId: string): Promise<void>;
  /**
   * Asks the provider about a RELEASED order and records news of its money. Rejects if there is no answer, and records
   * nothing of that.
   */
  lookUpReleased(escrowId: string): Promise<void>;
  /** Whether something is under way for an order. */
  isBusy(escrowId: string): boolean;
  /** Waits for no answer any more; resolves when nothing is under way. */
  stop(): Promise<void>;
}

/** What the reconciler works with. */
export interface ReconcilerDependencies {
  readonly execute: Execute;
  readonly provider: PaymentProvider;
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  readonly clock: Clock;
  readonly now: () => BusinessTime;
  /** A name for an instruction, unique for ever. */
  readonly newInstructionId: () => string;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly limits: ReconciliationLimits;
  readonly log: Logger;
}

/** How many steps one recovery takes an order at most; it takes three to cancel an order and give a late hold back. */
const stepsMax = 5;

/** Why an answer is not waited for any more. */
const closing = 'The service is closing.';

/** How long a caller waits before it asks again for an order that is pending, in seconds. */
const pendingRetryAfterS = 5;

/** The error for an order whose money is not where it was asked to be, as far as is known. */
export function paymentPending(escrowId: string): ApiError {
  const message =
    `It is not known yet where the money of ${escrowId} is. The payment provider is asked until it is known, or an ` +
    'operator decides. Repeat the call under its Idempotency-Key if it had one, or read the escrow.';
  return new ApiError('PAYMENT_PENDING', message, { retryAfterS: pendingRetryAfterS });
}

/** Whether a record that was to be added to is not what the evidence log committed to. */
const isDamaged = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.reason === 'RECORD_DAMAGED';

/** Why an attempt failed, in a line for the operator. */
export function reasonOf(error: unknown): string {
  // What callers read of a damaged record does not name it.
  const told = isDamaged(error) ? (error.cause ?? error) : error;
  return told instanceof Error ? told.message : String(told);
}

/** A reconciler between this store and this provider. */
export function createReconciler(dependencies: ReconcilerDependencies): Reconciler {
  const { execute, provider, currency, clock, now, newInstructionId, random, limits, log } = dependencies;
  const turns = createKeyedLimit<string>({ perKey: 1 });
  const waiting = new Set<(why: string) => void>();
  let isStopped = false;

  const paymentOrder = (found: EscrowCase): PaymentOrder => {
    const { order, accepted, holdId, openedAtMs, reference, buyer, seller } = found;
    const { escrowId, buyerId, sellerId } = order;
    // What a person accepted is what there is to pay out.
    const agreed = { amount: accepted?.amount ?? order.amount, currency: accepted?.currency ?? currency };
    return { holdId, escrowId, ...agreed, buyerId, sellerId, buyer, seller, openedAtMs, reference };
  };

  /** Runs one piece of work at a time for each order. Calls and orders in recovery bound how many wait. */
  async function inTurn<T>(escrowId: string, work: () => Promise<T>): Promise<T> {
    const end = await turns.take(escrowId);
    try {
      return await work();
    } finally {
      end();
    }
  }

  async function caseOf(escrowId: string): Promise<EscrowCase> {
    const found = await execute({ kind: 'FindCase', escrowId });
    if (found === undefined) throw new Error(`There is no order ${escrowId}.`);
    return found;
  }

  /** Waits for the provider, but not for ever. */
  async function answerTo<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (isStopped) throw new Error(closing);
    const { answerTimeoutMs } = limits;
    const abort = new AbortController();
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const giveUp = (why: string) => {
      const error = new Error(why);
      reject(error);
      abort.abort(error);
    };
    const cancel = clock.after(answerTimeoutMs, () =>
      giveUp(`The provider did not answer within ${answerTimeoutMs} ms.`),
    );
    waiting.add(giveUp);
    try {
      return await Promise.race([ask(abort.signal), givenUp]);
    } finally {
      cancel();
      waiting.delete(giveUp);
    }
  }

  /** Writes an update down; the order after it. */
  async function write(update: OrderUpdate): Promise<EscrowCase> {
    const written = await execute({ kind: 'UpdateOrder', update, at: now() });
    if (written === undefined) throw new Error(`${update.escrowId} has changed meanwhile.`);
    return written;
  }

  /** Asks where the money of an order is. */
  const lookUp = (found: EscrowCase): Promise<PaymentSnapshot> =>
    answerTo((signal) => provider.lookUp(paymentOrder(found), signal));

  const newInstruction = (kind: InstructionKind) => ({ instructionId: newInstructionId(), kind });

  /** Plans what the provider's word means for an order. */
  function planFor(before: EscrowCase, payment: PaymentSnapshot, answered?: OpenInstruction): UpdatePlan {
    const { order, open, accepted, review } = before;
    const { state, amount, history } = order;
    const afterPayout = history.findLast(isAfterPayout);
    const isInReview = review !== undefined;
    return planUpdate(
      { state, amount, currency, accepted, afterPayout, isInReview, open },
      payment,
      answered,
    );
  }

  /** Updates an order by what the provider says, which may be the answer to one of its instructions. */
  async function updateOrder(
    before: EscrowCase,
    payment: PaymentSnapshot,
    answered?: OpenInstruction,
  ): Promise<EscrowCase> {
    const { order, notificationCount } = before;
    const { escrowId, state: from } = order;
    const plan = planFor(before, payment, answered);
    const { to, ended, resetsAttempts, review: why } = plan;
    const nextAction = nextActionOf(before, payment, plan);
    const written = await write({
      ...{ escrowId, from, to, ended, resetsAttempts, notificationCount, nextAction },
      ...{ reference: payment.reference, holdExpiresAtMs: payment.holdExpiresAtMs },
      afterPayout: plan.afterPayout,
      prepared: plan.givesBack ? newInstruction('REFUND') : undefined,
      review: why === undefined ? undefined : { why, found: payment },
      lookUpAtMs: lookUpAtMs(before, plan, nextAction),
    });
    logUpdate(before, payment, plan);
    return written;
  }

  function nextActionOf(
    { order: { nextAction: before } }: EscrowCase,
    { nextActionUrl: url = before?.url, nextActionExpiresAtMs = Number.POSITIVE_INFINITY }: PaymentSnapshot,
    { awaitsBuyer }: UpdatePlan,
  ): NextAction | undefined {
    if (!awaitsBuyer || url === undefined) return undefined;
    const deadlineMs = before?.untilMs ?? clock.nowMs() + limits.buyerDeadlineMs;
    return { url, untilMs: Math.min(deadlineMs, nextActionExpiresAtMs) };
  }

  function logUpdate({ order }: EscrowCase, payment: PaymentSnapshot, plan: UpdatePlan): void {
    const { escrowId, state: from } = order;
    const { to, review: why, ended } = plan;
    const { status, holdExpiresAtMs, declined } = payment;
    const isDeclined = ended.some((end) => end.status === 'DECLINED');
    if (isDeclined && declined !== undefined) {
      const { code, detail } = declined;
      log.warn({ escrowId, code, detail }, 'the provider declined an instruction');
    }
    if (why !== undefined) log.error({ escrowId, state: from, why }, 'an order needs a person');
    if (to !== from) log.info({ escrowId, from, to, status }, 'an order settled');
    if (to === 'FROZEN' && holdExpiresAtMs !== undefined) {
      const expiresAt = utcTimestamp(holdExpiresAtMs);
      const isSoon = holdExpiresAtMs - clock.nowMs() <= limits.holdWarningMs;
      if (isSoon) log.warn({ escrowId, expiresAt }, 'a hold lapses soon: release or refund the order before');
    }
  }

  /** Unix milliseconds; undefined for never. */
  function lookUpAtMs(
    { openedAtMs }: EscrowCase,
    { to, nextLookUp }: UpdatePlan,
    nextAction: NextAction | undefined,
  ): number | undefined {
    const nowMs = clock.nowMs();
    switch (nextLookUp) {
      case 'NOW':
        return nowMs;
      case 'SOON':
        return Math.min(nowMs + jittered(limits.buyerLookUpMs, random), nextAction?.untilMs ?? nowMs);
      case 'QUIET':
        if (to === 'CLOSED' && nowMs - openedAtMs > limits.closedLookUpsMs) return undefined;
        return nowMs + jittered(limits.quietLookUpMs, random);
      case 'NEVER':
        return undefined;
    }
  }

  /** Whether the time is over in which an order may wait for its hold. */
  function isOverdue({ openedAtMs, order: { nextAction } }: EscrowCase): boolean {
    return clock.nowMs() >= (nextAction?.untilMs ?? openedAtMs + limits.freezeDeadlineMs);
  }

  /** Writes down that an instruction is being given, before it is. */
  async function noteSent(instructionId: string): Promise<void> {
    await execute({ kind: 'RecordSent', instructionId, lookUpAtMs: clock.nowMs() + limits.answerTimeoutMs });
  }

  /** Gives an instruction that was written down, and updates the order by the answer. */
  async function sendInstruction(before: EscrowCase, instruction: OpenInstruction): Promise<EscrowCase> {
    const { instructionId, kind } = instruction;
    const sent = { ...paymentOrder(before), instructionId, kind };
    const payment = await answerTo((signal) => provider.instruct(sent, signal));
    if (payment.status === 'ABSENT') throw new Error(`The provider answered ABSENT to ${kind}.`);
    return updateOrder(before, payment, instruction);
  }

  /** Gives an instruction; whatever fails, it may have been carried out, and is open until recovery knows. */
  async function giveOrLeaveOpen(before: EscrowCase, instruction: OpenInstruction): Promise<void> {
    const { escrowId } = before.order;
    try {
      await sendInstruction(before, instruction);
    } catch (error) {
      log.warn({ escrowId, kind: instruction.kind, why: reasonOf(error) }, 'an order is not settled yet');
      await scheduleRetry(before, error).catch((cause) =>
        log.error({ escrowId, err: cause }, 'the store failed'),
      );
    }
  }

  /** Writes down that an order waited too long for its hold and is to be cancelled. */
  const cancel = (before: EscrowCase): Promise<EscrowCase> =>
    write({ ...unchanged(before), prepared: newInstruction('CANCEL'), lookUpAtMs: clock.nowMs() });

  /** Does what is left to do for an order. */
  async function resumeOpen(start: EscrowCase): Promise<void> {
    let current = start;
    for (let step = 0; step < stepsMax; step += 1) {
      const { open, review, order } = current;
      const next = planNextStep({ open, review, nextAction: order.nextAction }, isOverdue(current));
      switch (next.kind) {
        case 'NOTHING':
          return;
        case 'CANCEL':
          current = await cancel(current);
          break;
        case 'SEND':
          await noteSent(next.instruction.instructionId);
          current = await sendInstruction(current, next.instruction);
      }
    }
  }

  /** Notes that no answer came, and when to ask again; in the end, a person has to. */
  async function scheduleRetry(before: EscrowCase, error: unknown): Promise<void> {
    const { order, failedAttempts, notificationCount } = before;
    const { escrowId, state } = order;
    const atMs = clock.nowMs() + retryDelayMs(limits, failedAttempts, random);
    await execute({ kind: 'RecordUnanswered', escrowId, lookUpAtMs: atMs, notificationCount });
    const silence = reviewOfSilence(failedAttempts + 1, limits.attemptsMax);
    const why = silence && isDamaged(error) ? `Its records are damaged: ${reasonOf(error)}` : silence;
    if (why !== undefined) {
      // A person who ended the order said where the money is. Where they said that there is none, a hold may still come.
      const isAnswered = isByOperator(order) && state !== 'CLOSED';
      if (!isAnswered) log.error({ escrowId, state, why }, 'an order needs a person');
      // What a RELEASED order waits for a person with already is what they decide about.
      const isKept = isAnswered || before.review !== undefined;
      const review = isKept ? undefined : { why, found: undefined };
      await write({ ...unchanged(before), review, resetsAttempts: true });
    }
  }

  return {
    carryOut: (instruction) =>
      inTurn(instruction.order.escrowId, async () => {
        const { instructionId, order } = instruction;
        const { escrowId } = order;
        try {
          const before = await caseOf(escrowId);
          const next = before.review === undefined ? before.open.at(-1) : undefined;
          if (next?.instructionId === instructionId && next.status === 'PREPARED') {
            await noteSent(instructionId);
            await giveOrLeaveOpen(before, next);
          }
          return (await execute({ kind: 'FindInstruction', instructionId })) ?? instruction;
        } catch (error) {
          log.warn({ escrowId, why: reasonOf(error) }, 'an order is left to recovery');
          return instruction;
        }
      }),
    recover: (escrowId) =>
      inTurn(escrowId, async () => {
        const before = await caseOf(escrowId);
        // What happens to money after its release is recorded, whether or not a person has decided about the last of it.
        if (before.review !== undefined && before.order.state !== 'RELEASED') return;
        try {
          await resumeOpen(await updateOrder(before, await lookUp(before)));
        } catch (error) {
          await scheduleRetry(before, error);
          throw error;
        }
      }),
    lookUpReleased: (escrowId) =>
      inTurn(escrowId, async () => {
        const before = await caseOf(escrowId);
        const payment = await lookUp(before);
        // A provider knows nothing of orders that were released at the one before it.
        if (payment.status === 'ABSENT' || planFor(before, payment).review === undefined) return;
        await updateOrder(before, payment);
      }),
    isBusy: (escrowId) => turns.takenBy(escrowId) > 0,
    stop: async () => {
      isStopped = true;
      for (const giveUp of waiting) giveUp(closing);
      await turns.idle();
    },
  };
}

/** An update that leaves an order as it is, and is not followed by a look-up. */
function unchanged({ order, notificationCount }: EscrowCase): OrderUpdate {
  const { escrowId, state, nextAction } = order;
  return {
    ...{ escrowId, from: state, to: state, ended: [], prepared: undefined, nextAction },
    ...{ reference: undefined, holdExpiresAtMs: undefined, afterPayout: undefined },
    ...{ review: undefined, resetsAttempts: false, notificationCount, lookUpAtMs: undefined },
  };
}
