import { sql } from 'drizzle-orm';
import type { Database } from './database.ts';
import { numberSequence } from './schema.ts';
import { prepareHot } from './statement.ts';

/** Takes the next number of a kind and year, from 1, without gaps. Runs inside the effect that uses it. */
export function createSequence(database: Database, kind: 'FILING' | 'ESCROW'): (year: number) => number {
  const next = prepareHot<{ last: number }>(
    database,
    database
      .insert(numberSequence)
      .values({ kind, year: sql.placeholder('year'), last: 1 })
      .onConflictDoUpdate({
        target: [numberSequence.kind, numberSequence.year],
        set: { last: sql`${numberSequence.last} + 1` },
      })
      .returning({ last: numberSequence.last }),
  );
  return (year) => {
    const row = next.get({ year });
    if (row === undefined) throw new Error(`No number was given for ${kind} ${year}.`);
    return row.last;
  };
}
