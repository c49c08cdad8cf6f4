import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import { keyEndsS, orderAgesS } from '../../store/metric-commands.ts';
import {
  counter,
  counterBy,
  gauge,
  gaugeBy,
  histogram,
  type MetricDefinition,
  secondsSince,
} from './definition.ts';

const spanNames: Readonly<Record<number, string>> = { 600: '10m', 3600: '1h', 86400: '1d', 604800: '7d' };
const spanName = (seconds: number): string => spanNames[seconds] ?? `${seconds}s`;

/** The buckets of `OpenOrders.counts`: each is named by the age that it ends with, the last by the one before. */
const ageNames = [...orderAgesS.map((ageS) => `under_${spanName(ageS)}`), `over_${spanName(orderAgesS[3])}`];

const keySpans = keyEndsS.map(spanName);

/** The metrics that the store and the registry report. They are missing if the store does not respond in time. */
export const storeMetrics: readonly MetricDefinition[] = [
  gauge(
    'artseal_store_up',
    'Whether the store reported in time; if not, the metrics of store and orders are missing.',
    ({ store, registry }) => (store === undefined || registry === undefined ? 0 : 1),
  ),
  gauge(
    'artseal_store_requests_in_flight',
    'Requests that the store has not finished.',
    ({ store }) => store?.requestsInFlight,
  ),
  histogram(
    'artseal_store_transaction_requests',
    'Requests that shared one write transaction.',
    ({ store }) => store?.transactionRequests,
  ),
  histogram(
    'artseal_store_transaction_duration_seconds',
    'Write transactions with their commit.',
    ({ store }) => store?.transactionSeconds,
  ),
  histogram(
    'artseal_store_commit_duration_seconds',
    'Commits: writing and syncing the write-ahead log, and sometimes a checkpoint.',
    ({ store }) => store?.commitSeconds,
  ),
  gauge(
    'artseal_store_nonces',
    'Spent nonces that are remembered; an estimate if several instances serve.',
    ({ store }) => store?.nonces,
  ),
  gauge('artseal_store_database_bytes', 'Size of the database.', ({ store }) => store?.files?.databaseBytes),
  gauge('artseal_store_log_bytes', 'Size of the write-ahead log.', ({ store }) => store?.files?.logBytes),
  gauge(
    'artseal_store_disk_free_bytes',
    'Free space on the disk of the data folder.',
    ({ store }) => store?.files?.freeBytes,
  ),
  gauge(
    'artseal_postgres_connected',
    'Whether the server is connected to PostgreSQL.',
    ({ store }) => store?.server && Number(store.server.isConnected),
  ),
  counter(
    'artseal_postgres_reconnects_total',
    'Connections to PostgreSQL that replaced a lost one.',
    ({ store }) => store?.server?.reconnects,
  ),
  counterBy(
    'artseal_postgres_repeated_transactions_total',
    'Transactions repeated because another one was in the way.',
    'sqlstate',
    ({ store }) => store?.server?.repeated ?? {},
  ),
  counter(
    'artseal_postgres_commits_in_doubt_total',
    'Commits whose reply was lost, so that the server asked PostgreSQL whether they took effect.',
    ({ store }) => store?.server?.commitsInDoubt,
  ),
  gauge(
    'artseal_postgres_oldest_snapshot_seconds',
    'Age of the oldest transaction that keeps deleted rows; at most a minute old.',
    ({ store }) => store?.server?.snapshotS,
  ),
  gauge(
    'artseal_postgres_instances',
    'Instances that serve the database, this one included.',
    ({ store }) => store?.server?.instances,
  ),
  gauge(
    'artseal_postgres_leading',
    'Whether this instance leads: it does the background work of all.',
    ({ store }) => store?.server && Number(store.server.isLeading),
  ),
  counter(
    'artseal_filing_clock_rejections_total',
    'Filings rejected because the wall clock may be wrong.',
    ({ store }) => store?.incidents.clockRejections,
  ),
  counter(
    'artseal_damaged_record_reads_total',
    'Reads of changed records or damaged parts of the database; none was returned.',
    ({ store }) => store?.incidents.damagedRecords,
  ),
  gaugeBy('artseal_numbers_left', 'Numbers left this year.', 'kind', ({ registry }) => ({
    filing: registry && filingSequenceMax - registry.filingNumbers,
    escrow: registry && escrowSequenceMax - registry.escrowNumbers,
  })),
  gaugeBy('artseal_numbers_limit', 'Numbers of a year.', 'kind', () => ({
    ...{ filing: filingSequenceMax, escrow: escrowSequenceMax },
  })),
  gauge(
    'artseal_filing_cap_used_ratio',
    'Largest used share of a filing cap; 0 if there is none.',
    ({ registry }) =>
      registry && (registry.nearestCap ? registry.nearestCap.filings / registry.nearestCap.cap : 0),
  ),
  gaugeBy('artseal_escrow_orders', 'Orders by state.', 'state', ({ registry }) => ({
    ...Object.fromEntries((registry?.openOrders ?? []).map(({ state, counts }) => [state, sum(counts)])),
    ...registry?.settledOrders,
  })),
  {
    name: 'artseal_escrow_open_orders',
    help: 'Orders whose money is not settled, by state and age.',
    type: 'gauge',
    labels: ['state', 'age'],
    read: ({ registry }) =>
      (registry?.openOrders ?? []).flatMap(({ state, counts }) =>
        counts.map((value, place) => ({ labels: { state, age: ageNames[place] ?? '' }, value })),
      ),
  },
  gauge(
    'artseal_escrow_orders_in_review',
    'Orders that need an operator.',
    ({ registry }) => registry?.ordersInReview,
  ),
  gauge(
    'artseal_escrow_holds_ending',
    'FROZEN orders whose hold lapses within a day.',
    ({ registry }) => registry?.holdsEnding,
  ),
  {
    name: 'artseal_escrow_open_instructions',
    help: 'Open instructions among the 1000 oldest; UNKNOWN were sent and not answered.',
    type: 'gauge',
    labels: ['kind', 'status'],
    read: ({ registry }) =>
      (registry?.openInstructions ?? []).map(({ kind, status, count }) => ({
        labels: { kind, status },
        value: count,
      })),
  },
  gauge(
    'artseal_escrow_unanswered_attempts',
    'Consecutive attempts that the provider did not answer, over all open orders.',
    ({ registry }) => registry && sum(registry.openInstructions.map((each) => each.failedAttempts)),
  ),
  gauge(
    'artseal_escrow_oldest_unanswered_seconds',
    'Age of the oldest unanswered instruction; 0 if there is none.',
    ({ registry, nowMs }) => {
      const unanswered = registry?.openInstructions.filter(({ status }) => status === 'UNKNOWN');
      return unanswered && Math.max(0, ...unanswered.map((each) => secondsSince(each.oldestAtMs, nowMs)));
    },
  ),
  gauge(
    'artseal_escrow_lookup_delay_seconds',
    'How long the next lookup at the provider has been due; 0 if none is.',
    ({ registry, nowMs }) => registry && secondsSince(registry.nextLookUpAtMs ?? nowMs, nowMs),
  ),
  counter(
    'artseal_events_total',
    'Sequence number of the newest event; a restore adds a million.',
    ({ registry }) => registry?.newestEvent,
  ),
  gaugeBy(
    'artseal_webhook_endpoints',
    'Webhook endpoints: healthy or failing by the last delivery, or disabled.',
    'state',
    ({ registry: { webhooks } = {} }) => ({
      healthy: webhooks?.healthy,
      failing: webhooks?.failing,
      disabled: webhooks?.disabled,
    }),
  ),
  gauge(
    'artseal_webhook_longest_failing_seconds',
    'How long the longest failing endpoint has failed; 0 if none fails.',
    ({ registry, nowMs }) =>
      registry && secondsSince((registry.webhooks.failingSinceS ?? nowMs / 1_000) * 1_000, nowMs),
  ),
  gaugeBy(
    'artseal_webhook_deliveries',
    'Undelivered events among the first 10000: pending ones are being sent or retried, waiting ones follow.',
    'status',
    ({ registry: { webhooks } = {} }) => ({ pending: webhooks?.pending, waiting: webhooks?.waiting }),
  ),
  gauge(
    'artseal_webhook_lag_seconds',
    'Longest delay of a delivery to a healthy endpoint; 0 if nothing waits.',
    ({ registry, nowMs }) => registry && secondsSince(registry.webhooks.waitsSinceMs ?? nowMs, nowMs),
  ),
  gaugeBy(
    'artseal_api_keys_ending',
    'Keys that expire within that time after a rotation.',
    'within',
    ({ registry }) =>
      Object.fromEntries((registry?.keysEnding ?? []).map((value, place) => [keySpans[place], value])),
  ),
];

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
