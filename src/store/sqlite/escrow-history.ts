import { asc, eq, sql } from 'drizzle-orm';
import type { AfterPayout, EscrowChange, EscrowState, PayoutStatus } from '../../domain/escrow.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { Database } from './connection.ts';
import { escrowChange } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** The histories of orders. */
export interface EscrowHistory {
  /** Appends a state or a provider status. `byOperator` marks a state that an operator confirmed. Runs inside an effect. */
  append(
    orderId: number,
    state: EscrowState,
    at: BusinessTime,
    more?: Partial<AfterPayout> & { readonly byOperator?: boolean },
  ): void;
  /** The changes of an order, oldest first. */
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
      payment: sql.placeholder('payment'),
      paymentAmount: sql.placeholder('paymentAmount'),
      byOperator: sql.placeholder('byOperator'),
    }),
  );
  const select = prepareRaw<ChangeRow>(
    database,
    database
      .select({
        state: escrowChange.state,
        at: escrowChange.at,
        payment: escrowChange.payment,
        paymentAmount: escrowChange.paymentAmount,
        byOperator: escrowChange.byOperator,
      })
      .from(escrowChange)
      .where(ofOrder)
      .orderBy(asc(escrowChange.position)),
  );
  return {
    append: (orderId, state, { atMs, timestamp: at }, more = {}) => {
      const changedAtS = Math.floor(atMs / 1000);
      const { payment = null, amount: paymentAmount = null, byOperator = false } = more;
      const values = { orderId, state, at, changedAtS, payment, paymentAmount };
      insertNext.run({ ...values, byOperator: Number(byOperator) });
    },
    of: (orderId) => select.all({ orderId }).map(changeOf),
  };
}

/** A row, with the column names of the database. */
interface ChangeRow {
  readonly state: EscrowState;
  readonly at: string;
  readonly payment: PayoutStatus | null;
  readonly payment_amount: number | null;
  readonly by_operator: number;
}

function changeOf({ state, at, payment, payment_amount: amount, by_operator }: ChangeRow): EscrowChange {
  if (payment === null) return { state, at, ...(by_operator === 1 && { byOperator: true }) };
  return { state, at, payment, ...(amount !== null && { amount: BigInt(amount) }) };
}
