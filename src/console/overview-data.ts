import type { GetOverviewResponse, GetOverviewResponse_Sample } from '../../gen/artseal/v1/admin_pb.ts';

/** The names of the metrics that the overview shows, as /metrics has them. */
export const shownMetrics = {
  backupFailing: 'artseal_backup_failing',
  backupTaken: 'artseal_backup_taken_seconds',
  build: 'artseal_build_info',
  deliveries: 'artseal_webhook_deliveries',
  diskFree: 'artseal_store_disk_free_bytes',
  endpoints: 'artseal_webhook_endpoints',
  inReview: 'artseal_escrow_orders_in_review',
  numbersLeft: 'artseal_numbers_left',
  openOrders: 'artseal_escrow_open_orders',
  orders: 'artseal_escrow_orders',
} as const;

/** Returns the value of a metric with these labels; undefined if the server does not report it. */
export function metricValue(
  { metrics }: Pick<GetOverviewResponse, 'metrics'>,
  metric: keyof typeof shownMetrics,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  return metrics.find(
    ({ name, labels: found }) =>
      name === shownMetrics[metric] &&
      Object.entries(labels).every(([label, value]) => found[label] === value),
  )?.value;
}

/** The counts of a sample that are plotted. */
type Count = 'calls' | 'rejected' | 'failed' | 'filings';

/** How much each count grew in each of at most `partsMax` periods of equal length, and when each ended, in Unix seconds. */
export function growth(samples: readonly GetOverviewResponse_Sample[], partsMax: number) {
  const every = Math.max(1, Math.ceil((samples.length - 1) / partsMax));
  // Backwards, so that the last period ends now and is not shorter than the others.
  const chosen = samples.filter((_, place) => (samples.length - 1 - place) % every === 0);
  const grown = (count: Count): number[] =>
    chosen.slice(1).map((sample, place) => Number(sample[count] - (chosen[place]?.[count] ?? 0n)));
  return { times: chosen.slice(1).map(({ at }) => Number(at)), grown };
}
