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
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { CallTracer, ListenerName, RequestEvent, TraceHeaders } from '../../api/call-observer.ts';
import { reasons } from '../../domain/reason.ts';
import type { Logger } from '../../lib/log.ts';
import { buildInfo } from '../../packaging/build-info.ts';
import { type PaymentProvider, ProviderFailure } from '../../payments/provider.ts';
import type { Kind, Store, StoreRequest } from '../../store/store.ts';

/** Makes spans of calls, with child spans for their requests to the store and the payment provider. */
export interface Traces extends CallTracer {
  /** Wraps the store: each request of a call gets a span. */
  observeStore(store: Store): Store;
  /** Wraps the provider: each request gets a span, below that of its call if there is one. */
  observeProvider(provider: PaymentProvider): PaymentProvider;
  /** Sends the remaining spans, for at most two seconds. */
  close(): Promise<void>;
}

/** How often spans are sent, unless OTEL_BSP_SCHEDULE_DELAY is set, and how long a request may take, in milliseconds. */
const sendEveryMs = 5_000;
const sendTimeoutMs = 10_000;
/** How long `close` waits for the remaining spans, in milliseconds. */
const closeTimeoutMs = 2_000;

/** Starts tracing as the standard environment variables say. Throws for invalid values. */
export function openTraces(env: NodeJS.ProcessEnv, log: Logger): Traces {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'artseal', 'service.version': buildInfo.version }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(env),
    spanProcessors: [
      // Drops spans while 2,048 wait to be sent.
      new BatchSpanProcessor({
        exporter: createExporter(log),
        scheduledDelayMillis: Number(env.OTEL_BSP_SCHEDULE_DELAY) || sendEveryMs,
        exportTimeoutMillis: sendTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('artseal', buildInfo.version);
  /** The context of the current call; undefined outside of calls. */
  const active = new AsyncLocalStorage<Context>();
  return {
    begin: (listener, headers) => beginCall(tracer, active, listener, headers),
    observeStore: (store) => ({
      ...store,
      execute: <K extends Kind>(request: StoreRequest<K>) => {
        const context = active.getStore();
        if (context === undefined) return store.execute(request);
        const span = tracer.startSpan(`store ${request.effect?.kind ?? 'Admit'}`, {}, context);
        return ended(span, store.execute(request));
      },
    }),
    observeProvider: (provider) => {
      const traced = <T>(request: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
        const name = `provider ${request}`;
        const span = tracer.startSpan(name, { kind: SpanKind.CLIENT }, active.getStore() ?? ROOT_CONTEXT);
        // The promise may never settle after the abort.
        signal.addEventListener('abort', () => endFailed(span, 'UNANSWERED'), { once: true });
        return ended(span, work());
      };
      return {
        ...provider,
        instruct: (instruction, signal) =>
          traced(instruction.kind, signal, () => provider.instruct(instruction, signal)),
        lookUp: (order, signal) => traced('LOOK_UP', signal, () => provider.lookUp(order, signal)),
      };
    },
    close: async () => {
      const { promise: timeout, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, closeTimeoutMs);
      // The exporter logs spans that cannot be sent.
      await Promise.race([provider.shutdown().catch(() => {}), timeout]);
      clearTimeout(timer);
    },
  };
}

const propagator = new W3CTraceContextPropagator();
/** Reads `traceparent` only: `tracestate` is text of the caller, which is not passed on. */
const headerGetter = {
  get: ({ traceparent }: TraceHeaders, name: string) => (name === 'traceparent' ? traceparent : undefined),
  keys: () => ['traceparent'],
};

function beginCall(
  tracer: Tracer,
  active: AsyncLocalStorage<Context>,
  listener: ListenerName,
  headers: TraceHeaders,
): ReturnType<CallTracer['begin']> {
  const caller = propagator.extract(ROOT_CONTEXT, headers, headerGetter);
  const attributes = { 'artseal.listener': listener };
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

/** The attributes of a span of a call: nothing that the caller wrote, and nothing secret. */
function attributesOf({ requestId, apiError }: RequestEvent, status: number): Attributes {
  const reason = apiError?.reason ?? 'OK';
  return { 'artseal.request_id': requestId, 'artseal.reason': reason, 'http.response.status_code': status };
}

/** Ends a span when a promise settles. Returns the same result. */
async function ended<T>(span: Span, promise: Promise<T>): Promise<T> {
  try {
    const result = await promise;
    // An aborted request to the provider has ended its span.
    if (span.isRecording()) span.end();
    return result;
  } catch (error) {
    endFailed(span, error instanceof ProviderFailure ? error.kind : 'FAILED');
    throw error;
  }
}

/** Ends a span as failed, unless it has ended. `why` is of a closed set. */
function endFailed(span: Span, why: string): void {
  if (!span.isRecording()) return;
  span.setAttribute('error.type', why);
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** The samplers of OTEL_TRACES_SAMPLER, by name; the argument is a share from 0 to 1. */
const samplers: Readonly<Record<string, (share: number) => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
};

/**
 * Returns the sampler of OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. The default follows the caller's decision, and
 * samples all traces without one. Throws for invalid values.
 */
function samplerOf(env: NodeJS.ProcessEnv): Sampler {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const make = samplers[name];
  if (make === undefined) {
    throw new Error(`OTEL_TRACES_SAMPLER must be one of ${Object.keys(samplers).join(', ')}, not ${name}`);
  }
  const share = Number(env.OTEL_TRACES_SAMPLER_ARG || 1);
  if (!(share >= 0 && share <= 1)) throw new Error('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1');
  return make(share);
}

/**
 * Sends spans over OTLP/HTTP. The library reads the standard environment variables of OpenTelemetry from the process. Logs
 * once when sending starts to fail, and once when it works again.
 */
function createExporter(log: Logger): SpanExporter {
  const exporter = new OTLPTraceExporter();
  let isFailing = false;

  function note({ code, error }: ExportResult): void {
    const fails = code !== ExportResultCode.SUCCESS;
    if (fails && !isFailing) log.warn({ why: error?.message }, 'spans cannot be sent to the collector');
    if (!fails && isFailing) log.info('spans are sent to the collector again');
    isFailing = fails;
  }

  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        note(result);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}
