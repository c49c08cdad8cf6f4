import { randomUUIDv7 } from 'node:crypto';
import { type ApiError, type Reason, reasons } from '../domain/reason.ts';
import {
  createDistribution,
  type Distribution,
  type DistributionData,
  durationBoundsS,
} from '../lib/distribution.ts';
import type { Logger } from '../lib/log.ts';

/** The listeners: of the public API, of the internal API, and of the admin socket. */
export const listenerNames = ['public', 'internal', 'admin'] as const;

/** The listener that takes a call. */
export type ListenerName = (typeof listenerNames)[number];

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
  /** Whether UNAVAILABLE is expected: the route is public and reads the store, or the process is stopping. */
  mayBeUnavailable?: boolean;
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
  const { isForOperator, isProbe, mayBeUnavailable } = event;
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
  else if (mayBeUnavailable && apiError?.reason === 'UNAVAILABLE') log.info(line, 'call');
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

/** Headers by lower-case name, as Node has them. The tracer reads `traceparent` (W3C Trace Context). */
export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Creates the spans of calls. */
export interface CallTracer {
  /** Begins the span of a call, as a child of the caller's span if the headers name one. */
  begin(listener: ListenerName, headers: TraceHeaders): CallSpan;
}

/** Where calls are logged, counted, kept and traced. */
export interface Observers {
  readonly log: Logger;
  readonly metrics: CallMetrics;
  readonly requests: {
    /** Keeps a call that ended with an HTTP status; 0 if no response was sent. */
    add(listener: ListenerName, event: RequestEvent, status: number, elapsedMs: number): void;
  };
  /** Undefined if calls are not traced. */
  readonly tracer?: CallTracer | undefined;
}

/** Observes every call of one listener: log line, metrics, recent requests and span. */
export type CallObserver = ReturnType<typeof createCallObserver>;

export function createCallObserver(listener: ListenerName, { log, metrics, requests, tracer }: Observers) {
  return {
    /** Begins a call from a client address. `headers` is undefined if they could not be parsed. */
    begin: (client: string | undefined, headers?: TraceHeaders): RequestEvent => ({
      requestId: randomUUIDv7(),
      client,
      span: headers === undefined ? undefined : tracer?.begin(listener, headers),
    }),
    /** Logs a finished call, counts it, keeps it among the recent ones and ends its span. A status of 0 means that no response was sent. */
    end: (event: RequestEvent, status: number, elapsedMs: number): void => {
      logCall(log, event, status, elapsedMs);
      const { operation, apiError, isProbe, span } = event;
      const end = apiError?.reason ?? 'OK';
      metrics.add(listener, operation, end, elapsedMs / 1_000);
      // Probes arrive every few seconds. A span that is not ended is not exported.
      if (isProbe) return;
      requests.add(listener, event, status, elapsedMs);
      span?.end(event, status);
    },
  };
}

/** Runs the work of a call inside its span, if it has one. */
export function within<T>({ span }: RequestEvent, work: () => T): T {
  return span === undefined ? work() : span.run(work);
}

/** How a call ended: successfully, or with an error. */
export type CallEnd = 'OK' | Reason;

/** The duration in seconds of all calls with the same listener, operation and end. */
export interface CallMetric {
  readonly listener: ListenerName;
  /** Name of an RPC or of a route; `none` if the request named neither. */
  readonly operation: string;
  readonly end: CallEnd;
  readonly seconds: DistributionData;
}

/** Counts the calls of all listeners. */
export type CallMetrics = ReturnType<typeof createCallMetrics>;

const noOperation = 'none';

export function createCallMetrics() {
  type Counted = Omit<CallMetric, 'seconds'> & { readonly distribution: Distribution };
  const counted: Counted[] = [];
  /** The same by listener, operation and end. A joined key would have to be made and hashed for each call. */
  const byListener = new Map<ListenerName, Map<string, Map<CallEnd, Counted>>>();

  function entryOf(listener: ListenerName, operation: string, end: CallEnd): Counted {
    const byOperation = byListener.get(listener) ?? new Map<string, Map<CallEnd, Counted>>();
    const byEnd = byOperation.get(operation) ?? new Map<CallEnd, Counted>();
    const known = byEnd.get(end);
    if (known !== undefined) return known;
    const made = { listener, operation, end, distribution: createDistribution(durationBoundsS) };
    byListener.set(listener, byOperation.set(operation, byEnd.set(end, made)));
    counted.push(made);
    return made;
  }

  return {
    add: (listener: ListenerName, operation = noOperation, end: CallEnd, seconds: number): void =>
      entryOf(listener, operation, end).distribution.add(seconds),
    /** An entry for each combination that occurred. */
    data: (): readonly CallMetric[] =>
      counted.map(({ distribution, ...entry }) => ({ ...entry, seconds: distribution.data() })),
  };
}
