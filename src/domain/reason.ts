/** The closed dictionary of errors: every error that a caller can see has one of these reasons. */

/** Each reason with its HTTP status over REST and its status code over RPC. */
export const reasons = {
  AUTH_HEADER_MISSING: { http: 401, code: 'unauthenticated' },
  AUTH_HEADER_INVALID: { http: 401, code: 'unauthenticated' },
  TIMESTAMP_EXPIRED: { http: 401, code: 'unauthenticated' },
  SIGNATURE_INVALID: { http: 401, code: 'unauthenticated' },
  NONCE_REUSED: { http: 401, code: 'unauthenticated' },
  KEY_SUSPENDED: { http: 403, code: 'permission_denied' },
  PERMISSION_DENIED: { http: 403, code: 'permission_denied' },
  RATE_LIMITED: { http: 429, code: 'resource_exhausted' },
  QUOTA_EXCEEDED: { http: 429, code: 'resource_exhausted' },
  BAD_REQUEST_TARGET: { http: 400, code: 'invalid_argument' },
  INVALID_JSON: { http: 400, code: 'invalid_argument' },
  VALIDATION_FAILED: { http: 400, code: 'invalid_argument' },
  BODY_TOO_LARGE: { http: 413, code: 'resource_exhausted' },
  UNSUPPORTED_MEDIA_TYPE: { http: 415, code: 'invalid_argument' },
  NOT_FOUND: { http: 404, code: 'not_found' },
  METHOD_NOT_ALLOWED: { http: 405, code: 'unimplemented' },
  FILING_NOT_FOUND: { http: 404, code: 'not_found' },
  ESCROW_NOT_FOUND: { http: 404, code: 'not_found' },
  ESCROW_ACTIVE: { http: 409, code: 'failed_precondition' },
  TRANSFERS_EXHAUSTED: { http: 409, code: 'failed_precondition' },
  ESCROW_STATE_CONFLICT: { http: 409, code: 'failed_precondition' },
  LINK_NOT_FOUND: { http: 404, code: 'not_found' },
  EVENTS_EXPIRED: { http: 410, code: 'failed_precondition' },
  WEBHOOK_NOT_FOUND: { http: 404, code: 'not_found' },
  WEBHOOKS_EXHAUSTED: { http: 409, code: 'failed_precondition' },
  WEBHOOK_DISABLED: { http: 409, code: 'failed_precondition' },
  PAYMENT_DECLINED: { http: 402, code: 'failed_precondition' },
  PAYMENT_PENDING: { http: 503, code: 'aborted' },
  IDEMPOTENCY_KEY_INVALID: { http: 400, code: 'invalid_argument' },
  IDEMPOTENCY_KEY_REUSED: { http: 422, code: 'invalid_argument' },
  IDEMPOTENCY_IN_PROGRESS: { http: 409, code: 'aborted' },
  FILING_NUMBERS_EXHAUSTED: { http: 503, code: 'resource_exhausted' },
  FILING_CAP_REACHED: { http: 429, code: 'resource_exhausted' },
  ESCROW_NUMBERS_EXHAUSTED: { http: 503, code: 'resource_exhausted' },
  // Only over the internal API.
  BACKUP_FAILED: { http: 409, code: 'failed_precondition' },
  RECORD_DAMAGED: { http: 500, code: 'data_loss' },
  INTERNAL: { http: 500, code: 'internal' },
  UNAVAILABLE: { http: 503, code: 'unavailable' },
  TIMEOUT: { http: 504, code: 'deadline_exceeded' },
  // Only in logs, metrics and traces: the client that cancelled gets no response.
  CANCELLED: { http: 499, code: 'canceled' },
} as const satisfies Record<string, { http: number; code: string }>;

/** A code of an error. */
export type Reason = keyof typeof reasons;

/** Connect's names of the gRPC status codes in use. */
export type StatusCode = (typeof reasons)[Reason]['code'];

/** 4xx statuses of errors that may be gone on a retry. */
const passing: readonly number[] = [401, 403, 413, 415, 429, 499];

/** Whether a retry with the same Idempotency-Key gets the same error and does not run again. */
export function isFinal(reason: Reason): boolean {
  const { http } = reasons[reason];
  return http < 500 && !passing.includes(http);
}

/** Hints for the client. REST and RPC each send them in their own headers. */
export interface Hints {
  /** Whole seconds, at least 1, before the same call may succeed. */
  readonly retryAfterS?: number;
  /** The server's clock, Unix seconds. */
  readonly serverTimeS?: number;
  /** The HTTP methods that the resource has. */
  readonly allow?: readonly string[];
}

/** An error of a call. Its message is for the caller: it names field and bound, and holds no secret. */
export class ApiError extends Error {
  readonly reason: Reason;
  readonly hints: Hints;

  constructor(reason: Reason, message: string, hints: Hints = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ApiError';
    this.reason = reason;
    this.hints = hints;
  }
}

/** Retry-After if the service is unavailable, in seconds. */
const unavailableRetryAfterS = 1;

/** The error while the service is overloaded, shutting down, or cannot store anything. */
export function unavailable(message: string, cause?: unknown): ApiError {
  return new ApiError('UNAVAILABLE', message, { retryAfterS: unavailableRetryAfterS }, { cause });
}

/** The error of a request that was not complete in time. */
export function incomplete(withinMs: number): ApiError {
  return new ApiError('TIMEOUT', `The request was not complete within ${withinMs / 1_000} seconds.`);
}

/** The error of a call whose client closed the connection or stream before the response was sent. */
export function cancelled(): ApiError {
  return new ApiError('CANCELLED', 'The client cancelled the call.');
}

/** The error of a connection whose client reads nothing, holds too much memory, or pipelines too many requests. */
export function cutOffError(reason: 'stalled' | 'memory' | 'requests'): ApiError {
  switch (reason) {
    case 'stalled':
      return new ApiError('TIMEOUT', 'The client read nothing of its response for 20 seconds.');
    case 'memory':
      return unavailable(
        'Too much memory is held by clients that do not read their responses or finish their requests.',
      );
    case 'requests':
      return unavailable('Too many requests were sent before their responses were read.');
  }
}

/** Maps any error to an ApiError. Unknown errors become INTERNAL, without details. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = 'The service failed; the operator finds the cause in the log under this request id.';
  return new ApiError('INTERNAL', message, {}, { cause: error });
}
