import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Escrow_Instruction,
  Escrow_State,
  Escrow_Type,
  EscrowChange_Payment,
  type EscrowChangeSchema,
  type EscrowSchema,
  EscrowService,
} from '../../../gen/artseal/v1/escrow_pb.ts';
import {
  DecideOrderRequest_Decision as Decisions,
  Order_OpenInstruction_Kind as Kinds,
  type OrderSchema,
  ReviewService,
  Order_OpenInstruction_Status as Statuses,
} from '../../../gen/artseal/v1/review_pb.ts';
import { reasonBounds } from '../../domain/audit-entry.ts';
import {
  type Escrow,
  type EscrowChange,
  escrowNotFound,
  escrowStates,
  type NextAction,
  pendingOf,
} from '../../domain/escrow.ts';
import { checkTerms, clearing } from '../../domain/escrow-terms.ts';
import { checkFilingNumber } from '../../domain/filing.ts';
import { membersOf } from '../../domain/party.ts';
import { ApiError } from '../../domain/reason.ts';
import { type Decision, type OrderEnd, orderEnds } from '../../domain/resolution.ts';
import { checkText } from '../../domain/text.ts';
import type { Violation } from '../../domain/violation.ts';
import { paymentPending } from '../../payments/reconciliation/reconciler.ts';
import type { Instruction } from '../../store/escrow-commands.ts';
import type { EscrowCase } from '../../store/reconciliation-commands.ts';
import { actorOf, type Call, callerOf, type Implementation, implement, ownerScope } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { enumWords } from './enum-words.ts';
import { listing } from './paging.ts';

/** The operations of EscrowService. Those that move money wait for the provider. */
export function createEscrowService(dependencies: ServiceDependencies): Implementation {
  const { provider, partyRules, reconciler, now, timestamp, newInstructionId, currency, paging } =
    dependencies;
  const parties = membersOf(partyRules);

  const shown = (order: Escrow) => escrowMessage(order, currency, timestamp);
  const workFor = (call: Call) => ({ ...callerOf(call), instructionId: newInstructionId() });

  /**
   * Returns the order once the provider has confirmed the instruction or requires an action of the buyer. Throws
   * PAYMENT_DECLINED, PAYMENT_PENDING.
   */
  async function confirmed(prepared: Instruction): Promise<Escrow> {
    const { kind, status, reason, order } = await reconciler.carryOut(prepared);
    // The hold ended before the order was FROZEN.
    const isMissed = kind === 'FREEZE' && order.history.every(({ state }) => state !== 'FROZEN');
    if (status === 'DECLINED' || (isMissed && order.state !== 'UNPAID')) {
      const message = `The payment provider declined the ${pendingOf(kind)} of ${order.escrowId}.`;
      throw new ApiError('PAYMENT_DECLINED', reason === undefined ? message : `${message} ${reason}`);
    }
    if (kind === 'FREEZE' && order.nextAction !== undefined) return order;
    if (status !== 'CONFIRMED' || isMissed) throw paymentPending(order.escrowId);
    return order;
  }

  const resolving = (resolution: 'RELEASE' | 'REFUND') => ({
    run: async ({ escrowId }: { readonly escrowId: string }, call: Call) => {
      const owner = ownerScope(call.principal);
      const work = workFor(call);
      const prepared = await call.execute({
        ...{ kind: 'PrepareResolution', resolution, escrowId, at: now(), work, owner },
      });
      return { escrow: shown(await confirmed(prepared)) };
    },
  });

  return implement(EscrowService, 'escrow', {
    createEscrow: {
      check: ({ type, ...terms }) => checkTerms({ ...terms, type: typeOf(type) }),
      run: async ({ filingNo, buyerId, sellerId, ...request }, call) => {
        const terms = { filingNo, type: 'GUARANTEE', amount: request.amount, buyerId, sellerId } as const;
        const [owner, work] = [ownerScope(call.principal), workFor(call)];
        // The store rejects them: a replay has to continue its order, whatever the provider checks now.
        const violations = provider.check({ ...terms, currency });
        const prepared = await call.execute({
          ...{ kind: 'OpenEscrow', terms, violations, parties, at: now(), work, owner },
        });
        const { escrowId, amount, nextAction } = await confirmed(prepared);
        if (nextAction === undefined) return { escrowId, state: Escrow_State.FROZEN, clearing, amount };
        return {
          escrowId,
          state: Escrow_State.UNPAID,
          clearing,
          amount,
          nextAction: toNextAction(nextAction, timestamp),
        };
      },
    },
    getEscrow: {
      run: async ({ escrowId }, call) => {
        const order = await call.execute({ kind: 'GetEscrow', escrowId, owner: ownerScope(call.principal) });
        if (order === undefined) throw escrowNotFound();
        return { escrow: shown(order) };
      },
    },
    listEscrows: listing(paging, {
      check: ({ state, filingNo }) => [
        ...states.check('state', state),
        ...(filingNo === '' ? [] : checkFilingNumber('filingNo', filingNo)),
      ],
      find: (request, page, call) => {
        const state = states.of(request.state);
        const filter = { owner: ownerScope(call.principal), state, filingNo: request.filingNo || undefined };
        return call.execute({ kind: 'ListEscrows', filter, page });
      },
      respond: ({ items }) => ({ escrows: items.map(shown) }),
    }),
    releaseEscrow: resolving('RELEASE'),
    refundEscrow: resolving('REFUND'),
  });
}

