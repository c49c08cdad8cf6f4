import type { CallMetric, ListenerName } from '../../api/call-observer.ts';
import type { ClockFault } from '../../domain/filing-clock.ts';
import type { DistributionData } from '../../lib/distribution.ts';
import type { BuildInfo } from '../../packaging/build-info.ts';
import type { RegistryMetrics } from '../../store/metric-commands.ts';
import type { StoreMetrics } from '../../store/store.ts';
import type { ProcessMetrics } from './process-metrics.ts';
import type { ProviderMetric } from './provider-metrics.ts';

/** All metrics at one moment. */
export interface Snapshot {
  /** The time of the business clock, Unix milliseconds. */
  readonly nowMs: number;
  readonly build: BuildInfo;
  /** Whether each part of readiness works. */
  readonly readiness: Readonly<Record<string, boolean>>;
  /** When the certificates of the listeners with TLS expire, in Unix milliseconds. */
  readonly certificateEnds: ReadonlyMap<ListenerName, number>;
  /** The state of the credentials at the provider; members are undefined before the first check. */
  readonly access: {
    readonly credentials: 'ACCEPTED' | 'REJECTED' | undefined;
    readonly isReached: boolean | undefined;
  };
  /** The fault of the wall clock because of which filings are rejected; undefined if none. */
  readonly clockFault: ClockFault | undefined;
  /** The backups, also of commands; undefined if none is known and none is required. */
  readonly backups:
    | {
        readonly everyMs: number;
        /** The last verified backup; undefined until one is known. */
        readonly last: { readonly takenAt: string } | undefined;
        /** Why the last attempt failed, or the next one will; undefined if none. */
        readonly failure: string | undefined;
      }
    | undefined;
  readonly evidenceLog: {
    /** The number of leaves at the last check; undefined before the first. */
    readonly leaves: number | undefined;
    /** The leaves that the newest checkpoint covers; undefined if there is none. */
    readonly publishedLeaves: number | undefined;
    /** When it was published, Unix seconds; undefined if unknown. */
    readonly publishedAtS: number | undefined;
    /** Failed attempts to sign. */
    readonly failures: number;
    /** The number of witnesses that find the log rolled back. */
    readonly rolledBack: number;
  };
  /** Open event streams, and calls that wait for an event. */
  readonly feed: { readonly streams: number; readonly polls: number };
  /** Webhook sending since the process started. */
  readonly sending: {
    /** Attempts that succeeded, and that failed. */
    readonly delivered: number;
    readonly failed: number;
    /** Webhooks that were disabled because they failed. */
    readonly disabled: number;
    readonly requestsInFlight: number;
  };
  /** Connections that were cut off, by reason. */
  readonly cutOffs: Readonly<Record<string, number>>;
  readonly calls: readonly CallMetric[];
  readonly provider: readonly ProviderMetric[];
  /** Undefined if they were not read. */
  readonly process: ProcessMetrics | undefined;
  /** Undefined if the store did not respond. */
  readonly store: StoreMetrics | undefined;
  readonly registry: RegistryMetrics | undefined;
}

/** Labels of a sample. Each value is of a closed set: no caller chooses it. */
export type Labels = Readonly<Record<string, string>>;

/** One value of a counter or gauge, or one distribution of a histogram. */
export interface Sample<Value> {
  readonly labels?: Labels;
  readonly value: Value;
}

/** A metric, by its Prometheus name. */
export type MetricDefinition = {
  readonly name: string;
  readonly help: string;
  /** None if not given. */
  readonly labels?: readonly string[];
} & (
  | { readonly type: 'counter' | 'gauge'; read(snapshot: Snapshot): readonly Sample<number>[] }
  | { readonly type: 'histogram'; read(snapshot: Snapshot): readonly Sample<DistributionData>[] }
);

/** Returns one sample, or none if the value is not known. */
const one = <Value>(value: Value | undefined): Sample<Value>[] => (value === undefined ? [] : [{ value }]);

const single =
  (type: 'counter' | 'gauge') =>
  (name: string, help: string, read: (snapshot: Snapshot) => number | undefined): MetricDefinition => ({
    ...{ name, help, type },
    read: (snapshot) => one(read(snapshot)),
  });

/** A gauge with one value, which is left out while the value is undefined. */
export const gauge = single('gauge');
/** A counter with one value, which is left out while the value is undefined. */
export const counter = single('counter');
/** A histogram of one distribution, which is left out while it is undefined. */
export const histogram = (
  name: string,
  help: string,
  read: (snapshot: Snapshot) => DistributionData | undefined,
): MetricDefinition => ({
  ...{ name, help, type: 'histogram' },
  read: (snapshot) => one(read(snapshot)),
});

type Values = Readonly<Record<string, number | boolean | undefined>>;

const labelled =
  (type: 'counter' | 'gauge') =>
  (name: string, help: string, label: string, read: (snapshot: Snapshot) => Values): MetricDefinition => ({
    ...{ name, help, type, labels: [label] },
    read: (snapshot) =>
      Object.entries(read(snapshot)).flatMap(([member, value]) =>
        value === undefined ? [] : [{ labels: { [label]: member }, value: Number(value) }],
      ),
  });

/** A gauge with a value for each member of a record, by one label. Undefined members are left out. */
export const gaugeBy = labelled('gauge');
/** A counter with a value for each member of a record, by one label. Undefined members are left out. */
export const counterBy = labelled('counter');

/** Returns the seconds from `atMs` to `nowMs`, at least 0. */
export const secondsSince = (atMs: number, nowMs: number): number => Math.max(0, (nowMs - atMs) / 1_000);
