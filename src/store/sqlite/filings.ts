import { and, between, desc, eq, getTableColumns, type InferSelectModel, lt, max, sql } from 'drizzle-orm';
import { dateOf, yearOf } from '../../domain/calendar.ts';
import {
  evidenceHash,
  type Filing,
  filingCapReached,
  filingErased,
  filingNumber,
  filingSequenceMax,
  nextFilingNumber,
  sequenceOfFiling,
  yearOfFiling,
} from '../../domain/filing.ts';
import { clockError, findClockFault } from '../../domain/filing-clock.ts';
import type { ApiError } from '../../domain/reason.ts';
import type { FilingCommands } from '../filing-commands.ts';
import type { Page, PageQuery } from '../paging.ts';
import { countFilings, createFilingChains, type ListedFiling, latestOfYear } from './filing-chains.ts';
import { type Handlers, reads, writesLast } from './handlers.ts';
import { createRoom } from './paging.ts';
import type { Parts } from './parts.ts';
import type { RecordCheck } from './record-check.ts';
import { numberFloors } from './restorations.ts';
import { caller, filing } from './schema.ts';
import { type Database, named, placeholdersFor, prepare, prepareMapped } from './statement.ts';

/** The columns of a Filing with those of the store's own. */
const filingColumns = { ...getTableColumns(filing), caller: caller.name };

/** Handlers of filings and their provenance records. */
export const createFilingHandlers = (parts: Parts): Handlers<keyof FilingCommands> => ({
  FileArtwork: createFiling(parts),
  ...createFindHandlers(parts),
  ListFilings: createList(parts),
});

/** The handler that files an artwork. */
function createFiling(parts: Parts): Handlers['FileArtwork'] {
  const { database, log, outbox, clock, incidents } = parts;
  const { insertFiling } = prepare(database, {
    insertFiling: database.insert(filing).values({
      ...placeholdersFor(filing, 'id', 'previousId', 'erasedAtS'),
      previousId: latestOfYear(sql.placeholder('callerId'), sql.placeholder('year')),
    }),
  });
  const filingsOf = countFilings(database);
  const nextNumber = createNumbers(parts);

  function rejectWrongClock(nowS: number, setByS: number): void {
    const fault = findClockFault({ nowS, newestS: log.newestS(), datedS: clock.about(nowS), setByS });
    if (fault === undefined) return;
    incidents.count('clockRejections');
    throw clockError(fault);
  }

  return writesLast(({ artwork, at, by, clockSetByS = 0, cap }) => {
    const { timestamp } = at;
    const filedAtS = Math.floor(at.atMs / 1000);
    rejectWrongClock(filedAtS, clockSetByS);
    const year = yearOf(timestamp);
    const { callerId } = by;
    if (cap !== undefined && filingsOf({ callerId, year }) >= cap.filings)
      throw filingCapReached(cap.filings, year, cap.endsInS);
    const filingNo = nextNumber(year);
    const hash = evidenceHash({ ...artwork, filingNo, timestamp });
    const given = { filingNo, hash, timestamp };
    const leaf = {
      kind: 'FILING',
      number: filingNo,
      sequence: 1,
      atS: filedAtS,
      evidenceHash: hash,
    } as const;
    const logged = log.appendRecord(leaf);
    outbox.add({ type: 'filing.created', callerId, atMs: at.atMs, filingNo });
    insertFiling.run({ ...artwork, ...given, ...logged, callerId, filedAtS, year });
    return given;
  });
}

/** Returns the function that gives the next number of a year. */
function createNumbers({ database, log, check }: Parts): (year: number) => string {
  // A filing can be deleted when it is five years old: the year of its number is over, and no more are given out in it.
  const { selectLast } = prepare(database, { selectLast: lastNumber(database) });
  const floors = numberFloors(database, 'FILING');

  /** The last number of a year that was issued. */
  function lastOf(year: number): string | undefined {
    const newest = log.newestFiling();
    if (newest !== undefined && yearOfFiling(newest) === year) return newest;
    // The index has what is written.
    log.write();
    const last = selectLast.get(numbersOf(year))?.last ?? undefined;
    check.lastFiling(year, last === undefined ? 0 : sequenceOfFiling(last));
    return last;
  }

  /** The last number of a year that was skipped, according to the log or to a restoration that is not in the log yet. */
  const floorOf = (year: number) => Math.max(floors.get(year) ?? 0, log.index.skippedThrough(year));

  return (year) => nextFilingNumber(year, lastOf(year), floorOf(year));
}

/** Joined with their callers. */
const selectFilings = (database: Database) =>
  database.select(filingColumns).from(filing).innerJoin(caller, eq(caller.id, filing.callerId)).$dynamic();

