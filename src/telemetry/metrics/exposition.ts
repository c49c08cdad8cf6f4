import { countOf } from '../../lib/distribution.ts';
import type { Labels, MetricDefinition } from './definition.ts';
import { metrics } from './metrics.ts';
import type { Snapshot } from './snapshot.ts';

/** The content type of Prometheus' text format. */
export const contentType = 'text/plain; version=0.0.4; charset=utf-8';

/** Writes all metrics in Prometheus' text format. A metric without samples is left out. */
export function expose(snapshot: Snapshot): string {
  return metrics.map((metric) => linesOf(metric, snapshot)).join('');
}

function linesOf(metric: MetricDefinition, snapshot: Snapshot): string {
  const { name, help, type } = metric;
  const lines = type === 'histogram' ? histogramLines(metric, snapshot) : valueLines(metric, snapshot);
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function valueLines(metric: Exclude<MetricDefinition, { type: 'histogram' }>, snapshot: Snapshot): string[] {
  return metric.read(snapshot).map(({ labels = {}, value }) => line(metric.name, labels, value));
}

function histogramLines(
  { name, read }: Extract<MetricDefinition, { type: 'histogram' }>,
  snapshot: Snapshot,
): string[] {
  return read(snapshot).flatMap(({ labels = {}, value }) => {
    const count = countOf(value);
    let cumulated = 0;
    const buckets = value.bounds.map((bound, index) => {
      cumulated += value.counts[index] ?? 0;
      return line(`${name}_bucket`, { ...labels, le: String(bound) }, cumulated);
    });
    return [
      ...buckets,
      line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
      line(`${name}_sum`, labels, value.sum),
      line(`${name}_count`, labels, count),
    ];
  });
}

/** Label values need no escaping: they are of closed sets, without quotes, backslashes and newlines. */
function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
}
