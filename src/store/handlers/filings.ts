import { and, desc, eq, gt, lt, sql } from 'drizzle-orm';
import type { Filing } from '../../domain/filing.ts';
import type { HotCommands } from '../engine/filings.ts';
import { type Handlers, reads } from '../engine/handlers.ts';
import { createRoom } from '../engine/paging.ts';
import type { ListedFiling } from '../engine/parts.ts';
import { caller, filing } from '../engine/schema.ts';
import { prepareMapped } from '../engine/statement.ts';
import { storedFilingColumns, toFiling } from '../engine/stored-filing.ts';
import type { FilingCommands } from '../filing-commands.ts';
import type { Page, PageQuery } from '../paging.ts';
import type { Parts } from './parts.ts';

/** The handler that lists filings. */
export function createListHandler({
  database,
  check,
  filings,
}: Parts): Handlers<Exclude<keyof FilingCommands, HotCommands>> {
  const selectById = prepareMapped(
    database
      .select(storedFilingColumns)
      .from(filing)
      .innerJoin(caller, eq(caller.id, filing.callerId))
      .where(eq(filing.id, sql.placeholder('id'))),
  );
  const ofAnybody = listOfAnybody(database, check);

  /** A page that leaves out a missing or changed filing would be wrong, too. */
  async function read(id: number): Promise<Filing> {
    const row = await selectById.get({ id });
    await check.listed(row);
    if (row === undefined) throw new Error(`Filing ${id} has no caller.`);
    await check.filing(row);
    return toFiling(row);
  }

  return {
    ListFilings: reads(({ filter: { owner, year }, page }) => {
      const listed =
        owner === undefined ? ofAnybody(year, page) : filings.newestFirst(owner, year, page.from);
      return keptOf(listed, page, check, read);
    }),
  };
}

/** Returns the function that lists the filings of all callers, newest number first. It throws RecordDamaged where one is missing. */
function listOfAnybody(database: Parts['database'], check: Parts['check']) {
  const { id, filingNo, leafIndex, erasedAtS } = filing;
  const numberOf = async (of: number) =>
    (await database.select({ filingNo }).from(filing).where(eq(id, of)).get())?.filingNo;
  const rowsBelow = (above: string, first: string, limit: number) =>
    database
      .select({ id, filingNo, leafIndex, erasedAtS })
      .from(filing)
      .where(and(lt(filingNo, above), gt(filingNo, first)))
      .orderBy(desc(filingNo))
      .limit(limit)
      .all();

  return async function* (
    year: number | undefined,
    { from, size }: PageQuery,
  ): AsyncGenerator<ListedFiling, void> {
    const { first, end } =
      year === undefined ? allNumbers : { first: beginningOf(year), end: beginningOf(year + 1) };
    const last = from === undefined ? end : await numberOf(from);
    // The last filing of the previous page is gone: only an empty list can be whole.
    if (last === undefined) return check.adjacency(first, end);
    let above = last < end ? last : end;
    // One more than the page, which shows whether another one follows.
    const limit = size + 1;
    for (let isLast = false; !isLast; ) {
      const rows = await rowsBelow(above, first, limit);
      for (const row of rows) {
        await check.adjacency(row.filingNo, above);
        yield row;
        above = row.filingNo;
      }
      isLast = rows.length < limit;
    }
    await check.adjacency(first, above);
  };
}

/** Filings that a page reads, including erased ones. The page may then be short without being the last. */
const listedMax = 1_000;

/** A page of filings that are not erased. */
async function keptOf(
  listed: AsyncIterable<ListedFiling>,
  { size }: PageQuery,
  check: Parts['check'],
  read: (id: number) => Promise<Filing>,
): Promise<Page<Filing>> {
  const items: Filing[] = [];
  const fits = createRoom();
  let last: number | undefined;
  let looked = 0;
  for await (const { id, filingNo, leafIndex, erasedAtS } of listed) {
    const isKept = erasedAtS === null;
    if (looked === listedMax || (isKept && items.length === size)) return { items, next: last };
    if (isKept) {
      const item = await read(id);
      if (!fits(item)) return { items, next: last };
      items.push(item);
    } else await check.erasure({ filingNo, leafIndex });
    last = id;
    looked += 1;
  }
  return { items, next: undefined };
}

/** Before and after all numbers. */
const allNumbers = { first: 'AS-0000-000000', end: 'AS-9999-999999' };

/** Sorts before all numbers of a year and after those of the previous one. The year may be 1. */
const beginningOf = (year: number) => `AS-${String(year).padStart(4, '0')}-000000`;
