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

/** A request of a client. Each retry sends the same one. */
export interface Request {
  readonly method: DescMethodUnary;
  readonly message: Message;
  /** The subject of its events in the trace. */
  readonly subject: string;
}

/** Returns a CreateFiling request with so many attachments. */
export function filingRequest(author: string, photographs: number): Request {
  const attachments = Array.from({ length: photographs }, (_, nth) => ({
    name: `${nth}.jpg`,
    sha256: String(nth).repeat(64),
  }));
  const artwork = { ...exampleArtwork, author, price: 1n, attachments };
  const message = create(CreateFilingRequestSchema, artwork);
  return { method: FilingService.method.createFiling, message, subject: author };
}

/** Returns a CreateEscrow request. */
export function openingRequest(filingNo: string, amount: bigint, buyerId: string): Request {
  const terms = { filingNo, type: Escrow_Type.GUARANTEE, amount, buyerId, sellerId };
  const message = create(CreateEscrowRequestSchema, terms);
  return { method: EscrowService.method.createEscrow, message, subject: buyerId };
}

/** Returns a ReleaseEscrow or RefundEscrow request. */
export function resolvingRequest(kind: 'RELEASE' | 'REFUND', escrowId: string): Request {
  const [method, schema] =
    kind === 'RELEASE'
      ? [EscrowService.method.releaseEscrow, ReleaseEscrowRequestSchema]
      : [EscrowService.method.refundEscrow, RefundEscrowRequestSchema];
  return { method, message: create(schema, { escrowId }), subject: escrowId };
}

/** Returns a GetEscrow request. */
export function getRequest(escrowId: string): Request {
  const message = create(GetEscrowRequestSchema, { escrowId });
  return { method: EscrowService.method.getEscrow, message, subject: escrowId };
}

/** Returns a ListEscrows request for a filing. */
export function listRequest(filingNo: string): Request {
  const message = create(ListEscrowsRequestSchema, { filingNo });
  return { method: EscrowService.method.listEscrows, message, subject: filingNo };
}
