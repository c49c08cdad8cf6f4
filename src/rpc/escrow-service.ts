import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  Escrow_State,
  Escrow_Type,
  type EscrowSchema,
  EscrowService,
} from '../../gen/artseal/v1/escrow_pb.ts';
import { ownerScope, type Principal } from '../access/principal.ts';
import { checkTerms, clearing, type Escrow, escrowMoves } from '../domain/escrow.ts';
import { Refusal } from '../domain/reason.ts';
import type { Institution, Verdict } from '../payment/institution.ts';
import type { BusinessTime, EscrowStore } from '../store/store.ts';
import { type Implementation, implement } from './operation.ts';
import { checkPage, pageQuery, pageToken } from './paging.ts';

/** What the escrow operations need. */
export interface EscrowDependencies {
  readonly escrows: EscrowStore;
  readonly institution: Institution;
  readonly now: () => BusinessTime;
  /** How long a call waits for the institution's verdict, in milliseconds. */
  readonly verdictTimeoutMs: number;
}

/** EscrowService. */
export function createEscrowService(dependencies: EscrowDependencies): Implementation {
  const { escrows, institution, now, verdictTimeoutMs } = dependencies;

  async function verdict(order: Escrow, instruct: (order: Escrow) => Promise<Verdict>): Promise<Verdict> {
    try {
      return await within(verdictTimeoutMs, instruct(order));
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const message = `The payment institution has not answered yet for ${order.escrowId}; its state is unchanged.`;
      throw new Refusal('PAYMENT_PENDING', message, { retryAfterS: 5 }, { cause: error });
    }
  }

  async function find(escrowId: string, principal: Principal): Promise<Escrow> {
    const order = await escrows.find(escrowId, ownerScope(principal));
    if (order === undefined) throw new Refusal('ESCROW_NOT_FOUND', 'escrowId names no escrow.');
    return order;
  }

  return implement(EscrowService, {
    createEscrow: {
      check: (request) => checkTerms({ ...request, type: typeOf(request.type) }),
      run: async ({ filingNo, amount, buyerId, sellerId }, { principal }) => {
        const terms = { filingNo, type: 'GUARANTEE', amount, buyerId, sellerId } as const;
        const order = await escrows.open(terms, now(), principal, ownerScope(principal));
        if ((await verdict(order, institution.freeze)) === 'DECLINED') {
          await escrows.move(order.escrowId, 'declined', now());
          throw declined(order, 'hold the amount; the order is CLOSED');
        }
        const { escrowId, state } = await escrows.move(order.escrowId, 'frozen', now());
        return { escrowId, state: Escrow_State[state], clearing, amount };
      },
    },
    getEscrow: {
      check: () => [],
      run: async ({ escrowId }, { principal }) => ({ escrow: toMessage(await find(escrowId, principal)) }),
    },
    listEscrows: {
      check: checkPage,
      run: async (request, { principal }) => {
        const page = await escrows.list(ownerScope(principal), pageQuery(request));
        return { escrows: page.items.map(toMessage), nextPageToken: pageToken(page) };
      },
    },
    releaseEscrow: {
      check: () => [],
      run: async ({ escrowId }, { principal }) => {
        const order = await find(escrowId, principal);
        if (order.state !== escrowMoves.released.from) {
          throw new Refusal(
            'ESCROW_STATE_CONFLICT',
            `${escrowId} is ${order.state}; only a FROZEN order can be released.`,
          );
        }
        if ((await verdict(order, institution.release)) === 'DECLINED') {
          throw declined(order, 'pay the seller; the order stays FROZEN');
        }
        return { escrow: toMessage(await escrows.move(escrowId, 'released', now())) };
      },
    },
  });
}

function declined({ escrowId }: Escrow, what: string): Refusal {
  return new Refusal('PAYMENT_DECLINED', `The payment institution declined, for ${escrowId}, to ${what}.`);
}

function typeOf(type: Escrow_Type): 'GUARANTEE' | undefined {
  return type === Escrow_Type.GUARANTEE ? 'GUARANTEE' : undefined;
}

function toMessage(order: Escrow): MessageInitShape<typeof EscrowSchema> {
  return { ...order, state: Escrow_State[order.state], type: Escrow_Type[order.type], clearing };
}

/** Rejects if a promise does not settle in time. */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${timeoutMs} ms.`)), timeoutMs);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
