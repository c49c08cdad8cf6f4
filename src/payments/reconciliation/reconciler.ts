import type { OpenInstruction } from '../../domain/order-update.ts';
import { ApiError } from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import { withTimeout } from '../../lib/timing.ts';
import type { Instruction } from '../../store/escrow-commands.ts';
import type { EscrowCase } from '../../store/reconciliation-commands.ts';
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

  async function request<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    stopping.signal.throwIfAborted();
    const reason = new Error(`The provider did not answer within ${ms} ms.`);
    return await withTimeout(clock, { ms, reason, stopped: stopping.signal }, send);
  }

  function paymentOrder(found: EscrowCase): PaymentOrder {
    const { order, accepted, holdId, openedAtMs, reference, buyer, seller } = found;
    const { escrowId, buyerId, sellerId } = order;
    // What an operator accepted is what is paid out.
    const agreed = { amount: accepted?.amount ?? order.amount, currency: accepted?.currency ?? currency };
    return { holdId, escrowId, ...agreed, buyerId, sellerId, buyer, seller, openedAtMs, reference };
  }

  return {
    /** Records that an instruction is about to be sent. */
    recordSent: async (instructionId: string): Promise<void> => {
      await execute({ kind: 'RecordSent', instructionId, lookUpAtMs: clock.nowMs() + ms });
    },
    lookUp: (found: EscrowCase) => request((signal) => provider.lookUp(paymentOrder(found), signal)),
    instruct: async (found: EscrowCase, { instructionId, kind }: OpenInstruction) => {
      const instruction = { ...paymentOrder(found), instructionId, kind };
      const payment = await request((signal) => provider.instruct(instruction, signal));
      if (payment.status === 'ABSENT') throw new Error(`The provider answered ABSENT to ${kind}.`);
      return payment;
    },
    stop: () => stopping.abort(new Error('The service is closing.')),
  };
}

/** Creates the reconciler of a deployment. */
export function createReconciler(dependencies: ReconcilerDependencies) {
  const { execute, clock, limits, log } = dependencies;
  const updates = createOrderUpdates(dependencies);
  const requests = createRequests(dependencies);
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

  /** Does what is left to do for an order. */
  async function resume(start: EscrowCase): Promise<void> {
    let current = start;
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
        await requests.recordSent(next.instructionId);
        current = await send(current, next);
      }
    }
  }

  return {
    /**
     * Sends an instruction, unless it was sent before, and waits for the response, up to a timeout. Returns the instruction
     * after it. If the store fails, the instruction is returned unchanged, and recovery sends it.
     */
    carryOut: async (instruction: Instruction): Promise<Instruction> => {
      const { instructionId, order } = instruction;
      try {
        return await inTurn(order.escrowId, async (before) => {
          const next = before.review === undefined ? before.open.at(-1) : undefined;
          if (next?.instructionId === instructionId && next.status === 'PREPARED') {
            await requests.recordSent(instructionId);
            await sendOrLeaveOpen(before, next);
          }
          return (await execute({ kind: 'FindInstruction', instructionId })) ?? instruction;
        });
      } catch (error) {
        log.warn({ escrowId: order.escrowId, why: reasonOf(error) }, 'an order is left to recovery');
        return instruction;
      }
    },
    /** Looks up an order and does what is left to do for it. Rejects if it has to be tried again later. */
    recover: (escrowId: string): Promise<void> =>
      inTurn(escrowId, async (before) => {
        // Changes of the money after a release are recorded during a review too.
        if (before.review !== undefined && before.order.state !== 'RELEASED') return;
        try {
          await resume(await updates.record(before, await requests.lookUp(before)));
        } catch (error) {
          await updates.recordFailure(before, error);
          throw error;
        }
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
