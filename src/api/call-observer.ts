import { randomUUIDv7 } from 'node:crypto';
import type { Logger } from 'pino';
import type { CallMetrics, ListenerName } from './call-metrics.ts';
import { logCall, type RequestEvent } from './request-event.ts';
import type { CallTracer, TraceHeaders } from './tracing.ts';

/** Sees every call of one door, from its first to its last moment. */
export interface CallObserver {
  /** Begins a call that came from there with these headers, or with none that could be read. */
  begin(client: string | undefined, headers?: TraceHeaders): RequestEvent;
  /** Writes the line of a call that is over, counts it and ends its span; a status of 0 is no answer at all. */
  end(event: RequestEvent, status: number, elapsedMs: number): void;
}

/** What calls are observed by; without a tracer they have no spans. */
export interface Observers {
  readonly log: Logger;
  readonly metrics: CallMetrics;
  readonly tracer?: CallTracer | undefined;
}

/** The observer of a door. */
export function createCallObserver(door: ListenerName, { log, metrics, tracer }: Observers): CallObserver {
  return {
    begin: (client, headers) => ({
      requestId: randomUUIDv7(),
      client,
      span: headers === undefined ? undefined : tracer?.begin(door, headers),
    }),
    end: (event, status, elapsedMs) => {
      logCall(log, event, status, elapsedMs);
      const { operation, apiError, isProbe, span } = event;
      const end = apiError?.reason ?? 'OK';
      metrics.add(door, operation, end, elapsedMs / 1_000);
      // Somebody asks for health every few seconds: a span that does not end is sent nowhere.
      if (!isProbe) span?.end(event, status);
    },
  };
}

/** Does the work of a call under its span, where it has one. */
export function within<T>({ span }: RequestEvent, work: () => T): T {
  return span === undefined ? work() : span.run(work);
}
