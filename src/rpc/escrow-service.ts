import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Escrow_Instruction,
  Escrow_State,
  Escrow_Type,
  type EscrowSchema,
  EscrowService,
} from '../../gen/artseal/v1/escrow_pb.ts';
import { ownerScope } from '../access/principal.ts';
import {
  checkTerms,
  clearing,
  type Escrow,
  type EscrowState,
  escrowNotFound,
  escrowStates,
} from '../domain/escrow.ts';
import { checkFilingNumber } from '../domain/filing.ts';
import { Refusal } from '../domain/reason.ts';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import type { Institution } from '../payment/institution.ts';
import { paymentPending, type Settlement } from '../settlement/settlement.ts';
import type { BusinessTime, EscrowStore, Operation } from '../store/store.ts';
import { type Call, type Implementation, implement } from './operation.ts';
import type { Paging } from './paging.ts';

/** What the escrow operations need. */
export interface EscrowDependencies {
  readonly escrows: EscrowStore;
  readonly institution: Pick<Institution, 'check'>;
  readonly settlement: Pick<Settlement, 'carryOut'>;
  readonly now: () => BusinessTime;
  /** A name for an instruction, unique for ever. */
  readonly newOperationId: () => string;
  /** ISO 4217 code of all amounts. */
  readonly currency: string;
  readonly paging: Paging;
}

/** EscrowService. */
export function createEscrowService(dependencies: EscrowDependencies): Implementation {
  const { escrows, institution, settlement, now, newOperationId, currency, paging } = dependencies;

  const shown = (order: Escrow) => toMessage(order, currency);

  const workFor = ({ principal: { callerId, caller }, idempotencyKey }: Call) => ({
    callerId,
    caller,
    operationId: newOperationId(),
    idempotencyKey,
  });

  /** The order once the institution did as it was told. Throws PAYMENT_DECLINED, PAYMENT_PENDING. */
  async function confirmed(prepared: Operation, call: Call): Promise<Escrow> {
    const { kind, status, order } = await settlement.carryOut(prepared);
    call.stands?.();
    // A hold that went back before the order was FROZEN was one for nobody.
    const isMissed = kind === 'FREEZE' && order.history.every(({ state }) => state !== 'FROZEN');
    if (status === 'DECLINED' || (isMissed && order.state !== 'UNPAID')) {
      const message = `The payment institution declined the ${kind} of ${order.escrowId}, which is ${order.state}.`;
      throw new Refusal('PAYMENT_DECLINED', message);
    }
    if (status !== 'CONFIRMED' || isMissed) throw paymentPending(order.escrowId);
    return order;
  }

  async function resolve(kind: 'RELEASE' | 'REFUND', escrowId: string, call: Call) {
    const owner = ownerScope(call.principal);
    const prepared = await escrows.prepare(kind, escrowId, now(), workFor(call), owner);
    return { escrow: shown(await confirmed(prepared, call)) };
  }

  return implement(EscrowService, {
    createEscrow: {
      check: (request) => checkTerms({ ...request, type: typeOf(request.type) }),
      run: async ({ filingNo, amount, buyerId, sellerId }, call) => {
        const terms = { filingNo, type: 'GUARANTEE', amount, buyerId, sellerId } as const;
        const owner = ownerScope(call.principal);
        const work = workFor(call);
        // A repetition goes on with its order, whoever the institution knows by now.
        if ((await escrows.findRepeated(work)) === undefined) refuseViolations(institution.check(terms));
        const prepared = await escrows.open(terms, now(), work, owner);
        const { escrowId } = await confirmed(prepared, call);
        return { escrowId, state: Escrow_State.FROZEN, clearing, amount };
      },
    },
    getEscrow: {
      check: () => [],
      run: async ({ escrowId }, { principal }) => {
        const order = await escrows.find(escrowId, ownerScope(principal));
        if (order === undefined) throw escrowNotFound();
        return { escrow: shown(order) };
      },
    },
    listEscrows: {
      check: (request, { principal }) => [
        ...paging.check(request, principal),
        ...checkState(request.state),
        ...(request.filingNo === '' ? [] : checkFilingNumber('filingNo', request.filingNo)),
      ],
      run: async (request, { principal }) => {
        const filter = {
          owner: ownerScope(principal),
          state: stateOf(request.state),
          filingNo: request.filingNo || undefined,
        };
        const page = await escrows.list(filter, paging.query(request, principal));
        const nextPageToken = paging.token(page, request, principal);
        return { escrows: page.items.map(shown), nextPageToken };
      },
    },
    releaseEscrow: { check: () => [], run: ({ escrowId }, call) => resolve('RELEASE', escrowId, call) },
    refundEscrow: { check: () => [], run: ({ escrowId }, call) => resolve('REFUND', escrowId, call) },
  });
}

function typeOf(type: Escrow_Type): 'GUARANTEE' | undefined {
  return type === Escrow_Type.GUARANTEE ? 'GUARANTEE' : undefined;
}

function checkState(state: Escrow_State): Violation[] {
  if (state === Escrow_State.STATE_UNSPECIFIED || stateOf(state) !== undefined) return [];
  return [{ field: 'state', rule: `must be ${escrowStates.join(' or ')}` }];
}

/** The state that a filter names; undefined for all. */
function stateOf(state: Escrow_State): EscrowState | undefined {
  return escrowStates.find((known) => Escrow_State[known] === state);
}

function toMessage(order: Escrow, currency: string): MessageInitShape<typeof EscrowSchema> {
  const { state, pending, type, history, ...rest } = order;
  return {
    ...rest,
    ...(pending === undefined ? {} : { pending: Escrow_Instruction[pending] }),
    state: Escrow_State[state],
    type: Escrow_Type[type],
    clearing,
    currency,
    history: history.map((change) => ({ state: Escrow_State[change.state], at: change.at })),
  };
}
