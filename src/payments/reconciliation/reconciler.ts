import type { OpenInstruction } from '../../domain/order-update.ts';
import { ApiError } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import { withTimeout } from '../../lib/timing.ts';
import type { Instruction } from '../../store/escrow-commands.ts';
import type { DueOrder, EscrowCase } from '../../store/reconciliation-commands.ts';
import type { PaymentOrder, PaymentProvider } from '../provider.ts';
import { createOrderUpdates, type OrderUpdateDependencies, reasonOf } from './order-updates.ts';

/** Brings orders and the provider to agreement. Nothing else sends instructions to the provider. */
export type Reconciler = ReturnType<typeof createReconciler>;

/** What the reconciler works with. */
export interface ReconcilerDependencies extends OrderUpdateDependencies {
  readonly provider: PaymentProvider;
}

/** How many steps one recovery takes at most. It takes three to cancel an order and return a late hold. */
const stepsMax = 5;

/** `Retry-After` of PAYMENT_PENDING, in seconds. */
const pendingRetryAfterS = 5;

/** The error for an order of which it is not known whether the instruction was carried out. */
export function paymentPending(escrowId: string): ApiError {
  const message =
    `It is not known yet where the money of ${escrowId} is. The payment provider is asked until it is known, or an ` +
    'operator decides. Repeat the call under its Idempotency-Key if it had one, or read the escrow.';
  return new ApiError('PAYMENT_PENDING', message, { retryAfterS: pendingRetryAfterS });
}

/** Requests to the provider about orders, each with a timeout. */
function createRequests({ execute, provider, currency, clock, limits }: ReconcilerDependencies) {
  const stopping = new AbortController();
  const ms = limits.answerTimeoutMs;

  async function request<T>(send: (signal: AbortSignal) => Promise<T>, withinMs = ms): Promise<T> {
    stopping.signal.throwIfAborted();
    const reason = new Error(`The provider did not answer within ${ms} ms.`);
    if (withinMs <= 0) throw reason;
    return await withTimeout(clock, { ms: Math.min(withinMs, ms), reason, stopped: stopping.signal }, send);
  }

  function paymentOrder(found: EscrowCase): PaymentOrder {
    const { order, accepted, holdId, openedAtMs, reference, buyer, seller } = found;
    const { escrowId, buyerId, sellerId } = order;
    // What an operator accepted is what is paid out.
    const agreed = { amount: accepted?.amount ?? order.amount, currency: accepted?.currency ?? currency };
    return { holdId, escrowId, ...agreed, buyerId, sellerId, buyer, seller, openedAtMs, reference };
  }

  return {
    /** Records that an instruction is about to be sent. Returns the case after it; undefined if another instance sends it. */
    recordSent: async (
      found: EscrowCase,
      { instructionId, status }: OpenInstruction,
    ): Promise<EscrowCase | undefined> => {
      const sent = { lookUpAtMs: clock.nowMs() + ms };
      const expected = { status, expectedLookUpAtMs: found.lookUpAtMs };
      const isTaken = await execute({ kind: 'RecordSent', instructionId, ...expected, ...sent });
      return isTaken ? { ...found, ...sent } : undefined;
    },
    lookUp: (found: EscrowCase) => request((signal) => provider.lookUp(paymentOrder(found), signal)),
    /** Sends an instruction, and waits for the response until its order is due: another instance may then send it. */
    instruct: async (found: EscrowCase, { instructionId, kind }: OpenInstruction) => {
      const instruction = { ...paymentOrder(found), instructionId, kind };
      const leftMs = Number(found.lookUpAtMs) - clock.nowMs();
      const payment = await request((signal) => provider.instruct(instruction, signal), leftMs);
      if (payment.status === 'ABSENT') throw new Error(`The provider answered ABSENT to ${kind}.`);
      return payment;
    },
    stop: () => stopping.abort(new Error('The service is closing.')),
  };
}

