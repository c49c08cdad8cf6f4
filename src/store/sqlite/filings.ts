import { and, between, desc, eq, getTableColumns, type InferSelectModel, lt, sql } from 'drizzle-orm';
import { dateOf, yearOf } from '../../domain/calendar.ts';
import { evidenceHash, type Filing, filingNumber, filingSequenceMax } from '../../domain/filing.ts';
import type { FilingCommands } from '../filing-commands.ts';
import type { PageQuery } from '../paging.ts';
import type { Database } from './database.ts';
import { checksAndWrites, type Handlers, reads } from './handlers.ts';
import { pageOf, rowsFor } from './paging.ts';
import { createProvenanceRecords } from './provenance.ts';
import { caller, filing } from './schema.ts';
import { createSequence } from './sequence.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** The columns of a Filing with those of the store's own. */
const filingColumns = { ...getTableColumns(filing), caller: caller.name };

/** Handlers of filings and their provenance records. */
export function createFilingHandlers(database: Database): Handlers<keyof FilingCommands> {
  const nextNumber = createSequence(database, 'FILING', filingSequenceMax);
  const insertFiling = prepareRaw(database, database.insert(filing).values(placeholdersFor(filing, 'id')));
  const provenance = createProvenanceRecords(database);
  const selectSource = prepareRaw<{ author: string; timestamp: string }>(
    database,
    database
      .select({ author: filing.author, timestamp: filing.timestamp })
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  );
  const filings = () =>
    database.select(filingColumns).from(filing).innerJoin(caller, eq(caller.id, filing.callerId)).$dynamic();

  return {
    FileArtwork: checksAndWrites(({ artwork, at, by }) => {
      const { timestamp } = at;
      const year = yearOf(timestamp);
      const filingNo = filingNumber(year, nextNumber(year));
      const hash = evidenceHash({ ...artwork, filingNo, timestamp });
      const given = { filingNo, hash, timestamp };
      insertFiling.run({ ...artwork, ...given, callerId: by.callerId, filedAtS: Math.floor(at.atMs / 1000) });
      return given;
    }),
    GetFiling: reads(({ filingNo, owner }) => {
      const row = filings()
        .where(and(eq(filing.filingNo, filingNo), ownedBy(owner)))
        .get();
      return row === undefined ? undefined : toFiling(row);
    }),
    ListFilings: reads(({ filter: { owner, year }, page }) => {
      const rows = filings()
        .where(and(ownedBy(owner), numberedIn(year), before(page)))
        .orderBy(desc(filing.filingNo))
        .limit(rowsFor(page))
        .all();
      return pageOf(rows, page, toFiling);
    }),
    GetProvenance: reads(({ filingNo }) => {
      const source = selectSource.get({ filingNo });
      if (source === undefined) return undefined;
      const submitted = { event: 'SUBMITTED', at: dateOf(source.timestamp) } as const;
      return { filingNo, author: source.author, records: [submitted, ...provenance.of(filingNo)] };
    }),
  };
}

const ownedBy = (owner: number | undefined) => (owner === undefined ? undefined : eq(filing.callerId, owner));

const numberedIn = (year: number | undefined) =>
  year === undefined
    ? undefined
    : between(filing.filingNo, filingNumber(year, 1), filingNumber(year, filingSequenceMax));

/** Behind the row that the page before ended with: in order of the numbers, which the indexes are in. */
const before = ({ from }: PageQuery) =>
  from === undefined
    ? undefined
    : lt(filing.filingNo, sql`(SELECT filing_no FROM filing AS last WHERE last.id = ${from})`);

const toFiling = ({ id, callerId, filedAtS, ...row }: FilingRow): Filing => row;

type FilingRow = InferSelectModel<typeof filing> & { readonly caller: string };
