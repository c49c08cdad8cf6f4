import { and, between, eq, max, sql } from 'drizzle-orm';
import { filingNumber, filingSequenceMax, sequenceOfFiling } from '../../domain/filing.ts';
import { filing, numberGap, numberSequence } from '../engine/schema.ts';
import { type Database, named, prepare } from '../engine/statement.ts';

/** The first and the last number that a year can have. */
export const numbersOf = (year: number) => ({
  from: filingNumber(year, 1),
  to: filingNumber(year, filingSequenceMax),
});

/** Returns the function that reads the last filing number of a year, issued or skipped, and its last escrow number; 0 for none. */
export function createUsedNumbers(database: Database) {
  const { lastFiling, lastEscrow } = prepare(database, {
    lastFiling: database
      .select(named({ last: max(filing.filingNo) }))
      .from(filing)
      .where(between(filing.filingNo, sql.placeholder('from'), sql.placeholder('to'))),
    lastEscrow: database
      .select({ last: numberSequence.last })
      .from(numberSequence)
      .where(and(eq(numberSequence.kind, 'ESCROW'), eq(numberSequence.year, sql.placeholder('year')))),
  });
  return async (year: number) => {
    const last = (await lastFiling.get(numbersOf(year)))?.last ?? null;
    const floor = await numberFloor(database, year);
    return {
      filingNumbers: Math.max(last === null ? 0 : sequenceOfFiling(last), floor),
      escrowNumbers: (await lastEscrow.get({ year }))?.last ?? 0,
    };
  };
}

/** The last skipped filing number of a year; 0 if none was. Gaps are made only before a store is opened. */
async function numberFloor(database: Database, year: number): Promise<number> {
  const row = await database
    .select({ through: max(numberGap.through) })
    .from(numberGap)
    .where(and(eq(numberGap.kind, 'FILING'), eq(numberGap.year, year)))
    .get();
  return row?.through ?? 0;
}
