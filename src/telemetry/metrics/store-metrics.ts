import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import { keyEndsS, orderAgesS } from '../../store/metric-commands.ts';
import { each, type MetricDefinition, one, secondsSince } from './definition.ts';

const spanNames: Readonly<Record<number, string>> = { 600: '10m', 3600: '1h', 86400: '1d', 604800: '7d' };
const spanName = (seconds: number): string => spanNames[seconds] ?? `${seconds}s`;

/** The buckets of `OpenOrders.counts`: each is named by the age that it ends with, the last by the one before. */
const ageNames = [...orderAgesS.map((ageS) => `under_${spanName(ageS)}`), `over_${spanName(orderAgesS[3])}`];

/** The metrics that the store and the registry report. They are missing if the store does not respond in time. */
export const storeMetrics: readonly MetricDefinition[] = [
  {
    name: 'artseal_store_up',
    help: 'Whether the store reported its metrics in time; if not, all metrics of the store and of orders are missing.',
    type: 'gauge',
    read: ({ store, registry }) => one(store === undefined || registry === undefined ? 0 : 1),
  },
  {
    name: 'artseal_store_requests_in_flight',
    help: 'Requests that the store has accepted and not finished.',
    type: 'gauge',
    read: ({ store }) => one(store?.requestsInFlight),
  },
  {
    name: 'artseal_store_transaction_requests',
    help: 'Requests that shared one write transaction.',
    type: 'histogram',
    read: ({ store }) => one(store?.transactionRequests),
  },
  {
    name: 'artseal_store_transaction_duration_seconds',
    help: 'Write transactions, from begin to the end of the commit.',
    type: 'histogram',
    read: ({ store }) => one(store?.transactionSeconds),
  },
  {
    name: 'artseal_store_commit_duration_seconds',
    help: 'Commits: writing and syncing the write-ahead log, and sometimes a checkpoint.',
    type: 'histogram',
    read: ({ store }) => one(store?.commitSeconds),
  },
  {
    name: 'artseal_store_nonces',
    help: 'Spent nonces that are remembered.',
    type: 'gauge',
    read: ({ store }) => one(store?.nonces),
  },
  {
    name: 'artseal_store_database_bytes',
    help: 'Size of the database file.',
    type: 'gauge',
    read: ({ store }) => one(store?.files?.databaseBytes),
  },
  {
    name: 'artseal_store_log_bytes',
    help: 'Size of the write-ahead log.',
    type: 'gauge',
    read: ({ store }) => one(store?.files?.logBytes),
  },
  {
    name: 'artseal_store_disk_free_bytes',
    help: 'Free space on the disk of the data folder.',
    type: 'gauge',
    read: ({ store }) => one(store?.files?.freeBytes),
  },
  {
    name: 'artseal_filing_clock_rejections_total',
    help: 'Filings rejected because the wall clock may be wrong.',
    type: 'counter',
    read: ({ store }) => one(store?.incidents.clockRejections),
  },
  {
    name: 'artseal_damaged_record_reads_total',
    help: 'Reads of records that differ from the evidence log, or of damaged parts of the database; none was returned.',
    type: 'counter',
    read: ({ store }) => one(store?.incidents.damagedRecords),
  },
  {
    name: 'artseal_numbers_left',
    help: 'Numbers of this year that are not yet assigned.',
    type: 'gauge',
    labels: ['kind'],
    read: ({ registry }) =>
      registry === undefined
        ? []
        : each('kind', {
            filing: filingSequenceMax - registry.filingNumbers,
            escrow: escrowSequenceMax - registry.escrowNumbers,
          }),
  },
  {
    name: 'artseal_numbers_limit',
    help: 'Numbers that one year has.',
    type: 'gauge',
    labels: ['kind'],
    read: () => each('kind', { filing: filingSequenceMax, escrow: escrowSequenceMax }),
  },
  {
    name: 'artseal_filing_cap_used_ratio',
    help: 'Largest share of its yearly filing cap that a platform has used; 0 if no platform has a cap.',
    type: 'gauge',
    read: ({ registry }) =>
      one(registry && (registry.nearestCap ? registry.nearestCap.filings / registry.nearestCap.cap : 0)),
  },
  {
    name: 'artseal_escrow_orders',
    help: 'Orders by state.',
    type: 'gauge',
    labels: ['state'],
    read: ({ registry }) => [
      ...(registry?.openOrders ?? []).map(({ state, counts }) => ({
        labels: { state },
        value: sum(counts),
      })),
      ...each('state', registry?.settledOrders ?? {}),
    ],
  },
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
  {
    name: 'artseal_escrow_orders_in_review',
    help: 'Orders that need an operator.',
    type: 'gauge',
    read: ({ registry }) => one(registry?.ordersInReview),
  },
  {
    name: 'artseal_escrow_holds_ending',
    help: 'FROZEN orders whose hold lapses within a day; the money then returns to the buyer.',
    type: 'gauge',
    read: ({ registry }) => one(registry?.holdsEnding),
  },
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
  {
    name: 'artseal_escrow_unanswered_attempts',
    help: 'Consecutive attempts that the provider did not answer, over all orders with an open instruction.',
    type: 'gauge',
    read: ({ registry }) =>
      one(registry && sum(registry.openInstructions.map((each) => each.failedAttempts))),
  },
  {
    name: 'artseal_escrow_oldest_unanswered_seconds',
    help: 'Age of the oldest instruction that was sent and not answered; 0 if there is none.',
    type: 'gauge',
    read: ({ registry, nowMs }) => {
      const unanswered = registry?.openInstructions.filter(({ status }) => status === 'UNKNOWN');
      return one(
        unanswered && Math.max(0, ...unanswered.map((each) => secondsSince(each.oldestAtMs, nowMs))),
      );
    },
  },
  {
    name: 'artseal_escrow_lookup_delay_seconds',
    help: 'How long the next order has been due for a lookup at the provider; 0 if none is due.',
    type: 'gauge',
    read: ({ registry, nowMs }) => one(registry && secondsSince(registry.nextLookUpAtMs ?? nowMs, nowMs)),
  },
  {
    name: 'artseal_events_total',
    help: 'Sequence number of the newest event; a restore adds a million.',
    type: 'counter',
    read: ({ registry }) => one(registry?.newestEvent),
  },
  {
    name: 'artseal_webhook_endpoints',
    help: 'Webhook endpoints by state: healthy or failing by the last delivery, or disabled.',
    type: 'gauge',
    labels: ['state'],
    read: ({ registry }) => {
      if (registry === undefined) return [];
      const { healthy, failing, disabled } = registry.webhooks;
      return each('state', { healthy, failing, disabled });
    },
  },
  {
    name: 'artseal_webhook_longest_failing_seconds',
    help: 'How long the longest failing endpoint has failed; it is disabled after five days. 0 if none fails.',
    type: 'gauge',
    read: ({ registry, nowMs }) =>
      one(registry && secondsSince((registry.webhooks.failingSinceS ?? nowMs / 1_000) * 1_000, nowMs)),
  },
  {
    name: 'artseal_webhook_deliveries',
    help: 'Undelivered events among the first 10000: pending ones are being sent or retried, waiting ones follow them.',
    type: 'gauge',
    labels: ['status'],
    read: ({ registry }) => {
      if (registry === undefined) return [];
      const { pending, waiting } = registry.webhooks;
      return each('status', { pending, waiting });
    },
  },
  {
    name: 'artseal_webhook_lag_seconds',
    help: 'Longest delay of a delivery to a healthy endpoint; 0 if nothing waits.',
    type: 'gauge',
    read: ({ registry, nowMs }) =>
      one(registry && secondsSince(registry.webhooks.waitsSinceMs ?? nowMs, nowMs)),
  },
  {
    name: 'artseal_api_keys_ending',
    help: 'Keys that expire within that time after a rotation.',
    type: 'gauge',
    labels: ['within'],
    read: ({ registry }) =>
      (registry?.keysEnding ?? []).map((value, place) => ({
        labels: { within: spanName(keyEndsS[place] ?? 0) },
        value,
      })),
  },
];

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
