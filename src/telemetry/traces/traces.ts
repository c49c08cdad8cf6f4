import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { ListenerName } from '../../api/call-metrics.ts';
import type { RequestEvent } from '../../api/request-event.ts';
import type { CallTracer, TraceHeaders } from '../../api/tracing.ts';
import { reasons } from '../../domain/reason.ts';
import { buildInfo } from '../../packaging/build-info.ts';
import { type PaymentProvider, ProviderFailure } from '../../payments/provider.ts';
import type { Kind, Store, StoreRequest } from '../../store/store.ts';
import { createExporter } from './exporter.ts';
import { samplerOf } from './sampler.ts';

/** Makes spans of calls, and below them of what they ask of the store and of the provider. */
export interface Traces extends CallTracer {
  /** The same store: a unit that a call submits has a span. */
  observeStore(store: Store): Store;
  /** The same provider: a request to it has a span, below that of its call if it is made by one. */
  observeProvider(provider: PaymentProvider): PaymentProvider;
  /** Sends what is left, for a limited time. */
  close(): Promise<void>;
}

/** Spans that wait to be sent, at most; more are dropped. And those that are sent at once. */
const spansMax = 2_048;
const spansAtOnce = 512;
/** How often they are sent, unless OTEL_BSP_SCHEDULE_DELAY says otherwise, and how long it may take, in milliseconds. */
const sendEveryMs = 5_000;
const sendTimeoutMs = 10_000;
/** How long closing waits for what is left to be sent, in milliseconds. */
const closeTimeoutMs = 2_000;

/** Begins to trace as the standard variables ask for. Throws for those that cannot be followed. */
export function openTraces(env: NodeJS.ProcessEnv, log: Logger): Traces {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'artseal', 'service.version': buildInfo.version }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: createExporter(log),
        maxQueueSize: spansMax,
        maxExportBatchSize: spansAtOnce,
        scheduledDelayMillis: Number(env.OTEL_BSP_SCHEDULE_DELAY) || sendEveryMs,
        exportTimeoutMillis: sendTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('artseal', buildInfo.version);
  /** The context of the call that asks; nothing outside of a call. */
  const active = new AsyncLocalStorage<Context>();
  return {
    begin: (door, headers) => beginCall(tracer, active, door, headers),
    observeStore: (store) => ({
      ...store,
      execute: <K extends Kind>(unit: StoreRequest<K>) => {
        const context = active.getStore();
        if (context === undefined) return store.execute(unit);
        const span = tracer.startSpan(`store ${unit.effect?.kind ?? 'Admit'}`, {}, context);
        return ended(span, store.execute(unit));
      },
    }),
    observeProvider: (provider) => {
      const ask = <T>(request: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
        const name = `provider ${request}`;
        const span = tracer.startSpan(name, { kind: SpanKind.CLIENT }, active.getStore() ?? ROOT_CONTEXT);
        // It may never settle, once it is given up.
        signal.addEventListener('abort', () => endFailed(span, 'UNANSWERED'), { once: true });
        return ended(span, work());
      };
      return {
        ...provider,
        instruct: (instruction, signal) =>
          ask(instruction.kind, signal, () => provider.instruct(instruction, signal)),
        lookUp: (order, signal) => ask('LOOK_UP', signal, () => provider.lookUp(order, signal)),
      };
    },
    close: async () => {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closeTimeoutMs);
      // What could not be sent is in the log.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
    },
  };
}

const propagator = new W3CTraceContextPropagator();
/** Gives `traceparent` alone: `tracestate` is a text of the caller's, which goes nowhere. */
const headerGetter = {
  get: ({ traceparent }: TraceHeaders, name: string) => (name === 'traceparent' ? traceparent : undefined),
  keys: () => ['traceparent'],
};

function beginCall(
  tracer: Tracer,
  active: AsyncLocalStorage<Context>,
  door: ListenerName,
  headers: TraceHeaders,
): ReturnType<CallTracer['begin']> {
  const caller = propagator.extract(ROOT_CONTEXT, headers, headerGetter);
  const attributes = { 'artseal.door': door };
  const span = tracer.startSpan('none', { kind: SpanKind.SERVER, attributes }, caller);
  const context = trace.setSpan(caller, span);
  return {
    traceId: span.spanContext().traceId,
    run: (work) => active.run(context, work),
    end: (event, status) => {
      span.updateName(event.operation ?? 'none');
      span.setAttributes(attributesOf(event, status));
      const { apiError } = event;
      if (apiError !== undefined && reasons[apiError.reason].http >= 500) endFailed(span, apiError.reason);
      else span.end();
    },
  };
}

/** What a span tells of a call: nothing that its caller wrote, and nothing secret. */
function attributesOf({ requestId, apiError }: RequestEvent, status: number): Attributes {
  const reason = apiError?.reason ?? 'OK';
  return { 'artseal.request_id': requestId, 'artseal.reason': reason, 'http.response.status_code': status };
}

/** Ends a span when a promise settles, whose outcome is passed on. */
async function ended<T>(span: Span, promise: Promise<T>): Promise<T> {
  try {
    const result = await promise;
    // A request to a provider may have been given up before.
    if (span.isRecording()) span.end();
    return result;
  } catch (error) {
    endFailed(span, error instanceof ProviderFailure ? error.kind : 'FAILED');
    throw error;
  }
}

/** Ends a span, unless it is over, with why what it stands for failed: a word of a closed set. */
function endFailed(span: Span, why: string): void {
  if (!span.isRecording()) return;
  span.setAttribute('error.type', why);
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}
