import { asc, eq, sql } from 'drizzle-orm';
import type { EscrowChange, EscrowState } from '../../domain/escrow.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { Database } from './database.ts';
import { escrowChange } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** The states that orders have been in. */
export interface EscrowHistory {
  /** Appends a state. Runs inside the effect that it belongs to. */
  append(orderId: number, state: EscrowState, at: BusinessTime): void;
  /** The states of an order, in order of happening. */
  of(orderId: number): EscrowChange[];
}

/** The history of the orders in a database. */
export function createEscrowHistory(database: Database): EscrowHistory {
  const ofOrder = eq(escrowChange.orderId, sql.placeholder('orderId'));
  const insertNext = prepareRaw(
    database,
    database.insert(escrowChange).values({
      orderId: sql.placeholder('orderId'),
      position: sql`(SELECT count(*) + 1 FROM ${escrowChange} WHERE ${ofOrder})`,
      state: sql.placeholder('state'),
      at: sql.placeholder('at'),
      changedAtS: sql.placeholder('changedAtS'),
    }),
  );
  const select = prepareRaw<EscrowChange>(
    database,
    database
      .select({ state: escrowChange.state, at: escrowChange.at })
      .from(escrowChange)
      .where(ofOrder)
      .orderBy(asc(escrowChange.position)),
  );
  return {
    append: (orderId, state, { atMs, timestamp }) => {
      insertNext.run({ orderId, state, at: timestamp, changedAtS: Math.floor(atMs / 1000) });
    },
    of: (orderId) => select.all({ orderId }),
  };
}
