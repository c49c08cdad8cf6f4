import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import { filingSequenceMax } from '../../domain/filing.ts';
import type { DistributionData } from '../../lib/distribution.ts';
import { keyEndsS, orderAgesS } from '../../store/metric-commands.ts';
import type { Snapshot } from './snapshot.ts';

/** Labels of a sample; each value is one of a closed set, none is a text of a caller. */
export type Labels = Readonly<Record<string, string>>;

/** One value of a counter or gauge, or one distribution of a histogram. */
export interface Sample<Value> {
  readonly labels?: Labels;
  readonly value: Value;
}

/** A metric that operators watch, under the name that Prometheus knows it by. */
export type MetricDefinition = {
  readonly name: string;
  readonly help: string;
  /** None if not given. */
  readonly labels?: readonly string[];
} & (
  | { readonly type: 'counter' | 'gauge'; read(snapshot: Snapshot): readonly Sample<number>[] }
  | { readonly type: 'histogram'; read(snapshot: Snapshot): readonly Sample<DistributionData>[] }
);

/** No sample of what is not known, and one of what is. */
const one = <Value>(value: Value | undefined): Sample<Value>[] => (value === undefined ? [] : [{ value }]);

/** A sample for each member of a record. */
const each = (label: string, values: Readonly<Record<string, number>>): Sample<number>[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

const spanNames: Readonly<Record<number, string>> = { 600: '10m', 3600: '1h', 86400: '1d', 604800: '7d' };
const spanName = (seconds: number): string => spanNames[seconds] ?? `${seconds}s`;

/** The buckets of `OpenOrders.counts`: each is named by the age that it ends with, the last by the one before. */
const ageNames = [...orderAgesS.map((ageS) => `under_${spanName(ageS)}`), `over_${spanName(orderAgesS[3])}`];

const secondsSince = (atMs: number, nowMs: number): number => Math.max(0, (nowMs - atMs) / 1_000);

/** All metrics, in the order in which they are written. */
export const metrics: readonly MetricDefinition[] = [
  {
    name: 'artseal_build_info',
    help: 'Version and commit of what runs; always 1.',
    type: 'gauge',
    labels: ['version', 'commit'],
    read: ({ build: { version, commit = 'unknown' } }) => [{ labels: { version, commit }, value: 1 }],
  },
  {
    name: 'artseal_ready',
    help: 'Whether the process is ready to take calls, which /readyz tells as well.',
    type: 'gauge',
    read: ({ readiness }) => one(Object.values(readiness).every(Boolean) ? 1 : 0),
  },
  {
    name: 'artseal_ready_part',
    help: 'The same of each part of readiness.',
    type: 'gauge',
    labels: ['part'],
    read: ({ readiness }) =>
      Object.entries(readiness).map(([part, isReady]) => ({ labels: { part }, value: isReady ? 1 : 0 })),
  },
  {
    name: 'artseal_calls_total',
    help: 'Calls that ended, by door, operation and reason; OK is answered, CANCELLED is given up by the client.',
    type: 'counter',
    labels: ['door', 'operation', 'reason'],
    read: ({ calls }) =>
      calls.map(({ door, operation, end, seconds }) => ({
        labels: { door, operation, reason: end },
        value: countOf(seconds),
      })),
  },
  {
    name: 'artseal_call_duration_seconds',
    help: 'From the head of a request to its answer.',
    type: 'histogram',
    labels: ['door', 'operation', 'reason'],
    read: ({ calls }) =>
      calls.map(({ door, operation, end, seconds }) => ({
        labels: { door, operation, reason: end },
        value: seconds,
      })),
  },
  {
    name: 'artseal_connections_cut_off_total',
    help: 'Connections closed since their clients read nothing (stalled), all calls held too much memory (memory), or too many requests were sent ahead (requests).',
    type: 'counter',
    labels: ['reason'],
    read: ({ cutOffs }) => each('reason', cutOffs),
  },
  {
    name: 'artseal_store_up',
    help: 'Whether the store told its metrics in time: without them all others of the store and of orders are missing.',
    type: 'gauge',
    read: ({ store, registry }) => one(store === undefined || registry === undefined ? 0 : 1),
  },
  {
    name: 'artseal_store_requests_in_flight',
    help: 'CallTransaction of work that the store has taken and not answered.',
    type: 'gauge',
    read: ({ store }) => one(store?.unitsInFlight),
  },
  {
    name: 'artseal_store_transaction_requests',
    help: 'CallTransaction of work that shared one transaction that wrote.',
    type: 'histogram',
    read: ({ store }) => one(store?.transactionUnits),
  },
  {
    name: 'artseal_store_transaction_duration_seconds',
    help: 'Transactions that wrote, from begin to the end of their commit.',
    type: 'histogram',
    read: ({ store }) => one(store?.transactionSeconds),
  },
  {
    name: 'artseal_store_commit_duration_seconds',
    help: 'Commits: the log is written and synced to the disk, and sometimes folded into the database.',
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
    help: 'What the service can still write on the disk of the data folder.',
    type: 'gauge',
    read: ({ store }) => one(store?.files?.freeBytes),
  },
  {
    name: 'artseal_filing_clock_wrong',
    help: 'Whether filings are refused since the wall clock may be wrong.',
    type: 'gauge',
    read: ({ clockFault }) => [{ value: Number(clockFault !== undefined) }],
  },
  {
    name: 'artseal_filing_clock_rejections_total',
    help: 'Filings that were refused since the wall clock may be wrong.',
    type: 'counter',
    read: ({ store }) => one(store?.incidents.clockRejections),
  },
  {
    name: 'artseal_damaged_record_reads_total',
    help: 'Reads of records that are not what was recorded, or of damaged parts of the database; none of them was returned.',
    type: 'counter',
    read: ({ store }) => one(store?.incidents.damagedRecords),
  },
  {
    name: 'artseal_numbers_left',
    help: 'Numbers of this year that are not given out.',
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
    help: 'Numbers that a year has.',
    type: 'gauge',
    labels: ['kind'],
    read: () => each('kind', { filing: filingSequenceMax, escrow: escrowSequenceMax }),
  },
  {
    name: 'artseal_filing_cap_used_ratio',
    help: 'Greatest share that a platform has used of its cap on filings this year; 0 if no platform has a cap.',
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
    help: 'Orders whose money is not settled, by state and by how long ago they were opened.',
    type: 'gauge',
    labels: ['state', 'age'],
    read: ({ registry }) =>
      (registry?.openOrders ?? []).flatMap(({ state, counts }) =>
        counts.map((value, place) => ({ labels: { state, age: ageNames[place] ?? '' }, value })),
      ),
  },
  {
    name: 'artseal_escrow_orders_in_review',
    help: 'Orders that wait for a person.',
    type: 'gauge',
    read: ({ registry }) => one(registry?.ordersInReview),
  },
  {
    name: 'artseal_escrow_holds_ending',
    help: 'FROZEN orders whose hold lapses within a day, so that the buyer gets the money back.',
    type: 'gauge',
    read: ({ registry }) => one(registry?.holdsEnding),
  },
  {
    name: 'artseal_escrow_open_instructions',
    help: 'Instructions to the provider that are not settled, of the 1000 oldest; UNKNOWN were given and not answered.',
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
    help: 'Attempts in a row that the provider left without an answer, of all orders with an open instruction.',
    type: 'gauge',
    read: ({ registry }) =>
      one(registry && sum(registry.openInstructions.map((each) => each.failedAttempts))),
  },
  {
    name: 'artseal_escrow_oldest_unanswered_seconds',
    help: 'Age of the oldest instruction that was given and not answered; 0 if there is none.',
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
    help: 'How long the order has waited that the provider is to be asked about first; 0 if none is due.',
    type: 'gauge',
    read: ({ registry, nowMs }) => one(registry && secondsSince(registry.nextLookUpAtMs ?? nowMs, nowMs)),
  },
  {
    name: 'artseal_payment_provider_request_duration_seconds',
    help: 'Requests to the provider that were answered.',
    type: 'histogram',
    labels: ['request'],
    read: ({ provider }) => provider.map(({ request, seconds }) => ({ labels: { request }, value: seconds })),
  },
  {
    name: 'artseal_payment_provider_failures_total',
    help: 'Requests to the provider that were not answered, and why.',
    type: 'counter',
    labels: ['request', 'kind'],
    read: ({ provider }) =>
      provider.flatMap(({ request, failures }) =>
        Object.entries(failures).map(([kind, value]) => ({ labels: { request, kind }, value })),
      ),
  },
  {
    name: 'artseal_payment_provider_reached',
    help: 'Whether the provider answered when it was asked last, every half minute, for its word on the credentials.',
    type: 'gauge',
    read: ({ access: { isReached } }) => one(isReached === undefined ? undefined : Number(isReached)),
  },
  {
    name: 'artseal_payment_provider_credentials_rejected',
    help: 'Whether it rejected them, by the last word that it had on them.',
    type: 'gauge',
    read: ({ access: { credentials } }) =>
      one(credentials === undefined ? undefined : Number(credentials === 'REJECTED')),
  },
  {
    name: 'artseal_events_total',
    help: 'Events that platforms and internal systems were told, since ever; a restoration counts as a million.',
    type: 'counter',
    read: ({ registry }) => one(registry?.newestEvent),
  },
  {
    name: 'artseal_event_polls_waiting',
    help: 'Calls of GET /api/v1/events and ListEvents that wait for an event.',
    type: 'gauge',
    read: ({ feed }) => one(feed.polls),
  },
  {
    name: 'artseal_event_streams',
    help: 'Open streams of WatchEvents.',
    type: 'gauge',
    read: ({ feed }) => one(feed.streams),
  },
  {
    name: 'artseal_webhook_endpoints',
    help: 'Webhooks by state: healthy and failing ones are enabled, and took or did not take what they were sent last.',
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
    help: 'For how long that webhook fails which fails for longest; after five days it is disabled. 0 if none fails.',
    type: 'gauge',
    read: ({ registry, nowMs }) =>
      one(registry && secondsSince((registry.webhooks.failingSinceS ?? nowMs / 1_000) * 1_000, nowMs)),
  },
  {
    name: 'artseal_webhook_deliveries',
    help: 'Deliveries that did not arrive yet, of the first 10000: pending ones are sent again, waiting ones behind those.',
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
    help: 'For how long healthy webhooks could have been sent what they were not, at the most; 0 if there is nothing.',
    type: 'gauge',
    read: ({ registry, nowMs }) =>
      one(registry && secondsSince(registry.webhooks.waitsSinceMs ?? nowMs, nowMs)),
  },
  {
    name: 'artseal_webhook_attempts_total',
    help: 'Attempts at sending to webhooks that ended, by whether the event had arrived.',
    type: 'counter',
    labels: ['outcome'],
    read: ({ sending: { delivered, failed } }) => each('outcome', { delivered, failed }),
  },
  {
    name: 'artseal_webhook_requests_in_flight',
    help: 'Requests to webhooks that are under way.',
    type: 'gauge',
    read: ({ sending }) => one(sending.requestsInFlight),
  },
  {
    name: 'artseal_webhook_disabled_total',
    help: 'Webhooks that were disabled since they had failed for five days or had answered 410.',
    type: 'counter',
    read: ({ sending }) => one(sending.disabled),
  },
  {
    name: 'artseal_api_keys_ending',
    help: 'Keys that a rotation ends within that time.',
    type: 'gauge',
    labels: ['within'],
    read: ({ registry }) =>
      (registry?.keysEnding ?? []).map((value, place) => ({
        labels: { within: spanName(keyEndsS[place] ?? 0) },
        value,
      })),
  },
  {
    name: 'artseal_certificate_end_seconds',
    help: 'Until when the certificate of a door that speaks TLS is good, in Unix seconds.',
    type: 'gauge',
    labels: ['door'],
    read: ({ certificateEnds }) =>
      Array.from(certificateEnds, ([door, endMs]) => ({ labels: { door }, value: endMs / 1_000 })),
  },
  {
    name: 'artseal_backup_taken_seconds',
    help: 'When the last verified backup was taken, by serve or by artseal backup rotate, in Unix seconds; 0 until one is known.',
    type: 'gauge',
    read: ({ backups }) =>
      one(backups && (backups.last === undefined ? 0 : Date.parse(backups.last.takenAt) / 1_000)),
  },
  {
    name: 'artseal_backup_period_seconds',
    help: 'How often they are to be taken: ARTSEAL_BACKUP_EVERY.',
    type: 'gauge',
    read: ({ backups }) => one(backups && backups.everyMs / 1_000),
  },
  {
    name: 'artseal_backup_failing',
    help: 'Whether the last try to take and verify one failed, the last verified one does not exist any more, or the backup folder of serve cannot be written.',
    type: 'gauge',
    read: ({ backups }) => one(backups && Number(backups.failure !== undefined)),
  },
  {
    name: 'artseal_evidence_log_leaves',
    help: 'Leaves of the evidence log, as of the last look.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.leaves),
  },
  {
    name: 'artseal_evidence_log_published_leaves',
    help: 'Those of them that the newest checkpoint covers; about a second behind, or nothing more is signed.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.publishedLeaves),
  },
  {
    name: 'artseal_evidence_log_published_seconds',
    help: 'When the newest checkpoint was published, in Unix seconds; an idle log has an old one.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.publishedAtS),
  },
  {
    name: 'artseal_evidence_log_sign_failures_total',
    help: 'Tries to sign a checkpoint that failed or were refused; one a second as long as that lasts.',
    type: 'counter',
    read: ({ evidenceLog }) => one(evidenceLog.failures),
  },
  {
    name: 'artseal_evidence_log_rolled_back',
    help: 'How many witnesses find that the log was rolled back: it does not continue what they cosigned.',
    type: 'gauge',
    read: ({ evidenceLog }) => [{ value: evidenceLog.rolledBack }],
  },
  {
    name: 'artseal_event_loop_delay_p99_seconds',
    help: 'How long the main thread kept others waiting, the 99th percentile since the last reading.',
    type: 'gauge',
    read: ({ process }) => one(process.eventLoopDelay.p99),
  },
  {
    name: 'artseal_event_loop_delay_max_seconds',
    help: 'The same, at the most.',
    type: 'gauge',
    read: ({ process }) => one(process.eventLoopDelay.max),
  },
  {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory.',
    type: 'gauge',
    read: ({ process }) => one(process.residentBytes),
  },
  {
    name: 'process_cpu_seconds_total',
    help: 'Processor time of all threads.',
    type: 'counter',
    read: ({ process }) => one(process.cpuSeconds),
  },
  {
    name: 'process_open_fds',
    help: 'Open files and sockets.',
    type: 'gauge',
    read: ({ process }) => one(process.openFiles),
  },
  {
    name: 'process_start_time_seconds',
    help: 'When the process started, in Unix seconds.',
    type: 'gauge',
    read: ({ process }) => one(process.startedAtS),
  },
];

/** How many values a distribution is of. */
export function countOf({ counts }: DistributionData): number {
  return sum(counts);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
