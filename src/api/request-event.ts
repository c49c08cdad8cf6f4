import type { Logger } from 'pino';
import { type ApiError, reasons } from '../domain/reason.ts';

/** The trace span of a call. */
export interface CallSpan {
  /** 32 hex digits, the same in every span of the trace. */
  readonly traceId: string;
  /** Runs the work of the call, so that its store and provider requests become child spans. */
  run<T>(work: () => T): T;
  /** Ends the span with the data of the call and its HTTP status. */
  end(event: RequestEvent, status: number): void;
}

/** What is known of a call so far. Its log line is made from this, so it never holds a secret, signature, nonce or body. */
export interface RequestEvent {
  /** UUIDv7, created by the server. */
  readonly requestId: string;
  /** The client's address; `unix` over a Unix socket. */
  readonly client?: string | undefined;
  /** Name of the authenticated caller; set by `setCaller`. */
  caller?: string | undefined;
  /** The open call, whose memory `setCaller` counts for the caller. */
  open?: { identify(caller: string): void };
  /** Public id of the token of an authenticated call. */
  tokenId?: string | undefined;
  /** The API key in the header of a call that was rejected before authentication. */
  claimedKey?: string | undefined;
  /** Full name of the RPC or route. */
  operation?: string;
  apiError?: ApiError;
  /** Whether the operator must fix the error, because the operator configured the client. */
  isForOperator?: boolean;
  /** Whether this is a health probe. */
  isProbe?: boolean;
  /** Whether the route is public and reads the store, so that UNAVAILABLE under load is expected. */
  isForAnybody?: boolean;
  /** Whether the call ended because the process is stopping. */
  isStopping?: boolean;
  readonly span?: CallSpan | undefined;
}

/** Sets the caller of a call after authentication. */
export function setCaller(event: RequestEvent, caller: string): void {
  event.caller = caller;
  event.open?.identify(caller);
}

/** Writes the log line of a finished call. Probes are logged at debug level: readiness logs its own changes. */
export function logCall(log: Logger, event: RequestEvent, status: number, elapsedMs: number): void {
  const { requestId, client, caller, tokenId, claimedKey, operation, apiError, span } = event;
  const { isForOperator, isProbe, isForAnybody, isStopping } = event;
  const ms = Math.round(elapsedMs * 10) / 10;
  const result = { reason: apiError?.reason, ms, traceId: span?.traceId };
  const line = { requestId, client, caller, tokenId, claimedKey, operation, status, ...result };
  // Over gRPC the HTTP status is always 200, and 501 can be the caller's fault.
  const failed = (apiError === undefined ? status : reasons[apiError.reason].http) >= 500;
  const isExpected = apiError === undefined || ['UNAVAILABLE', 'CANCELLED'].includes(apiError.reason);
  if (isProbe && isExpected) log.debug(line, 'call');
  // Reconciliation settles it without the operator.
  else if (apiError?.reason === 'PAYMENT_PENDING') log.warn(line, 'call');
  // The caller set the deadline.
  else if (apiError?.reason === 'TIMEOUT') log.info(line, 'call');
  else if ((isForAnybody || isStopping) && apiError?.reason === 'UNAVAILABLE') log.info(line, 'call');
  else if (isForOperator) log.warn({ ...line, why: apiError?.message }, 'call');
  else if (failed) log.error({ ...line, ...causeOf(apiError) }, 'call');
  else log.info(line, 'call');
}

/** The cause for the log: the message for UNAVAILABLE, the whole error with its stack for anything else. */
function causeOf(apiError: ApiError | undefined): { why?: string; err?: unknown } {
  const cause = apiError?.cause;
  if (apiError?.reason === 'UNAVAILABLE' && cause instanceof Error) return { why: cause.message };
  return { err: cause };
}
