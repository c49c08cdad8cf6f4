import type { Clock } from '../../domain/clock.ts';
import { type InstructionKind, isAfterPayout, isByOperator, type NextAction } from '../../domain/escrow.ts';
import { type OpenInstruction, planUpdate, type UpdatePlan } from '../../domain/order-update.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { ApiError } from '../../domain/reason.ts';
import { utcTimestamp } from '../../domain/utc.ts';
import type { Logger } from '../../lib/log.ts';
import type { BusinessTime } from '../../store/filing-commands.ts';
import type { EscrowCase, OrderUpdate } from '../../store/reconciliation-commands.ts';
import type { Execute } from '../../store/store.ts';
import { jittered, type ReconciliationLimits, retryDelayMs } from './limits.ts';

/** What updates of orders need. */
export interface OrderUpdateDependencies {
  readonly execute: Execute;
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  readonly clock: Clock;
  readonly now: () => BusinessTime;
  /** Returns a globally unique instruction id. */
  readonly newInstructionId: () => string;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly limits: ReconciliationLimits;
  readonly log: Logger;
}

/** Whether a record that should be extended differs from what the evidence log committed to. */
const isDamaged = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.reason === 'RECORD_DAMAGED';

/** Returns why an attempt failed, in a line for the operator. */
export function reasonOf(error: unknown): string {
  // The message for callers does not name a damaged record.
  const cause = isDamaged(error) ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns functions that record what the provider reports of orders. */
export function createOrderUpdates(dependencies: OrderUpdateDependencies) {
  const { execute, currency, clock, now, newInstructionId, random, limits, log } = dependencies;

  async function write(update: OrderUpdate): Promise<EscrowCase> {
    const written = await execute({ kind: 'UpdateOrder', update, at: now() });
    if (written === undefined) throw new Error(`${update.escrowId} has changed meanwhile.`);
    return written;
  }

  const newInstruction = (kind: InstructionKind) => ({ instructionId: newInstructionId(), kind });

  /** Plans what a provider status means for an order. It may be the response to an open instruction. */
  function plan(before: EscrowCase, payment: PaymentSnapshot, answered?: OpenInstruction): UpdatePlan {
    const { order, open, accepted, review } = before;
    const { state, amount, history } = order;
    const afterPayout = history.findLast(isAfterPayout);
    const isInReview = review !== undefined;
    const underWay = { state, amount, currency, accepted, afterPayout, isInReview, open };
    return planUpdate(underWay, payment, answered);
  }

  return {
    plan,
    /** Updates an order by a provider status. Returns the order after it. */
    record: async (
      before: EscrowCase,
      payment: PaymentSnapshot,
      answered?: OpenInstruction,
    ): Promise<EscrowCase> => {
      const { order, notificationCount, lookUpAtMs: expectedLookUpAtMs } = before;
      const { escrowId, state: from } = order;
      const planned = plan(before, payment, answered);
      const { to, ended, resetsAttempts, review: why } = planned;
      const nextAction = nextActionOf(before, payment, planned, clock.nowMs() + limits.buyerDeadlineMs);
      const written = await write({
        ...{ escrowId, from, to, ended, resetsAttempts, notificationCount, expectedLookUpAtMs, nextAction },
        ...{ reference: payment.reference, holdExpiresAtMs: payment.holdExpiresAtMs },
        expectedChanges: order.history.length,
        afterPayout: planned.afterPayout,
        prepared: planned.givesBack ? newInstruction('REFUND') : undefined,
        review: why === undefined ? undefined : { why, found: payment },
        lookUpAtMs: lookUpAtMs(before, planned, nextAction, dependencies),
      });
      logUpdate(before, payment, planned, dependencies);
      return written;
    },
    /** Prepares the CANCEL of an order that waited too long for its hold. Returns the order after it. */
    prepareCancel: (before: EscrowCase) =>
      write({ ...unchanged(before), prepared: newInstruction('CANCEL'), lookUpAtMs: clock.nowMs() }),
    /**
     * Records a failed attempt and schedules the next one, unless another instance has taken the order. After `attemptsMax` the order
     * needs review.
     */
    recordFailure: async (before: EscrowCase, error: unknown): Promise<void> => {
      const { order, failedAttempts, notificationCount, lookUpAtMs: expectedLookUpAtMs } = before;
      const { escrowId, state } = order;
      const nowMs = clock.nowMs();
      const isRecorded = await execute({
        ...{ kind: 'RecordUnanswered', escrowId, expectedLookUpAtMs, notificationCount, nowMs },
        lookUpAtMs: nowMs + retryDelayMs(limits, failedAttempts, random),
      });
      const attempts = failedAttempts + 1;
      if (!isRecorded || attempts < limits.attemptsMax) return;
      const why = isDamaged(error)
        ? `Its records are damaged: ${reasonOf(error)}`
        : `The provider left ${attempts} attempts in a row without a response.`;
      // An operator who ended the order said where the money is. If there was none, a hold may still come.
      const isAnswered = isByOperator(order.history) && state !== 'CLOSED';
      if (!isAnswered) log.error({ escrowId, state, why }, 'an order needs a person');
      // A RELEASED order that is in review keeps its reason.
      const isKept = isAnswered || before.review !== undefined;
      const review = isKept ? undefined : { why, found: undefined };
      await write({ ...unchanged(before), review, resetsAttempts: true });
    },
  };
}

/** Returns what the buyer has to do, until the deadline or the earlier one of the provider. */
function nextActionOf(
  { order: { nextAction: before } }: EscrowCase,
  { nextActionUrl: url = before?.url, nextActionExpiresAtMs = Number.POSITIVE_INFINITY }: PaymentSnapshot,
  { awaitsBuyer }: UpdatePlan,
  deadlineMs: number,
): NextAction | undefined {
  if (!awaitsBuyer || url === undefined) return undefined;
  return { url, untilMs: Math.min(before?.untilMs ?? deadlineMs, nextActionExpiresAtMs) };
}

/** Returns when to look up an order, Unix milliseconds; undefined for never. */
function lookUpAtMs(
  { openedAtMs }: EscrowCase,
  { to, nextLookUp }: UpdatePlan,
  nextAction: NextAction | undefined,
  { clock, limits, random }: OrderUpdateDependencies,
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

function logUpdate(
  { order }: EscrowCase,
  payment: PaymentSnapshot,
  plan: UpdatePlan,
  { clock, limits, log }: OrderUpdateDependencies,
): void {
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

/** An update that leaves an order as it is, without a further look-up. */
function unchanged({ order, notificationCount, lookUpAtMs: expectedLookUpAtMs }: EscrowCase): OrderUpdate {
  const { escrowId, state, nextAction } = order;
  return {
    ...{ escrowId, from: state, to: state, ended: [], prepared: undefined, nextAction },
    ...{ reference: undefined, holdExpiresAtMs: undefined, afterPayout: undefined },
    ...{ review: undefined, resetsAttempts: false, notificationCount },
    ...{ expectedLookUpAtMs, expectedChanges: order.history.length, lookUpAtMs: undefined },
  };
}
