import type { Door } from './call-figures.ts';
import type { RequestEvent } from './request-event.ts';

/** Headers as Node has them, by lower-case name; `traceparent` of W3C Trace Context is read. */
export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The span of a call that is under way. */
export interface CallSpan {
  /** 32 hex digits, the same in every span of the trace. */
  readonly traceId: string;
  /** Does the work of the call, so that what it asks of the store and of the institution is found under its span. */
  run<T>(work: () => T): T;
  /** Ends the span with what is known of the call by then, and the HTTP status that it was answered with. */
  end(event: RequestEvent, status: number): void;
}

/** Makes the spans of calls. */
export interface CallTracer {
  /** Begins the span of a call, below that of its caller where the headers name one. */
  begin(door: Door, headers: TraceHeaders): CallSpan;
}

/**
 * Whether the environment asks for traces, as the standard variables of OpenTelemetry have it: an endpoint is named, and
 * they are not turned off.
 */
export function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  const isNamed = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  return Boolean(isNamed) && !isOff;
}
