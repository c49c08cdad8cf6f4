import type Sqlite from 'better-sqlite3';
import { retentionYears } from '../../domain/filing.ts';
import { type LeafSpan, type LogEventDetail, readLeafRanges } from '../../domain/leaf.ts';

/** What the log says of a leaf whose record was erased. */
export interface Erasure {
  /** The RECORDS_ERASED that lists the leaf, by its place among the acts. */
  readonly act: number;
  /** When that was, Unix seconds. */
  readonly timeS: number;
  /** The latest time that a leaf can have whose record it erases, Unix seconds. */
  readonly latestS: number;
}

/** The erasures that a log tells of. */
export interface Erasures {
  /** What is wrong with the acts themselves, a line each. */
  readonly faults: readonly string[];
  /** The erasure of a leaf; undefined if no act lists it. Leaves are to be asked for in their order. */
  of(index: number): Erasure | undefined;
}

interface ErasedRow {
  readonly sequence: number;
  readonly detail: string;
  readonly timeS: number;
  readonly leafIndex: number;
}

type ErasedSpan = LeafSpan & Erasure;

/** Reads what the acts RECORDS_ERASED of a database say. */
export function readErasures(client: Sqlite.Database): Erasures {
  const faults: string[] = [];
  const spans: ErasedSpan[] = [];
  for (const row of client.prepare<[], ErasedRow>(selectErased).iterate()) {
    const read = readErased(row);
    if (read === undefined)
      faults.push(`act ${row.sequence} does not say which leaves before it were erased`);
    for (const span of read ?? []) spans.push(span);
  }
  spans.sort((one, other) => one.first - other.first);
  for (const [place, { first, act }] of spans.entries()) {
    const before = spans[place - 1];
    if (before !== undefined && before.last >= first)
      faults.push(`the acts ${before.act} and ${act} both say that leaf ${first} was erased`);
  }
  let next = 0;
  return {
    faults,
    of: (index) => {
      while ((spans[next]?.last ?? index) < index) next += 1;
      const span = spans[next];
      return span !== undefined && span.first <= index ? span : undefined;
    },
  };
}

/** The leaves that an act lists; undefined if it lists none, another number than it says, or some behind itself. */
function readErased({ sequence, detail, timeS, leafIndex }: ErasedRow): readonly ErasedSpan[] | undefined {
  const { records, leaves, before } = (JSON.parse(detail) ?? {}) as LogEventDetail;
  const spans = typeof leaves === 'string' ? readLeafRanges(leaves) : undefined;
  const listed = spans?.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const isBefore = (spans?.at(-1)?.last ?? leafIndex) < leafIndex;
  if (spans === undefined || listed !== records || !isBefore || typeof before !== 'number') return undefined;
  const erasure = { act: sequence, timeS, latestS: Math.min(before, endOfRetention(timeS)) };
  return spans.map((span) => ({ ...span, ...erasure }));
}

/** The latest time of which the retention is over at another one, Unix seconds; NaN where that is no date. */
function endOfRetention(timeS: number): number {
  const date = new Date(timeS * 1_000);
  return date.setUTCFullYear(date.getUTCFullYear() - retentionYears) / 1_000;
}

const selectErased = `SELECT sequence, detail, time_s AS timeS, leaf_index AS leafIndex FROM log_event
  WHERE kind = 'RECORDS_ERASED' AND json_valid(detail) ORDER BY sequence`;
