import { and, desc, eq, lt, sql } from 'drizzle-orm';
import { yearOf } from '../../domain/calendar.ts';
import { type Escrow, escrowId, escrowMoves } from '../../domain/escrow.ts';
import { Refusal } from '../../domain/reason.ts';
import type { EscrowStore, PageQuery } from '../store.ts';
import type { Database } from './database.ts';
import type { GroupCommit } from './group-commit.ts';
import { pageOf, rowsFor } from './paging.ts';
import { createProvenanceRecords } from './provenance.ts';
import { caller, deployment, escrow, filing } from './schema.ts';
import { createSequence } from './sequence.ts';

const escrowColumns = {
  id: escrow.id,
  escrowId: escrow.escrowId,
  filingNo: escrow.filingNo,
  type: escrow.type,
  amount: escrow.amount,
  buyerId: escrow.buyerId,
  sellerId: escrow.sellerId,
  state: escrow.state,
  timestamp: escrow.timestamp,
  caller: caller.name,
};

/** Escrow orders. */
export function createEscrowStore(database: Database, { read, write }: GroupCommit): EscrowStore {
  const idKey = database.select().from(deployment).all()[0]?.escrowIdKey;
  if (idKey === undefined) throw new Error('The database has no deployment stamp.');
  const nextNumber = createSequence(database, 'ESCROW');
  const provenance = createProvenanceRecords(database);
  const escrows = () =>
    database.select(escrowColumns).from(escrow).innerJoin(caller, eq(caller.id, escrow.callerId)).$dynamic();

  function find(id: string, owner: number | undefined): Escrow | undefined {
    const row = escrows()
      .where(and(eq(escrow.escrowId, id), ownedBy(owner)))
      .get();
    return row === undefined ? undefined : toEscrow(row);
  }

  function requireSaleable(filingNo: string, owner: number | undefined): void {
    const filed = database
      .select({ callerId: filing.callerId })
      .from(filing)
      .where(eq(filing.filingNo, filingNo))
      .get();
    if (filed === undefined) throw new Refusal('FILING_NOT_FOUND', 'filingNo names no filing.');
    if (owner !== undefined && filed.callerId !== owner) {
      throw new Refusal(
        'PERMISSION_DENIED',
        'Only the caller that filed the artwork may open an escrow for it.',
      );
    }
    const active = database
      .select({ escrowId: escrow.escrowId })
      .from(escrow)
      // Literals, so that SQLite sees that the partial index answers this.
      .where(and(eq(escrow.filingNo, filingNo), sql`${escrow.state} IN ('UNPAID', 'FROZEN')`))
      .get();
    if (active === undefined) return;
    throw new Refusal('ESCROW_ACTIVE', `${filingNo} has an open escrow already: ${active.escrowId}.`);
  }

  return {
    open: async (terms, { timestamp }, by, owner) =>
      write(() => {
        requireSaleable(terms.filingNo, owner);
        const year = yearOf(timestamp);
        const order = {
          ...terms,
          escrowId: escrowId(year, nextNumber(year), idKey),
          state: 'UNPAID',
          timestamp,
        } as const;
        database
          .insert(escrow)
          .values({ ...order, callerId: by.callerId })
          .run();
        return { ...order, caller: by.caller };
      }),
    move: async (id, move, at) =>
      write(() => {
        const { from, to } = escrowMoves[move];
        const { changes } = database
          .update(escrow)
          .set({ state: to })
          .where(and(eq(escrow.escrowId, id), eq(escrow.state, from)))
          .run();
        const order = find(id, undefined);
        if (order === undefined) throw new Refusal('ESCROW_NOT_FOUND', 'escrowId names no escrow.');
        if (changes === 0)
          throw new Refusal('ESCROW_STATE_CONFLICT', `${id} is ${order.state}, not ${from}.`);
        if (move === 'released') provenance.append(order.filingNo, 'TRANSFER', at);
        return order;
      }),
    find: async (id, owner) => read(() => find(id, owner)),
    list: async (owner, page) =>
      read(() => {
        const rows = escrows()
          .where(and(ownedBy(owner), before(page)))
          .orderBy(desc(escrow.id))
          .limit(rowsFor(page))
          .all();
        return pageOf(rows, page, toEscrow);
      }),
  };
}

const ownedBy = (owner: number | undefined) => (owner === undefined ? undefined : eq(escrow.callerId, owner));

const before = ({ from }: PageQuery) => (from === undefined ? undefined : lt(escrow.id, from));

const toEscrow = ({ id: _, ...row }: Escrow & { readonly id: number }): Escrow => row;
