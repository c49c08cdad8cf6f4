import { lt, sql } from 'drizzle-orm';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import type { Database } from './connection.ts';
import { numberSequence } from './schema.ts';
import { prepareRaw } from './statement.ts';

/**
 * Takes the next number of the orders of a year, from 1 to `escrowSequenceMax`, without gaps; one more, and nothing
 * changes, once all are taken. Runs inside the effect that uses it.
 */
export function createEscrowSequence(database: Database): (year: number) => number {
  const next = prepareRaw<{ last: number }>(
    database,
    database
      .insert(numberSequence)
      .values({ kind: 'ESCROW', year: sql.placeholder('year'), last: 1 })
      .onConflictDoUpdate({
        target: [numberSequence.kind, numberSequence.year],
        set: { last: sql`${numberSequence.last} + 1` },
        setWhere: lt(numberSequence.last, escrowSequenceMax),
      })
      .returning({ last: numberSequence.last }),
  );
  return (year) => next.get({ year })?.last ?? escrowSequenceMax + 1;
}