/** Sends instructions, and does what is left to do for orders. */
function createSteps(
  { clock, limits, log }: ReconcilerDependencies,
  updates: ReturnType<typeof createOrderUpdates>,
  requests: ReturnType<typeof createRequests>,
) {
  /** Sends a recorded instruction and updates the order by the response. */
  const send = async (before: EscrowCase, instruction: OpenInstruction): Promise<EscrowCase> =>
    updates.record(before, await requests.instruct(before, instruction), instruction);

  /** Sends an instruction. If that fails, it may have been carried out, and stays open until recovery knows. */
  async function sendOrLeaveOpen(before: EscrowCase, instruction: OpenInstruction): Promise<void> {
    try {
      await send(before, instruction);
    } catch (error) {
      const { escrowId } = before.order;
      log.warn({ escrowId, kind: instruction.kind, why: reasonOf(error) }, 'an order is not settled yet');
      await updates
        .recordFailure(before, error)
        .catch((cause) => log.error({ escrowId, err: cause }, 'the store failed'));
    }
  }

  /** Looks up an order and does what is left to do for it. */
  async function settle(before: EscrowCase): Promise<void> {
    let current = before;
    try {
      current = await updates.record(before, await requests.lookUp(before));
      for (let step = 0; step < stepsMax; step += 1) {
        const { open, review, openedAtMs, order } = current;
        const next = open.at(-1);
        // An operator has to act, or nothing is left to do.
        if (review !== undefined || next === undefined) return;
        const deadlineMs = order.nextAction?.untilMs ?? openedAtMs + limits.freezeDeadlineMs;
        const isOverdue = next.kind === 'FREEZE' && clock.nowMs() >= deadlineMs;
        if (isOverdue) current = await updates.prepareCancel(current);
        // The buyer has to act. An order has a next action only while its newest open instruction is a FREEZE.
        else if (order.nextAction !== undefined) return;
        else {
          const sent = await requests.recordSent(current, next);
          if (sent === undefined) return;
          // If the request fails, the failure is recorded for the order as it is now.
          current = sent;
          current = await send(sent, next);
        }
      }
    } catch (error) {
      await updates.recordFailure(current, error);
      throw error;
    }
  }

  return { sendOrLeaveOpen, settle };
}

/** Creates the reconciler of a deployment. */
export function createReconciler(dependencies: ReconcilerDependencies) {
  const { execute, log } = dependencies;
  const updates = createOrderUpdates(dependencies);
  const requests = createRequests(dependencies);
  const { sendOrLeaveOpen, settle } = createSteps(dependencies, updates, requests);
  const turns = createKeyedLimit<string>({ perKey: 1 });

  /** Runs one piece of work at a time for each order. Calls and orders in recovery bound how many wait. */
  async function inTurn<T>(escrowId: string, work: (before: EscrowCase) => Promise<T>): Promise<T> {
    const end = await turns.take(escrowId);
    try {
      const found = await execute({ kind: 'FindCase', escrowId });
      if (found === undefined) throw new Error(`There is no order ${escrowId}.`);
      return await work(found);
    } finally {
      end();
    }
  }

  return {
    /**
     * Sends an instruction, unless this or another instance has sent it, and waits for the response, up to a timeout. Returns the
     * instruction after it. If the store fails, the instruction is returned unchanged, and recovery sends it.
     */
    carryOut: async (instruction: Instruction): Promise<Instruction> => {
      const { instructionId, order } = instruction;
      try {
        return await inTurn(order.escrowId, async (before) => {
          const next = before.review === undefined ? before.open.at(-1) : undefined;
          if (next?.instructionId === instructionId && next.status === 'PREPARED') {
            const sent = await requests.recordSent(before, next);
            if (sent !== undefined) await sendOrLeaveOpen(sent, next);
          }
          return (await execute({ kind: 'FindInstruction', instructionId })) ?? instruction;
        });
      } catch (error) {
        log.warn({ escrowId: order.escrowId, why: reasonOf(error) }, 'an order is left to recovery');
        return instruction;
      }
    },
    /**
     * Looks up an order that was listed as due, and does what is left to do for it. Does nothing if its due time has changed since.
     * Rejects if it has to be tried again later.
     */
    recover: ({ escrowId, lookUpAtMs }: DueOrder): Promise<void> =>
      inTurn(escrowId, async (before) => {
        // Changes of the money after a release are recorded during a review too.
        const isInReview = before.review !== undefined && before.order.state !== 'RELEASED';
        if (before.lookUpAtMs === lookUpAtMs && !isInReview) await settle(before);
      }),
    /** Looks up a RELEASED order and records changes of its money. If there is no response, it rejects and records nothing. */
    lookUpReleased: (escrowId: string): Promise<void> =>
      inTurn(escrowId, async (before) => {
        const payment = await requests.lookUp(before);
        // The present provider may not know orders that were released at an earlier one.
        if (payment.status === 'ABSENT' || updates.plan(before, payment).review === undefined) return;
        await updates.record(before, payment);
      }),
    /** Whether work for an order runs or waits. */
    isBusy: (escrowId: string) => turns.takenBy(escrowId) > 0,
    /** Aborts all requests to the provider. Resolves when nothing runs any more. */
    stop: async (): Promise<void> => {
      requests.stop();
      await turns.idle();
    },
  };
}
