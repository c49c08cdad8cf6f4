import type { MessageInitShape } from '@bufbuild/protobuf';
import { Escrow_State } from '../../../gen/artseal/v1/escrow_pb.ts';
import {
  DecideOrderRequest_Decision as Decisions,
  Order_OpenInstruction_Kind as Kinds,
  type OrderSchema,
  ReviewService,
  Order_OpenInstruction_Status as Statuses,
} from '../../../gen/artseal/v1/review_pb.ts';
import { reasonBounds } from '../../domain/audit-entry.ts';
import { escrowStates } from '../../domain/escrow.ts';
import { type Decision, type OrderEnd, orderEnds } from '../../domain/resolution.ts';
import { checkText } from '../../domain/text.ts';
import type { Violation } from '../../domain/violation.ts';
import type { EscrowCase } from '../../store/reconciliation-commands.ts';
import { actorOf, type Implementation, implement } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { checkRequiredWord, checkWord, wordOf } from './enum-words.ts';
import { escrowMessage } from './escrow-service.ts';
import { listing } from './paging.ts';

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
      check: ({ state }) => checkWord('state', escrowStates, Escrow_State, state),
      find: ({ state, needsReview }, page, { execute }) => {
        const selection = { state: wordOf(escrowStates, Escrow_State, state), needsReview };
        return execute({ kind: 'ListCases', selection, page });
      },
      respond: ({ items }) => ({ orders: items.map(shown) }),
    }),
    decideOrder: {
      check: ({ decision, reason }) => [
        ...checkRequiredWord('decision', decisions, Decisions, decision),
        ...checkText('reason', reason, reasonBounds),
      ],
      run: async ({ escrowId, decision: number, reason }, call) => {
        const decision = wordOf(decisions, Decisions, number) as Decision | 'CLOSE';
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
        ...checkRequiredWord('end', orderEnds, Escrow_State, end),
        ...checkEvidence(evidence),
        ...checkText('reason', reason, reasonBounds),
      ],
      run: async ({ escrowId, evidence, ...request }, call) => {
        await readLog();
        const by = actorOf(call, clock, request.reason);
        const end = wordOf(orderEnds, Escrow_State, request.end) as OrderEnd;
        return decided(await call.execute({ kind: 'EndOrder', by, escrowId, end, evidence, at: now() }));
      },
    },
  });
}

const decisions: readonly (Decision | 'CLOSE')[] = ['LOOK_AGAIN', 'ACCEPT', 'RETURN', 'STOP', 'CLOSE'];

/** Checks the SHA-256 of a proof. */
function checkEvidence(evidence: string): Violation[] {
  if (/^[0-9a-f]{64}$/.test(evidence)) return [];
  return [{ field: 'evidence', rule: 'must be a SHA-256: 64 lower-case hex digits' }];
}
