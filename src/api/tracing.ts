import type { ListenerName } from './call-metrics.ts';
import type { CallSpan } from './request-event.ts';

/** Headers by lower-case name, as Node has them. The tracer reads `traceparent` (W3C Trace Context). */
export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Creates the spans of calls. */
export interface CallTracer {
  /** Begins the span of a call, as a child of the caller's span if the headers name one. */
  begin(listener: ListenerName, headers: TraceHeaders): CallSpan;
}

/** Whether the standard variables of OpenTelemetry enable traces: an endpoint is set, and traces are not turned off. */
export function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  const isNamed = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  return Boolean(isNamed) && !isOff;
}
