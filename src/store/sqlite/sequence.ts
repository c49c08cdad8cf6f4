import { lt, sql } from 'drizzle-orm';
import type { Database } from './database.ts';
import { numberSequence } from './schema.ts';
import { prepareRaw } from './statement.ts';

/**
 * Takes the next number of a kind and year, from 1 to `max`, without gaps; `max + 1`, and nothing changes, once all are
 * taken. Runs inside the effect that uses it.
 */
export function createSequence(database: Database, kind: 'ESCROW', max: number): (year: number) => number {
  const next = prepareRaw<{ last: number }>(
    database,
    database
      .insert(numberSequence)
      .values({ kind, year: sql.placeholder('year'), last: 1 })
      .onConflictDoUpdate({
        target: [numberSequence.kind, numberSequence.year],
        set: { last: sql`${numberSequence.last} + 1` },
        setWhere: lt(numberSequence.last, max),
      })
      .returning({ last: numberSequence.last }),
  );
  return (year) => next.get({ year })?.last ?? max + 1;
}
