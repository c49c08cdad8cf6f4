import { asc, eq, type InferSelectModel } from 'drizzle-orm';
import { retentionYears } from '../../domain/filing.ts';
import { countedAheadS, type LeafSpan, type LogEventDetail, readLeafRanges } from '../../domain/leaf.ts';
import { logEvent } from './schema.ts';
import type { Database } from './statement.ts';

/** What the log says about a leaf whose record was erased. */
export interface Erasure {
  /** The number of the log event RECORDS_ERASED that lists the leaf. */
  readonly event: number;
  /** The time of that event, Unix seconds. */
  readonly timeS: number;
  /** The latest time of a leaf whose record it may erase, Unix seconds. */
  readonly latestS: number;
}

type ErasedSpan = LeafSpan & Erasure;
type LogEventRow = InferSelectModel<typeof logEvent>;

/** As `readErasures` makes it. */
export type Erasures = Awaited<ReturnType<typeof readErasures>>;

/** The erasures of the log with this name. */
export async function readErasures(database: Database, origin: string) {
  const faults: string[] = [];
  const spans: ErasedSpan[] = [];
  const isErasure = eq(logEvent.kind, 'RECORDS_ERASED');
  const events = await database
    .select()
    .from(logEvent)
    .where(isErasure)
    .orderBy(asc(logEvent.sequence))
    .all();
  for (const row of events) {
    const read = readErased(row, origin);
    if (read === undefined)
      faults.push(`log event ${row.sequence} does not say which leaves before it were erased`);
    for (const span of read ?? []) spans.push(span);
  }
  spans.sort((one, other) => one.first - other.first);
  for (const [place, { first, event }] of spans.entries()) {
    const before = spans[place - 1];
    if (before !== undefined && before.last >= first)
      faults.push(`the log events ${before.event} and ${event} both say that leaf ${first} was erased`);
  }
  let next = 0;
  return {
    /** The faults of the log events themselves, a line each. */
    faults,
    /** The erasure of a leaf; undefined if no log event lists it. Call it with the leaves in order. */
    of: (index: number): Erasure | undefined => {
      while ((spans[next]?.last ?? index) < index) next += 1;
      const span = spans[next];
      return span !== undefined && span.first <= index ? span : undefined;
    },
  };
}

/** The leaves that a log event lists; undefined if it lists none, another number than it says, or a later leaf. */
function readErased(
  { sequence, detail, timeS, leafIndex }: LogEventRow,
  origin: string,
): readonly ErasedSpan[] | undefined {
  const { records, leaves, before, ahead } = parsed(detail) as Partial<LogEventDetail>;
  const spans = typeof leaves === 'string' ? readLeafRanges(leaves) : undefined;
  const listed = spans?.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const isBefore = (spans?.at(-1)?.last ?? leafIndex) < leafIndex;
  if (spans === undefined || listed !== records || !isBefore || typeof before !== 'number') return undefined;
  const latestS = Math.min(before, endOfRetention(timeS + countedAheadS(ahead, origin)));
  const erasure = { event: sequence, timeS, latestS };
  return spans.map((span) => ({ ...span, ...erasure }));
}

/** Parses JSON; an empty object if it is none. */
export function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** The latest time whose retention has ended at another time, Unix seconds; NaN if there is no such date. */
function endOfRetention(timeS: number): number {
  const date = new Date(timeS * 1_000);
  return date.setUTCFullYear(date.getUTCFullYear() - retentionYears) / 1_000;
}
