import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { type Refusal, reasons, type StatusCode } from '../domain/reason.ts';

/** The domain that the reasons of this service belong to, in google.rpc.ErrorInfo. */
export const errorDomain = 'artseal';

const codes: Record<StatusCode, Code> = {
  unauthenticated: Code.Unauthenticated,
  permission_denied: Code.PermissionDenied,
  resource_exhausted: Code.ResourceExhausted,
  invalid_argument: Code.InvalidArgument,
  not_found: Code.NotFound,
  unimplemented: Code.Unimplemented,
  failed_precondition: Code.FailedPrecondition,
  unavailable: Code.Unavailable,
  aborted: Code.Aborted,
  internal: Code.Internal,
  deadline_exceeded: Code.DeadlineExceeded,
};

/** A refusal as typed clients see it: status code, message, and the reason in google.rpc.ErrorInfo. */
export function toConnectError({ reason, message, hints }: Refusal, requestId: string): ConnectError {
  const headers = hints.retryAfterS === undefined ? undefined : { 'Retry-After': String(hints.retryAfterS) };
  const info = { reason, domain: errorDomain, metadata: { requestId } };
  return new ConnectError(message, codes[reasons[reason].code], headers, [
    { desc: ErrorInfoSchema, value: info },
  ]);
}
