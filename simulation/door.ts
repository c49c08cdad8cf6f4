import { create, type DescMethodUnary, type Message, toJsonString } from '@bufbuild/protobuf';
import {
  CreateEscrowRequestSchema,
  Escrow_Type,
  EscrowService,
  GetEscrowRequestSchema,
  ListEscrowsRequestSchema,
  RefundEscrowRequestSchema,
  ReleaseEscrowRequestSchema,
} from '../gen/artseal/v1/escrow_pb.ts';
import { CreateFilingRequestSchema, FilingService } from '../gen/artseal/v1/filing_pb.ts';
import type { Idempotency, KeptAnswer } from '../src/access/idempotency.ts';
import type { Principal } from '../src/access/principal.ts';
import { asRefusal, reasons } from '../src/domain/reason.ts';
import type { Dispatcher } from '../src/rpc/dispatcher.ts';

/** A request of a client, as it is sent again and again. */
export interface Request {
  readonly method: DescMethodUnary;
  readonly message: Message;
  /** What an idempotency key stands for. */
  readonly target: string;
  readonly body: string;
}

/** An answer as it went out. */
export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: clients look into answers of every shape.
  readonly json: any;
}

/** Takes calls of clients to their operations, as the two doors do, without their sockets and signatures. */
export type Door = (principal: Principal, request: Request, key: string | undefined) => Promise<Answer>;

/** What the door needs. */
export interface DoorDependencies {
  readonly idempotency: Idempotency;
  readonly dispatcher: Dispatcher;
  readonly durable: () => Promise<void>;
}

/** Opens the door to these operations. */
export function openDoor({ idempotency, dispatcher, durable }: DoorDependencies): Door {
  let requests = 0;

  async function invoke(principal: Principal, { method, message }: Request, idempotencyKey?: string) {
    requests += 1;
    const call = { requestId: `request-${requests}`, principal, idempotencyKey };
    return { status: 200, body: toJsonString(method.output, await dispatcher.invoke(method, message, call)) };
  }

  async function answer(
    principal: Principal,
    request: Request,
    key: string | undefined,
  ): Promise<KeptAnswer> {
    const { target, body } = request;
    const signed = { method: 'POST', target, body: Buffer.from(body) };
    const claimed = await idempotency.claim(principal, key === undefined ? [] : [key], signed);
    if (claimed.replay) return claimed.replay;
    const given = await invoke(principal, request, claimed.key).catch(refused);
    await claimed.settle(given);
    return given;
  }

  return async (principal, request, key) => {
    const { status, body } = await answer(principal, request, key)
      .then(async (given) => {
        await durable();
        return given;
      })
      .catch(refused);
    return { status, json: JSON.parse(body) };
  };
}

function refused(error: unknown): KeptAnswer {
  const { reason, message, cause } = asRefusal(error);
  const why = reason === 'INTERNAL' && cause instanceof Error ? cause.stack : message;
  return { status: reasons[reason].http, body: JSON.stringify({ code: reason, message: why }) };
}

/** An artwork to file. */
export function filingRequest(author: string): Request {
  const artwork = { author, era: '1947', size: '68 x 136 cm', material: 'ink', condition: 'good', price: 1n };
  const message = create(CreateFilingRequestSchema, artwork);
  return { method: FilingService.method.createFiling, message, target: '/api/v1/filing', body: author };
}

/** An order to open. */
export function openingRequest(filingNo: string, amount: bigint, buyerId: string): Request {
  const terms = { filingNo, type: Escrow_Type.GUARANTEE, amount, buyerId, sellerId: 'seller' };
  const message = create(CreateEscrowRequestSchema, terms);
  return { method: EscrowService.method.createEscrow, message, target: '/api/v1/escrow', body: buyerId };
}

/** An order to pay out or back. */
export function resolvingRequest(kind: 'RELEASE' | 'REFUND', escrowId: string): Request {
  const target = `/api/v1/escrow/${escrowId}/${kind.toLowerCase()}`;
  if (kind === 'RELEASE') {
    const message = create(ReleaseEscrowRequestSchema, { escrowId });
    return { method: EscrowService.method.releaseEscrow, message, target, body: '' };
  }
  const message = create(RefundEscrowRequestSchema, { escrowId });
  return { method: EscrowService.method.refundEscrow, message, target, body: '' };
}

/** An order to look at. */
export function getRequest(escrowId: string): Request {
  const message = create(GetEscrowRequestSchema, { escrowId });
  return { method: EscrowService.method.getEscrow, message, target: `/api/v1/escrow/${escrowId}`, body: '' };
}

/** The orders of a filing. */
export function listRequest(filingNo: string): Request {
  const message = create(ListEscrowsRequestSchema, { filingNo });
  return { method: EscrowService.method.listEscrows, message, target: '/api/v1/escrow', body: '' };
}
