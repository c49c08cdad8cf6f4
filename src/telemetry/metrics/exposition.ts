import type { Metric, MetricObjectWithValues, MetricValueWithName } from 'prom-client';
import { countOf, type Labels, type MetricDefinition, metrics } from './metrics.ts';
import type { Snapshot } from './snapshot.ts';

/** Metrics as Prometheus reads them. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

type Written = MetricValueWithName<string>;

/**
 * Writes all metrics in the text format of Prometheus. The library that knows it is loaded by the first who reads metrics,
 * so that nobody else pays for it.
 */
export async function expose(snapshot: Snapshot): Promise<Exposition> {
  const { Registry } = await import('prom-client');
  const registry = new Registry();
  for (const metric of metrics) {
    const values = writtenValues(metric, snapshot);
    if (values.length > 0) registry.registerMetric(counted(metric, values));
  }
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/**
 * A metric that was counted elsewhere: the library asks its metrics for nothing but `get`, though its types know only those
 * that count for themselves.
 */
function counted({ name, help, type }: MetricDefinition, values: readonly Written[]): Metric {
  const object = {
    name,
    help,
    type,
    values,
    aggregator: 'sum',
  } as unknown as MetricObjectWithValues<Written>;
  return { name, get: async () => object } as unknown as Metric;
}

function writtenValues(metric: MetricDefinition, snapshot: Snapshot): Written[] {
  if (metric.type !== 'histogram') {
    return metric.read(snapshot).map(({ labels = {}, value }) => written(metric.name, labels, value));
  }
  return metric.read(snapshot).flatMap(({ labels = {}, value }) => {
    const { bounds, counts } = value;
    let cumulated = 0;
    const buckets = bounds.map((bound, place) => {
      cumulated += counts[place] ?? 0;
      return written(`${metric.name}_bucket`, { ...labels, le: String(bound) }, cumulated);
    });
    const all = countOf(value);
    return [
      ...buckets,
      written(`${metric.name}_bucket`, { ...labels, le: '+Inf' }, all),
      written(`${metric.name}_sum`, labels, value.sum),
      written(`${metric.name}_count`, labels, all),
    ];
  });
}

const written = (metricName: string, labels: Labels, value: number): Written => ({
  metricName,
  labels,
  value,
});
