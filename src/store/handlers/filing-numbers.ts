import { and, between, eq, max, sql } from 'drizzle-orm';
import { filingNumber, filingSequenceMax } from '../../domain/filing.ts';
import { filing, type NumberKind, numberGap } from '../engine/schema.ts';
import { type Database, named } from '../engine/statement.ts';

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

/** The last skipped number of a year; 0 if none was. Gaps are made only before a store is opened. */
export async function numberFloor(database: Database, kind: NumberKind, year: number): Promise<number> {
  const row = await database
    .select({ through: max(numberGap.through) })
    .from(numberGap)
    .where(and(eq(numberGap.kind, kind), eq(numberGap.year, year)))
    .get();
  return row?.through ?? 0;
}
