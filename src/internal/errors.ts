import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema, RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
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
  data_loss: Code.DataLoss,
};

/**
 * A refusal as typed clients see it: status code, message, the reason in google.rpc.ErrorInfo, and when to come again
 * in google.rpc.RetryInfo and the header Retry-After, in seconds. The code is that of the dictionary if not given.
 */
export function toConnectError(
  { reason, message, hints: { retryAfterS, allow } }: Refusal,
  requestId: string,
  code: Code = codes[reasons[reason].code],
): ConnectError {
  const info = { reason, domain: errorDomain, metadata: { requestId } };
  const error = new ConnectError(message, code, undefined, [{ desc: ErrorInfoSchema, value: info }]);
  if (allow !== undefined) error.metadata.set('Allow', allow.join(', '));
  if (retryAfterS !== undefined) {
    error.metadata.set('Retry-After', String(retryAfterS));
    error.details.push({ desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(retryAfterS) } } });
  }
  return error;
}
