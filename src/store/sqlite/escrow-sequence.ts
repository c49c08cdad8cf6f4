import { lt, sql } from 'drizzle-orm';
import { escrowSequenceMax } from '../../domain/escrow-id.ts';
import type { Database } from './connection.ts';
import { numberSequence } from './schema.ts';
import { prepareRaw } from './statement.ts';

/**
 * Prepares the next sequence of orders in a year, from 1 to `escrowSequenceMax` without gaps. Once all are used, it returns
 * `escrowSequenceMax` + 1 and changes nothing. Runs inside an effect.
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
