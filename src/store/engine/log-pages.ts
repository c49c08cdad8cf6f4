import { and, asc, eq, gt, gte, inArray } from 'drizzle-orm';
import type { RecordLeaf } from '../../domain/leaf.ts';
import { parsed } from './erasure-check.ts';
import { type IndexedLeaf, type LeafRow, leavesIn } from './leaves.ts';
import { caller, filing, logEvent, logLeaf, provenanceRecord } from './schema.ts';
import type { Database } from './statement.ts';
import { storedFilingColumns } from './stored-filing.ts';

/** Rows of leaves that are read at once, and leaves whose records are. */
export const pageSize = 100;

/** The content of a leaf. */
export type LeafContent = Omit<RecordLeaf, 'kind'>;

/** Reads the data of a leaf; undefined if they are not JSON with these members. */
export function contentOf(data: string): LeafContent | undefined {
  const { number, sequence, time, commitment = '' } = parsed(data);
  const isRead = typeof number === 'string' && isNumber(sequence) && isNumber(time);
  // PostgreSQL takes no text with a null character.
  return isRead && !number.includes('\0')
    ? { number, sequence, timeS: time, commitment: String(commitment) }
    : undefined;
}

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value);

/** The rows of leaves in their order, a page at a time. */
export async function* pagesOf(database: Database): AsyncGenerator<readonly LeafRow[]> {
  let last = -1;
  for (;;) {
    const rows = await database
      .select()
      .from(logLeaf)
      .where(gt(logLeaf.id, last))
      .orderBy(asc(logLeaf.id))
      .limit(pageSize)
      .all();
    const { id } = rows.at(-1) ?? {};
    if (id === undefined) return;
    yield rows;
    last = id;
  }
}

/** The data of a leaf; empty if it is not there. */
export async function readLeaf(database: Database, index: number): Promise<string> {
  const row = await database
    .select()
    .from(logLeaf)
    .where(gte(logLeaf.id, index))
    .orderBy(asc(logLeaf.id))
    .limit(1)
    .get();
  return (row && leavesIn(row))?.find((leaf) => leaf.index === index)?.data ?? '';
}

/** The records and log events of some leaves. */
export type Records = Awaited<ReturnType<typeof readRecords>>;

/** Reads the records and log events that leaves name: filings by number, transfers by number and sequence. */
export async function readRecords(database: Database, leaves: readonly IndexedLeaf[]) {
  const contents = leaves.flatMap(({ data }) => contentOf(data) ?? []);
  const of = (isOf: (content: LeafContent) => boolean) => contents.filter(isOf);
  const ofFilings = of(({ number, sequence }) => number !== 'LOG' && sequence === 1);
  const ofTransfers = of(({ number, sequence }) => number !== 'LOG' && sequence !== 1);
  const ofEvents = of(({ number }) => number === 'LOG');
  const { filingNo, position: sequence, event, at, salt, leafIndex, recordedAtS: timeS } = provenanceRecord;
  const { erasedAtS } = filing;
  const filings = await readFor(ofFilings, (some) =>
    database
      .select(storedFilingColumns)
      .from(filing)
      .leftJoin(caller, eq(caller.id, filing.callerId))
      .where(inArray(filing.filingNo, numbersOf(some)))
      .all(),
  );
  const transfers = await readFor(ofTransfers, (some) =>
    database
      .select({ filingNo, sequence, event, at, salt, leafIndex, timeS, erasedAtS })
      .from(provenanceRecord)
      .leftJoin(filing, eq(filing.filingNo, filingNo))
      .where(and(inArray(filingNo, numbersOf(some)), inArray(sequence, sequencesOf(some))))
      .all(),
  );
  const events = await readFor(ofEvents, (some) =>
    database
      .select()
      .from(logEvent)
      .where(inArray(logEvent.sequence, sequencesOf(some)))
      .all(),
  );
  return {
    filings: new Map(filings.map((row) => [row.filingNo, { ...row, timeS: row.filedAtS }])),
    transfers: new Map(transfers.map((row) => [`${row.filingNo} ${row.sequence}`, row])),
    events: new Map(events.map((row) => [row.sequence, row])),
  };
}

const numbersOf = (contents: readonly LeafContent[]) => contents.map(({ number }) => number);
const sequencesOf = (contents: readonly LeafContent[]) => contents.map(({ sequence }) => sequence);

/** Reads what a page of contents names, and nothing for none. Always a full page, so that a query has one text. */
async function readFor<Row>(
  contents: readonly LeafContent[],
  read: (some: readonly LeafContent[]) => Promise<Row[]>,
): Promise<Row[]> {
  const [first] = contents;
  if (first === undefined) return [];
  return read([...contents, ...Array<LeafContent>(pageSize - contents.length).fill(first)]);
}
