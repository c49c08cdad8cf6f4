import { randomUUIDv7 } from 'node:crypto';
import type { Logger } from 'pino';
import type { CallMetrics, ListenerName } from './call-metrics.ts';
import { logCall, type RequestEvent } from './request-event.ts';
import type { CallTracer, TraceHeaders } from './tracing.ts';

/** Observes every call of one listener: log line, metrics and span. */
export interface CallObserver {
  /** Begins a call from a client address. `headers` is undefined if they could not be parsed. */
  begin(client: string | undefined, headers?: TraceHeaders): RequestEvent;
  /** Logs a finished call, counts it and ends its span. A status of 0 means that no response was sent. */
  end(event: RequestEvent, status: number, elapsedMs: number): void;
}

/** Where calls are logged, counted and traced. */
export interface Observers {
  readonly log: Logger;
  readonly metrics: CallMetrics;
  /** Undefined if calls are not traced. */
  readonly tracer?: CallTracer | undefined;
}

export function createCallObserver(
  listener: ListenerName,
  { log, metrics, tracer }: Observers,
): CallObserver {
  return {
    begin: (client, headers) => ({
      requestId: randomUUIDv7(),
      client,
      span: headers === undefined ? undefined : tracer?.begin(listener, headers),
    }),
    end: (event, status, elapsedMs) => {
      logCall(log, event, status, elapsedMs);
      const { operation, apiError, isProbe, span } = event;
      const end = apiError?.reason ?? 'OK';
      metrics.add(listener, operation, end, elapsedMs / 1_000);
      // Probes arrive every few seconds. A span that is not ended is not exported.
      if (!isProbe) span?.end(event, status);
    },
  };
}

/** Runs the work of a call inside its span, if it has one. */
export function within<T>({ span }: RequestEvent, work: () => T): T {
  return span === undefined ? work() : span.run(work);
}