/** Handlers that find one filing. */
function createFindHandlers({ database, check, provenance }: Parts): Handlers<'GetFiling' | 'GetProvenance'> {
  const { selectSource } = prepare(database, {
    selectSource: database
      .select(named(getTableColumns(filing)))
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  });

  /** The result for a filing that is marked as erased. */
  function erased(row: Pick<FilingRow, 'filingNo' | 'leafIndex'>): ApiError {
    check.erasure(row);
    return filingErased();
  }

  /** The result for a number that is not stored. */
  function absent(filingNo: string): undefined {
    check.absence(filingNo);
  }

  return {
    GetFiling: reads(({ filingNo, owner }) => {
      const row = selectFilings(database).where(eq(filing.filingNo, filingNo)).get();
      if (row === undefined) return absent(filingNo);
      if (owner !== undefined && row.callerId !== owner) return undefined;
      if (row.erasedAtS !== null) throw erased(row);
      return toFiling(check.filing(row));
    }),
    GetProvenance: reads(({ filingNo }) => {
      const source = selectSource.get({ filingNo });
      if (source === undefined) return absent(filingNo);
      if (source.erasedAtS !== null) throw erased(source);
      const { author, timestamp } = check.filing({ ...source, price: BigInt(source.price) });
      const submitted = { event: 'SUBMITTED', at: dateOf(timestamp) } as const;
      const later = check.transfers(filingNo, provenance.of(filingNo));
      return { filingNo, author, records: [submitted, ...later.map(({ event, at }) => ({ event, at }))] };
    }),
  };
}

/** The handler that lists filings. */
function createList({ database, incidents, check }: Parts): Handlers['ListFilings'] {
  const newestFirst = createFilingChains(database, incidents);
  const selectById = prepareMapped(selectFilings(database).where(eq(filing.id, sql.placeholder('id'))));
  const numberOf = (id: number) =>
    database.select({ filingNo: filing.filingNo }).from(filing).where(eq(filing.id, id)).get()?.filingNo;

  /** The filings of all callers, newest number first. Throws RecordDamaged where one is missing. */
  function* ofAnybody(year: number | undefined, page: PageQuery): Generator<ListedFiling> {
    const { id, filingNo, leafIndex, erasedAtS } = filing;
    const { rows } = prepare(database, {
      rows: database
        .select(named({ id, filingNo, leafIndex, erasedAtS }))
        .from(filing)
        .where(and(numberedIn(year), before(page)))
        .orderBy(desc(filingNo)),
    });
    const { first, end } =
      year === undefined ? allNumbers : { first: beginningOf(year), end: beginningOf(year + 1) };
    let above = (page.from === undefined ? undefined : numberOf(page.from)) ?? end;
    for (const row of rows.iterate()) {
      check.adjacency(row.filingNo, above);
      yield row;
      above = row.filingNo;
    }
    check.adjacency(first, above);
  }

  return reads(({ filter: { owner, year }, page }) => {
    const listed = owner === undefined ? ofAnybody(year, page) : newestFirst(owner, year, page.from);
    // A page that leaves out a missing or changed filing would be wrong, too.
    const read = (id: number) => toFiling(check.filing(check.listed(selectById.get({ id }))));
    return keptOf(listed, page, check, read);
  });
}

/** Filings that a page reads, including erased ones. The page may then be short without being the last. */
const listedMax = 1_000;

/** A page of filings that are not erased. */
function keptOf(
  listed: Iterable<ListedFiling>,
  { size }: PageQuery,
  check: Pick<RecordCheck, 'erasure'>,
  read: (id: number) => Filing,
): Page<Filing> {
  const items: Filing[] = [];
  const fits = createRoom();
  let last: number | undefined;
  let looked = 0;
  for (const { id, filingNo, leafIndex, erasedAtS } of listed) {
    const isKept = erasedAtS === null;
    if (looked === listedMax || (isKept && items.length === size)) return { items, next: last };
    if (isKept) {
      const item = read(id);
      if (!fits(item)) return { items, next: last };
      items.push(item);
    } else check.erasure({ filingNo, leafIndex });
    last = id;
    looked += 1;
  }
  return { items, next: undefined };
}

/** Before and after all numbers. */
const allNumbers = { first: 'AS-0000-000000', end: 'AS-9999-999999' };

/** Sorts before all numbers of a year and after those of the previous one. The year may be 1. */
const beginningOf = (year: number) => `AS-${String(year).padStart(4, '0')}-000000`;

/** The last number that was issued between two numbers. */
export const lastNumber = (database: Database) =>
  database
    .select(named({ last: max(filing.filingNo) }))
    .from(filing)
    .where(between(filing.filingNo, sql.placeholder('from'), sql.placeholder('to')));

/** The first and the last number that a year can have. */
export const numbersOf = (year: number) => ({
  from: filingNumber(year, 1),
  to: filingNumber(year, filingSequenceMax),
});

function numberedIn(year: number | undefined) {
  if (year === undefined) return undefined;
  const { from, to } = numbersOf(year);
  return between(filing.filingNo, from, to);
}

/** The rows after the last one of the previous page, in the order of the index: by number. */
const before = ({ from }: PageQuery) =>
  from === undefined
    ? undefined
    : lt(filing.filingNo, sql`(SELECT filing_no FROM filing AS last WHERE last.id = ${from})`);

/** The filing of a row with the name of its caller. */
export const toFiling = ({
  id,
  callerId,
  filedAtS,
  previousId,
  salt,
  leafIndex,
  erasedAtS,
  ...row
}: FilingRow): Filing => row;

type FilingRow = InferSelectModel<typeof filing> & { readonly caller: string };
