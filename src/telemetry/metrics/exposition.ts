import type { Metric, MetricObjectWithValues, MetricValueWithName } from 'prom-client';
import { countOf, type Figure, figures, type Labels } from './metrics.ts';
import type { Snapshot } from './snapshot.ts';

/** Figures as Prometheus reads them. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

type Written = MetricValueWithName<string>;

/**
 * Writes all figures in the text format of Prometheus. The library that knows it is loaded by the first who reads figures,
 * so that nobody else pays for it.
 */
export async function expose(snapshot: Snapshot): Promise<Exposition> {
  const { Registry } = await import('prom-client');
  const registry = new Registry();
  for (const figure of figures) {
    const values = writtenValues(figure, snapshot);
    if (values.length > 0) registry.registerMetric(counted(figure, values));
  }
  return { contentType: registry.contentType, text: await registry.metrics() };
}

/**
 * A metric that was counted elsewhere: the library asks its metrics for nothing but `get`, though its types know only those
 * that count for themselves.
 */
function counted({ name, help, type }: Figure, values: readonly Written[]): Metric {
  const object = {
    name,
    help,
    type,
    values,
    aggregator: 'sum',
  } as unknown as MetricObjectWithValues<Written>;
  return { name, get: async () => object } as unknown as Metric;
}

function writtenValues(figure: Figure, snapshot: Snapshot): Written[] {
  if (figure.type !== 'histogram') {
    return figure.read(snapshot).map(({ labels = {}, value }) => written(figure.name, labels, value));
  }
  return figure.read(snapshot).flatMap(({ labels = {}, value }) => {
    const { bounds, counts } = value;
    let cumulated = 0;
    const buckets = bounds.map((bound, place) => {
      cumulated += counts[place] ?? 0;
      return written(`${figure.name}_bucket`, { ...labels, le: String(bound) }, cumulated);
    });
    const all = countOf(value);
    return [
      ...buckets,
      written(`${figure.name}_bucket`, { ...labels, le: '+Inf' }, all),
      written(`${figure.name}_sum`, labels, value.sum),
      written(`${figure.name}_count`, labels, all),
    ];
  });
}

const written = (metricName: string, labels: Labels, value: number): Written => ({
  metricName,
  labels,
  value,
});
