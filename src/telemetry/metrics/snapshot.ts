import type { CallMetric, ListenerName } from '../../api/call-metrics.ts';
import type { ClockFault } from '../../domain/filing-clock.ts';
import type { BuildInfo } from '../../packaging/build-info.ts';
import type { RegistryMetrics } from '../../store/metric-commands.ts';
import type { StoreMetrics } from '../../store/store.ts';
import type { ProcessMetrics } from './process-metrics.ts';
import type { ProviderMetric } from './provider-metrics.ts';

/** Of the backups that are taken regularly. */
export interface RegularBackupMetrics {
  readonly everyMs: number;
  /** The last verified one; undefined until one is known. */
  readonly last: { readonly takenAt: string } | undefined;
  /** Why the last try failed, or the next one will; undefined if all is well. */
  readonly failure: string | undefined;
}

/** Of the evidence log and what is published of it. */
export interface EvidenceLogMetrics {
  /** Leaves as of the last look; undefined before the first. */
  readonly leaves: number | undefined;
  /** Those that the newest checkpoint covers; undefined if there is none. */
  readonly publishedLeaves: number | undefined;
  /** When it was published, Unix seconds; undefined where that is not known. */
  readonly publishedAtS: number | undefined;
  /** Tries to sign that failed. */
  readonly failures: number;
  /** How many witnesses find the log rolled back. */
  readonly rolledBack: number;
}

/** Of those who wait for events. */
export interface FeedMetrics {
  /** Streams of events that are open. */
  readonly streams: number;
  /** Calls that wait for an event. */
  readonly polls: number;
}

/** Of what is sent to webhooks, since the process started. */
export interface SendingMetrics {
  /** Attempts after which the event had arrived, and after which it had not. */
  readonly delivered: number;
  readonly failed: number;
  /** Webhooks that were disabled since they failed. */
  readonly disabled: number;
  readonly requestsInFlight: number;
}

/** All metrics at one moment. */
export interface Snapshot {
  /** Unix milliseconds. */
  readonly nowMs: number;
  readonly build: BuildInfo;
  /** Whether each part of readiness is as it should be. */
  readonly readiness: Readonly<Record<string, boolean>>;
  /** When the certificates of the listeners with TLS expire, in Unix milliseconds. */
  readonly certificateEnds: ReadonlyMap<ListenerName, number>;
  /** What the provider says of the credentials; undefined members until it was asked. */
  readonly access: {
    readonly credentials: 'ACCEPTED' | 'REJECTED' | undefined;
    readonly isReached: boolean | undefined;
  };
  /** Why filings are refused because of the wall clock; undefined if they are not. */
  readonly clockFault: ClockFault | undefined;
  /** How the backups stand, those that commands take as well; undefined if none is known and none is required. */
  readonly backups: RegularBackupMetrics | undefined;
  readonly evidenceLog: EvidenceLogMetrics;
  readonly feed: FeedMetrics;
  readonly sending: SendingMetrics;
  /** Connections that were closed for what their clients did, by the reason. */
  readonly cutOffs: Readonly<Record<string, number>>;
  readonly calls: readonly CallMetric[];
  readonly provider: readonly ProviderMetric[];
  readonly process: ProcessMetrics;
  /** Undefined if the store did not respond. */
  readonly store: StoreMetrics | undefined;
  readonly registry: RegistryMetrics | undefined;
}
