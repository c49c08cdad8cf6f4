import type { DistributionData } from '../../lib/distribution.ts';
import type { Snapshot } from './snapshot.ts';

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
export const one = <Value>(value: Value | undefined): Sample<Value>[] =>
  value === undefined ? [] : [{ value }];

/** Returns a sample for each member of a record. */
export const each = (label: string, values: Readonly<Record<string, number>>): Sample<number>[] =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

/** Returns the seconds from `atMs` to `nowMs`, at least 0. */
export const secondsSince = (atMs: number, nowMs: number): number => Math.max(0, (nowMs - atMs) / 1_000);
