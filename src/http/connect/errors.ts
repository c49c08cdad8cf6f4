import type { DescMessage } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import { type ApiError, reasons, type StatusCode } from '../../domain/reason.ts';
import { ValidationError } from '../../domain/violation.ts';

/** The domain of the reasons in google.rpc.ErrorInfo. */
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
  canceled: Code.Canceled,
  data_loss: Code.DataLoss,
};

/**
 * An error as typed clients get it: status code, message, the reason in google.rpc.ErrorInfo, the invalid fields of `input` in
 * google.rpc.BadRequest, and the time to wait in google.rpc.RetryInfo and in the header Retry-After, in seconds. The default code
 * is the one of the reason.
 */
export function toConnectError(
  apiError: ApiError,
  requestId: string,
  code: Code = codes[reasons[apiError.reason].code],
  input?: DescMessage,
): ConnectError {
  const {
    reason,
    message,
    hints: { retryAfterS, allow },
  } = apiError;
  const info = { reason, domain: errorDomain, metadata: { requestId } };
  const error = new ConnectError(message, code, undefined, [{ desc: ErrorInfoSchema, value: info }]);
  if (apiError instanceof ValidationError && reason === 'VALIDATION_FAILED') {
    const fieldViolations = apiError.violations.map(({ field, rule }) => ({
      field: protoName(field, input),
      description: rule,
    }));
    error.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  if (allow !== undefined) error.metadata.set('Allow', allow.join(', '));
  if (retryAfterS !== undefined) {
    error.metadata.set('Retry-After', String(retryAfterS));
    error.details.push({ desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(retryAfterS) } } });
  }
  return error;
}

/** The name of a field in the proto; unchanged if the message has no such field. */
function protoName(path: string, input: DescMessage | undefined): string {
  const [first = '', ...rest] = path.split('.');
  const name = input?.fields.find(({ jsonName }) => jsonName === first)?.name ?? first;
  return [name, ...rest].join('.');
}