function typeOf(type: Escrow_Type): 'GUARANTEE' | undefined {
  return type === Escrow_Type.GUARANTEE ? 'GUARANTEE' : undefined;
}

/** The message of an order. */
function escrowMessage(
  order: Escrow,
  currency: string,
  timestamp: (atMs: number) => string,
): MessageInitShape<typeof EscrowSchema> {
  const { state, pending, type, history, nextAction, holdExpiresAtMs, ...rest } = order;
  return {
    ...rest,
    ...(pending === undefined ? {} : { pending: Escrow_Instruction[pending] }),
    ...(nextAction === undefined ? {} : { nextAction: toNextAction(nextAction, timestamp) }),
    ...(holdExpiresAtMs === undefined ? {} : { holdExpiresAt: timestamp(holdExpiresAtMs) }),
    state: Escrow_State[state],
    type: Escrow_Type[type],
    clearing,
    currency,
    history: history.map(toChange),
  };
}

function toNextAction({ url, untilMs }: NextAction, timestamp: (atMs: number) => string) {
  return { url, expiresAt: timestamp(untilMs) };
}

function toChange({
  state,
  at,
  payment,
  amount,
  byOperator,
}: EscrowChange): MessageInitShape<typeof EscrowChangeSchema> {
  return {
    state: Escrow_State[state],
    at,
    ...(payment === undefined ? {} : { payment: EscrowChange_Payment[payment] }),
    ...(amount === undefined ? {} : { left: amount }),
    ...(byOperator && { byOperator }),
  };
}

/** ReviewService, for operators. */
export function createReviewService(dependencies: ServiceDependencies): Implementation {
  const { clock, now, newInstructionId, paging, currency, timestamp, onDecision, readLog } = dependencies;

  const shown = ({ order, review, reference, open }: EscrowCase): MessageInitShape<typeof OrderSchema> => ({
    escrow: escrowMessage(order, currency, timestamp),
    ...(review !== undefined && { review }),
    ...(reference !== undefined && { reference }),
    underWay: open.map(({ kind, status }) => ({ kind: Kinds[kind], status: Statuses[status] })),
  });

  /** The order after a decision, which the recovery now carries out. */
  function decided(found: EscrowCase) {
    onDecision();
    return { order: shown(found) };
  }

  return implement(ReviewService, 'operate', {
    listOrders: listing(paging, {
      check: ({ state }) => states.check('state', state),
      find: ({ state, needsReview, escrowId }, page, { execute }) => {
        const selection = { state: states.of(state), needsReview, escrowId: escrowId || undefined };
        return execute({ kind: 'ListCases', selection, page });
      },
      respond: ({ items }) => ({ orders: items.map(shown) }),
    }),
    decideOrder: {
      check: ({ decision, reason }) => [
        ...decisions.checkRequired('decision', decision),
        ...checkText('reason', reason, reasonBounds),
      ],
      run: async ({ escrowId, decision: number, reason }, call) => {
        const decision = decisions.of(number) as Decision | 'CLOSE';
        const [by, at] = [actorOf(call, clock, reason), now()];
        if (decision === 'CLOSE')
          return decided(await call.execute({ kind: 'CloseOrder', by, escrowId, at }));
        const instructionId = newInstructionId();
        const deciding = { by, escrowId, decision, instructionId, nowMs: at.atMs };
        return decided(await call.execute({ kind: 'Decide', ...deciding }));
      },
    },
    endOrder: {
      check: ({ end, evidence, reason }) => [
        ...ends.checkRequired('end', end),
        ...checkEvidence(evidence),
        ...checkText('reason', reason, reasonBounds),
      ],
      run: async ({ escrowId, evidence, ...request }, call) => {
        await readLog();
        const by = actorOf(call, clock, request.reason);
        const end = ends.of(request.end) as OrderEnd;
        return decided(await call.execute({ kind: 'EndOrder', by, escrowId, end, evidence, at: now() }));
      },
    },
  });
}

const states = enumWords(escrowStates, Escrow_State);
const ends = enumWords(orderEnds, Escrow_State);
const decisions = enumWords(['LOOK_AGAIN', 'ACCEPT', 'RETURN', 'STOP', 'CLOSE'], Decisions);

/** Checks the SHA-256 of a proof. */
function checkEvidence(evidence: string): Violation[] {
  if (/^[0-9a-f]{64}$/.test(evidence)) return [];
  return [{ field: 'evidence', rule: 'must be a SHA-256: 64 lower-case hex digits' }];
}
