import { countOf } from '../../lib/distribution.ts';
import { counter, counterBy, gauge, gaugeBy, type MetricDefinition, type Snapshot } from './definition.ts';
import { storeMetrics } from './store-metrics.ts';

const callLabels = ['listener', 'operation', 'reason'];
const labelsOf = ({ listener, operation, end }: Snapshot['calls'][number]) => ({
  ...{ listener, operation, reason: end },
});

/** All metrics, in the order in which they are written. */
export const metrics: readonly MetricDefinition[] = [
  {
    name: 'artseal_build_info',
    help: 'Version and commit; always 1.',
    type: 'gauge',
    labels: ['version', 'commit'],
    read: ({ build: { version, commit = 'unknown' } }) => [{ labels: { version, commit }, value: 1 }],
  },
  gauge('artseal_ready', 'Whether the server is ready.', ({ readiness }) =>
    Object.values(readiness).every(Boolean) ? 1 : 0,
  ),
  gaugeBy('artseal_ready_part', 'Whether each part is ready.', 'part', ({ readiness }) => readiness),
  {
    name: 'artseal_calls_total',
    help: 'Calls that ended; OK for success, CANCELLED if the client gave up.',
    type: 'counter',
    labels: callLabels,
    read: ({ calls }) => calls.map((call) => ({ labels: labelsOf(call), value: countOf(call.seconds) })),
  },
  {
    name: 'artseal_call_duration_seconds',
    help: 'Time from the head of a request to its response.',
    type: 'histogram',
    labels: callLabels,
    read: ({ calls }) => calls.map((call) => ({ labels: labelsOf(call), value: call.seconds })),
  },
  counterBy(
    'artseal_connections_cut_off_total',
    'Connections closed because the client read nothing (stalled) or sent too many requests ahead (requests), or all calls held too much memory (memory).',
    'reason',
    ({ cutOffs }) => cutOffs,
  ),
  gauge(
    'artseal_filing_clock_wrong',
    'Whether filings are rejected because the wall clock may be wrong.',
    ({ clockFault }) => Number(clockFault !== undefined),
  ),
  {
    name: 'artseal_payment_provider_request_duration_seconds',
    help: 'Requests that the provider answered.',
    type: 'histogram',
    labels: ['request'],
    read: ({ provider }) => provider.map(({ request, seconds }) => ({ labels: { request }, value: seconds })),
  },
  {
    name: 'artseal_payment_provider_failures_total',
    help: 'Requests that the provider did not answer, by reason.',
    type: 'counter',
    labels: ['request', 'kind'],
    read: ({ provider }) =>
      provider.flatMap(({ request, failures }) =>
        Object.entries(failures).map(([kind, value]) => ({ labels: { request, kind }, value })),
      ),
  },
  gauge(
    'artseal_payment_provider_reached',
    'Whether the provider answered the last credential check.',
    ({ access: { isReached } }) => (isReached === undefined ? undefined : Number(isReached)),
  ),
  gauge(
    'artseal_payment_provider_credentials_rejected',
    'Whether the provider rejected the credentials when it last answered.',
    ({ access: { credentials } }) =>
      credentials === undefined ? undefined : Number(credentials === 'REJECTED'),
  ),
  gauge('artseal_event_polls_waiting', 'Calls that wait for an event.', ({ feed }) => feed.polls),
  gauge('artseal_event_streams', 'Open streams of WatchEvents.', ({ feed }) => feed.streams),
  counterBy(
    'artseal_webhook_attempts_total',
    'Delivery attempts that ended, by result.',
    'outcome',
    ({ sending: { delivered, failed } }) => ({ delivered, failed }),
  ),
  gauge(
    'artseal_webhook_requests_in_flight',
    'Delivery attempts in progress.',
    ({ sending }) => sending.requestsInFlight,
  ),
  counter(
    'artseal_webhook_disabled_total',
    'Endpoints disabled because they failed for five days or responded 410.',
    ({ sending }) => sending.disabled,
  ),
  gaugeBy(
    'artseal_certificate_end_seconds',
    'Expiry of the TLS certificate of a listener, in Unix seconds.',
    'listener',
    ({ certificateEnds }) =>
      Object.fromEntries(Array.from(certificateEnds, ([listener, endMs]) => [listener, endMs / 1_000])),
  ),
  gauge(
    'artseal_backup_taken_seconds',
    'Time of the last verified backup, in Unix seconds; 0 if none is known.',
    ({ backups }) => backups && (backups.last === undefined ? 0 : Date.parse(backups.last.takenAt) / 1_000),
  ),
  gauge(
    'artseal_backup_period_seconds',
    'Backup period: ARTSEAL_BACKUP_EVERY.',
    ({ backups }) => backups && backups.everyMs / 1_000,
  ),
  gauge(
    'artseal_backup_failing',
    'Whether the last backup failed, the last verified one is missing, or the backup folder cannot be written.',
    ({ backups }) => backups && Number(backups.failure !== undefined),
  ),
  gauge(
    'artseal_evidence_log_leaves',
    'Leaves of the evidence log.',
    ({ evidenceLog }) => evidenceLog.leaves,
  ),
  gauge(
    'artseal_evidence_log_published_leaves',
    'Leaves that the newest checkpoint covers; normally at most a second less than all.',
    ({ evidenceLog }) => evidenceLog.publishedLeaves,
  ),
  gauge(
    'artseal_evidence_log_published_seconds',
    'Time of the newest checkpoint, in Unix seconds; an idle log keeps an old one.',
    ({ evidenceLog }) => evidenceLog.publishedAtS,
  ),
  counter(
    'artseal_evidence_log_sign_failures_total',
    'Failed attempts to sign a checkpoint; one a second while it lasts.',
    ({ evidenceLog }) => evidenceLog.failures,
  ),
  gauge(
    'artseal_evidence_log_rolled_back',
    'Witnesses that report a rollback.',
    ({ evidenceLog }) => evidenceLog.rolledBack,
  ),
  gauge(
    'artseal_event_loop_delay_p99_seconds',
    'Event loop delay of the main thread, 99th percentile since the last scrape.',
    ({ process }) => process?.eventLoopDelay.p99,
  ),
  gauge(
    'artseal_event_loop_delay_max_seconds',
    'Event loop delay of the main thread, maximum since the last scrape.',
    ({ process }) => process?.eventLoopDelay.max,
  ),
  gauge('process_resident_memory_bytes', 'Resident memory.', ({ process }) => process?.residentBytes),
  counter(
    'process_cpu_seconds_total',
    'Processor time of all threads.',
    ({ process }) => process?.cpuSeconds,
  ),
  gauge('process_open_fds', 'Open files and sockets.', ({ process }) => process?.openFiles),
  gauge(
    'process_start_time_seconds',
    'When the process started, in Unix seconds.',
    ({ process }) => process?.startedAtS,
  ),
  ...storeMetrics,
];
