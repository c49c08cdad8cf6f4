import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';

/**
 * Sends spans over OTLP/HTTP. The library reads the standard environment variables of OpenTelemetry from the process. Logs
 * once when sending starts to fail, and once when it works again.
 */
export function createExporter(log: Logger): SpanExporter {
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
