import { countOf } from '../../lib/distribution.ts';
import { each, type MetricDefinition, one } from './definition.ts';
import { storeMetrics } from './store-metrics.ts';

/** All metrics, in the order in which they are written. */
export const metrics: readonly MetricDefinition[] = [
  {
    name: 'artseal_build_info',
    help: 'Version and commit of the running program; always 1.',
    type: 'gauge',
    labels: ['version', 'commit'],
    read: ({ build: { version, commit = 'unknown' } }) => [{ labels: { version, commit }, value: 1 }],
  },
  {
    name: 'artseal_ready',
    help: 'Whether the server is ready, as /readyz reports.',
    type: 'gauge',
    read: ({ readiness }) => one(Object.values(readiness).every(Boolean) ? 1 : 0),
  },
  {
    name: 'artseal_ready_part',
    help: 'Whether each part of readiness is ready.',
    type: 'gauge',
    labels: ['part'],
    read: ({ readiness }) =>
      Object.entries(readiness).map(([part, isReady]) => ({ labels: { part }, value: isReady ? 1 : 0 })),
  },
  {
    name: 'artseal_calls_total',
    help: 'Calls that ended, by listener, operation and reason; OK for success, CANCELLED if the client gave up.',
    type: 'counter',
    labels: ['listener', 'operation', 'reason'],
    read: ({ calls }) =>
      calls.map(({ listener, operation, end, seconds }) => ({
        labels: { listener, operation, reason: end },
        value: countOf(seconds),
      })),
  },
  {
    name: 'artseal_call_duration_seconds',
    help: 'Time from the head of a request to its response.',
    type: 'histogram',
    labels: ['listener', 'operation', 'reason'],
    read: ({ calls }) =>
      calls.map(({ listener, operation, end, seconds }) => ({
        labels: { listener, operation, reason: end },
        value: seconds,
      })),
  },
  {
    name: 'artseal_connections_cut_off_total',
    help: 'Connections that the server closed because the client read nothing (stalled), all calls held too much memory (memory), or the client sent too many requests ahead (requests).',
    type: 'counter',
    labels: ['reason'],
    read: ({ cutOffs }) => each('reason', cutOffs),
  },
  {
    name: 'artseal_filing_clock_wrong',
    help: 'Whether filings are rejected because the wall clock may be wrong.',
    type: 'gauge',
    read: ({ clockFault }) => [{ value: Number(clockFault !== undefined) }],
  },
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
  {
    name: 'artseal_payment_provider_reached',
    help: 'Whether the provider answered the last credential check, which runs every half minute.',
    type: 'gauge',
    read: ({ access: { isReached } }) => one(isReached === undefined ? undefined : Number(isReached)),
  },
  {
    name: 'artseal_payment_provider_credentials_rejected',
    help: 'Whether the provider rejected the credentials when it last answered.',
    type: 'gauge',
    read: ({ access: { credentials } }) =>
      one(credentials === undefined ? undefined : Number(credentials === 'REJECTED')),
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
    name: 'artseal_webhook_attempts_total',
    help: 'Delivery attempts that ended, by result.',
    type: 'counter',
    labels: ['outcome'],
    read: ({ sending: { delivered, failed } }) => each('outcome', { delivered, failed }),
  },
  {
    name: 'artseal_webhook_requests_in_flight',
    help: 'Delivery attempts in progress.',
    type: 'gauge',
    read: ({ sending }) => one(sending.requestsInFlight),
  },
  {
    name: 'artseal_webhook_disabled_total',
    help: 'Endpoints disabled because they failed for five days or responded 410.',
    type: 'counter',
    read: ({ sending }) => one(sending.disabled),
  },
  {
    name: 'artseal_certificate_end_seconds',
    help: 'Expiry of the TLS certificate of a listener, in Unix seconds.',
    type: 'gauge',
    labels: ['listener'],
    read: ({ certificateEnds }) =>
      Array.from(certificateEnds, ([listener, endMs]) => ({ labels: { listener }, value: endMs / 1_000 })),
  },
  {
    name: 'artseal_backup_taken_seconds',
    help: 'Time of the last verified backup, in Unix seconds; 0 if none is known.',
    type: 'gauge',
    read: ({ backups }) =>
      one(backups && (backups.last === undefined ? 0 : Date.parse(backups.last.takenAt) / 1_000)),
  },
  {
    name: 'artseal_backup_period_seconds',
    help: 'Backup period: ARTSEAL_BACKUP_EVERY.',
    type: 'gauge',
    read: ({ backups }) => one(backups && backups.everyMs / 1_000),
  },
  {
    name: 'artseal_backup_failing',
    help: 'Whether the last backup failed, the last verified one is missing, or the backup folder cannot be written.',
    type: 'gauge',
    read: ({ backups }) => one(backups && Number(backups.failure !== undefined)),
  },
  {
    name: 'artseal_evidence_log_leaves',
    help: 'Leaves of the evidence log.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.leaves),
  },
  {
    name: 'artseal_evidence_log_published_leaves',
    help: 'Leaves that the newest checkpoint covers; normally at most a second less than all.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.publishedLeaves),
  },
  {
    name: 'artseal_evidence_log_published_seconds',
    help: 'Time of the newest checkpoint, in Unix seconds; an idle log keeps an old one.',
    type: 'gauge',
    read: ({ evidenceLog }) => one(evidenceLog.publishedAtS),
  },
  {
    name: 'artseal_evidence_log_sign_failures_total',
    help: 'Failed attempts to sign a checkpoint; one a second while it lasts.',
    type: 'counter',
    read: ({ evidenceLog }) => one(evidenceLog.failures),
  },
  {
    name: 'artseal_evidence_log_rolled_back',
    help: 'Witnesses that report a rollback: the log does not extend what they cosigned.',
    type: 'gauge',
    read: ({ evidenceLog }) => [{ value: evidenceLog.rolledBack }],
  },
  {
    name: 'artseal_event_loop_delay_p99_seconds',
    help: 'Event loop delay of the main thread, 99th percentile since the last scrape.',
    type: 'gauge',
    read: ({ process }) => one(process.eventLoopDelay.p99),
  },
  {
    name: 'artseal_event_loop_delay_max_seconds',
    help: 'Event loop delay of the main thread, maximum since the last scrape.',
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
  ...storeMetrics,
];
