import type { DescMessage } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import { type ApiError, reasons, type StatusCode } from '../../domain/reason.ts';
import { ValidationError } from '../../domain/violation.ts';

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
  canceled: Code.Canceled,
  data_loss: Code.DataLoss,
};

/**
 * An error as typed clients see it: status code, message, the reason in google.rpc.ErrorInfo, the fields of `input` that
 * are not valid in google.rpc.BadRequest, and when to come again in google.rpc.RetryInfo and the header Retry-After, in
 * seconds. The code is that of the dictionary if not given.
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

/** The name of a field in the proto; as it is where the message has no such field. */
function protoName(path: string, input: DescMessage | undefined): string {
  const [first = '', ...rest] = path.split('.');
  const name = input?.fields.find(({ jsonName }) => jsonName === first)?.name ?? first;
  return [name, ...rest].join('.');
}
