import { between, eq, max, sql } from 'drizzle-orm';
import type { FilingTables } from '../engine/filings.ts';
import { caller, filing, numberGap, provenanceRecord } from '../engine/schema.ts';
import { named, placeholdersFor } from '../engine/statement.ts';
import { storedFilingColumns } from '../engine/stored-filing.ts';
import { numbersOf } from '../handlers/filing-numbers.ts';
import { countFilings, latestOfYear } from './filing-chains.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The tables of filings in a database. */
export function createFilingTables(database: SqliteDatabase): FilingTables {
  const isThis = eq(filing.filingNo, sql.placeholder('filingNo'));
  const { filingNo: of, position: sequence, event, at, recordedAtS, salt, leafIndex } = provenanceRecord;
  const { insert, selectLast, selectFloors, selectFiling, selectTransfers } = prepare(database, {
    insert: database.insert(filing).values({
      ...placeholdersFor(filing, 'id', 'previousId', 'erasedAtS'),
      previousId: latestOfYear(sql.placeholder('callerId'), sql.placeholder('year')),
    }),
    selectLast: database
      .select(named({ last: max(filing.filingNo) }))
      .from(filing)
      .where(between(filing.filingNo, sql.placeholder('from'), sql.placeholder('to'))),
    selectFloors: database
      .select(named({ year: numberGap.year, through: max(numberGap.through) }))
      .from(numberGap)
      .where(eq(numberGap.kind, 'FILING'))
      .groupBy(numberGap.year),
    selectFiling: database
      .select(named(storedFilingColumns))
      .from(filing)
      .leftJoin(caller, eq(caller.id, filing.callerId))
      .where(isThis),
    selectTransfers: database
      .select(named({ filingNo: of, sequence, event, at, recordedAtS, salt, leafIndex }))
      .from(provenanceRecord)
      .where(eq(of, sql.placeholder('filingNo'))),
  });
  // Gaps are made only before a store is opened.
  const floors = new Map(selectFloors.all().map(({ year, through }) => [year, through ?? 0]));
  return {
    insert: (row) => void insert.run({ ...row }),
    lastOf: (year) => selectLast.get(numbersOf(year))?.last ?? undefined,
    floorOf: (year) => floors.get(year) ?? 0,
    countOf: countFilings(database),
    find: (filingNo) => {
      const row = selectFiling.get({ filingNo });
      return row && { ...row, price: BigInt(row.price) };
    },
    transfersOf: (filingNo) => selectTransfers.all({ filingNo }),
  };
}
