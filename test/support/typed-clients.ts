import assert from 'node:assert/strict';
import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import { AccessService } from '../../gen/artseal/v1/access_pb.ts';
import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import { BackupService } from '../../gen/artseal/v1/backup_pb.ts';
import { EscrowService } from '../../gen/artseal/v1/escrow_pb.ts';
import { EventService } from '../../gen/artseal/v1/event_pb.ts';
import { EvidenceService } from '../../gen/artseal/v1/evidence_pb.ts';
import { FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import { MaintenanceService } from '../../gen/artseal/v1/maintenance_pb.ts';
import { ProvenanceService } from '../../gen/artseal/v1/provenance_pb.ts';
import { ReviewService } from '../../gen/artseal/v1/review_pb.ts';
import { SessionService } from '../../gen/artseal/v1/session_pb.ts';
import { WebhookService } from '../../gen/artseal/v1/webhook_pb.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { type Reason, reasons } from '../../src/domain/reason.ts';
import { uuidV7 } from './rejected.ts';

/** The generated clients of an internal system. */
export function typedClients(transport: Transport) {
  return {
    filings: createClient(FilingService, transport),
    provenance: createClient(ProvenanceService, transport),
    evidence: createClient(EvidenceService, transport),
    escrows: createClient(EscrowService, transport),
    events: createClient(EventService, transport),
    webhooks: createClient(WebhookService, transport),
    access: createClient(AccessService, transport),
    admin: createClient(AdminService, transport),
    review: createClient(ReviewService, transport),
    backups: createClient(BackupService, transport),
    maintenance: createClient(MaintenanceService, transport),
    sessions: createClient(SessionService, transport),
  };
}

export type TypedClients = ReturnType<typeof typedClients>;

/** Adds headers to every call. */
export function sending(headers: Record<string, string>): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };
}

/** The header that identifies an internal system. */
export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** The error of a rejected call. */
export interface TypedError {
  readonly message: string;
  readonly requestId: string;
  readonly retryAfter: string | null;
}

/** Returns the error of a call. */
export async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'The call was not rejected.' });
}

/**
 * Asserts that a call is rejected with a reason: the status code of the reason, and one ErrorInfo with the reason and the
 * request id of the response. `code` is for calls to which gRPC gives another status code.
 */
export async function typedError(
  call: Promise<unknown>,
  reason: Reason,
  code: string = reasons[reason].code,
): Promise<TypedError> {
  const error = await errorOf(call);
  const [info, ...more] = error.findDetails(ErrorInfoSchema);
  assert.ok(info !== undefined && more.length === 0, `no ErrorInfo: ${error}`);
  assert.equal(info.reason, reason, error.message);
  assert.equal(info.domain, 'artseal');
  assert.equal(codeName(error.code), code);
  const requestId = info.metadata.requestId ?? '';
  assert.match(requestId, uuidV7);
  assert.equal(error.metadata.get('X-Request-Id'), requestId);
  assert.notEqual(error.rawMessage, '');
  return { message: error.rawMessage, requestId, retryAfter: error.metadata.get('Retry-After') };
}

/** The name of a status code, as reasons have it. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<=.)[A-Z]/g, '_$&').toLowerCase();
}
