import { create, type DescMethodUnary, type Message } from '@bufbuild/protobuf';
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
import { exampleArtwork } from '../src/domain/example.ts';
import { sellerId } from './parties.ts';

/** A request of a client, as it is sent again and again. */
export interface Request {
  readonly method: DescMethodUnary;
  readonly message: Message;
  /** What it is about, for the trace. */
  readonly subject: string;
}

/** An artwork to file. */
export function filingRequest(author: string): Request {
  const artwork = { ...exampleArtwork, author, price: 1n };
  const message = create(CreateFilingRequestSchema, artwork);
  return { method: FilingService.method.createFiling, message, subject: author };
}

/** An order to open. */
export function openingRequest(filingNo: string, amount: bigint, buyerId: string): Request {
  const terms = { filingNo, type: Escrow_Type.GUARANTEE, amount, buyerId, sellerId };
  const message = create(CreateEscrowRequestSchema, terms);
  return { method: EscrowService.method.createEscrow, message, subject: buyerId };
}

/** An order to pay out or back. */
export function resolvingRequest(kind: 'RELEASE' | 'REFUND', escrowId: string): Request {
  const [method, schema] =
    kind === 'RELEASE'
      ? [EscrowService.method.releaseEscrow, ReleaseEscrowRequestSchema]
      : [EscrowService.method.refundEscrow, RefundEscrowRequestSchema];
  return { method, message: create(schema, { escrowId }), subject: escrowId };
}

/** An order to look at. */
export function getRequest(escrowId: string): Request {
  const message = create(GetEscrowRequestSchema, { escrowId });
  return { method: EscrowService.method.getEscrow, message, subject: escrowId };
}

/** The orders of a filing. */
export function listRequest(filingNo: string): Request {
  const message = create(ListEscrowsRequestSchema, { filingNo });
  return { method: EscrowService.method.listEscrows, message, subject: filingNo };
}
