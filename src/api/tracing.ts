import type { ListenerName } from './call-metrics.ts';
import type { CallSpan } from './request-event.ts';

/** Headers as Node has them, by lower-case name; `traceparent` of W3C Trace Context is read. */
export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Makes the spans of calls. */
export interface CallTracer {
  /** Begins the span of a call, below that of its caller where the headers name one. */
  begin(door: ListenerName, headers: TraceHeaders): CallSpan;
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
