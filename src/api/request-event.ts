import type { Logger } from 'pino';
import { type ApiError, reasons } from '../domain/reason.ts';

/** The span of a call that is under way. */
export interface CallSpan {
  /** 32 hex digits, the same in every span of the trace. */
  readonly traceId: string;
  /** Does the work of the call, so that what it asks of the store and of the provider is found under its span. */
  run<T>(work: () => T): T;
  /** Ends the span with what is known of the call by then, and the HTTP status that it was answered with. */
  end(event: RequestEvent, status: number): void;
}

/** What is known of a call so far; its log line is made of it. */
export interface RequestEvent {
  /** UUIDv7, the server's own. */
  readonly requestId: string;
  /** The address that it came from; `unix` over a Unix socket. */
  readonly client?: string | undefined;
  /** Name of the caller, once identified: set by `setCaller`. */
  caller?: string | undefined;
  /** The open call, whose caller `setCaller` sets, too. */
  open?: { identify(caller: string): void };
  /** The token that it was sent with, by its public handle, once identified. */
  tokenId?: string | undefined;
  /** The API key that it was sent with, where it was refused before its caller was known. */
  claimedKey?: string | undefined;
  /** Full name of the RPC, once routed. */
  operation?: string;
  /** Why it was refused. */
  apiError?: ApiError;
  /** Whether its error is for the operator to mend, who set up whatever called. */
  isForOperator?: boolean;
  /** Whether it asked for health, as somebody does every few seconds. */
  isProbe?: boolean;
  /** Whether anybody may ask for it as often as they like, so that some are refused for want of room. */
  isForAnybody?: boolean;
  /** Whether it was ended since the process stops. */
  isStopping?: boolean;
  /** Where calls are traced. */
  readonly span?: CallSpan | undefined;
}

/** Says in an event who its caller is. */
export function setCaller(event: RequestEvent, caller: string): void {
  event.caller = caller;
  event.open?.identify(caller);
}

/**
 * Writes the one line that each call leaves: no secret, signature, nonce or body is in an event. For a question for health
 * it is a line for debugging, whether the process is ready or not: a change of that is logged by itself.
 */
export function logCall(log: Logger, event: RequestEvent, status: number, elapsedMs: number): void {
  const { requestId, client, caller, tokenId, claimedKey, operation, apiError, span } = event;
  const { isForOperator, isProbe, isForAnybody, isStopping } = event;
  const ms = Math.round(elapsedMs * 10) / 10;
  const told = { reason: apiError?.reason, ms, traceId: span?.traceId };
  const line = { requestId, client, caller, tokenId, claimedKey, operation, status, ...told };
  // Over gRPC the HTTP status is 200 whatever the answer, and 501 may be the caller's fault.
  const failed = (apiError === undefined ? status : reasons[apiError.reason].http) >= 500;
  const isExpected = apiError === undefined || ['UNAVAILABLE', 'CANCELLED'].includes(apiError.reason);
  if (isProbe && isExpected) log.debug(line, 'call');
  // Recovery is at work: an operator need not be.
  else if (apiError?.reason === 'PAYMENT_PENDING') log.warn(line, 'call');
  // The caller gave no more time.
  else if (apiError?.reason === 'TIMEOUT') log.info(line, 'call');
  else if ((isForAnybody || isStopping) && apiError?.reason === 'UNAVAILABLE') log.info(line, 'call');
  else if (isForOperator) log.warn({ ...line, why: apiError?.message }, 'call');
  else if (failed) log.error({ ...line, ...causeOf(apiError) }, 'call');
  else log.info(line, 'call');
}

/** The cause for the log: what the machine refused in words, anything internalError with its stack. */
function causeOf(apiError: ApiError | undefined): { why?: string; err?: unknown } {
  const cause = apiError?.cause;
  if (apiError?.reason === 'UNAVAILABLE' && cause instanceof Error) return { why: cause.message };
  return { err: cause };
}
