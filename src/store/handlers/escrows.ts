import { and, eq, lt, sql } from 'drizzle-orm';
import { yearOf } from '../../domain/calendar.ts';
import { stateConflict } from '../../domain/escrow.ts';
import { escrowSequenceMax, escrowId as nextEscrowId } from '../../domain/escrow-id.ts';
import { type EscrowTerms, type PartyRole, rejectUnsaleable } from '../../domain/escrow-terms.ts';
import { type PartyMembers, sameParty, unknownParties } from '../../domain/party.ts';
import { planResolution } from '../../domain/resolution.ts';
import { rejectViolations } from '../../domain/violation.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { pageOf } from '../engine/paging.ts';
import { caller, escrow, filing, numberSequence } from '../engine/schema.ts';
import { type Database, equalsWithoutIndex, prepare, prepareMapped } from '../engine/statement.ts';
import { storedFilingColumns } from '../engine/stored-filing.ts';
import type { EscrowCommands, EscrowFilter } from '../escrow-commands.ts';
import { realTime } from '../filing-commands.ts';
import type { PartyCommands } from '../party-commands.ts';
import type { ReconciliationCommands } from '../reconciliation-commands.ts';
import { createEscrowBooks, type EscrowBooks, resolvable } from './escrow-books.ts';
import { createPartyHandlers, createPartyRegister, type PartyRegister } from './parties.ts';
import type { Parts } from './parts.ts';
import { createReconciliationHandlers } from './reconciliation.ts';

/**
 * How long the instance that prepares an instruction has to begin to send it, in milliseconds. Until then the order is not due, so
 * that recovery does not look up the same order.
 */
const sendsWithinMs = 2_000;

/** Handlers of orders, reconciliation and parties, which share the same books. */
export function createOrderHandlers(
  parts: Parts,
): Handlers<keyof EscrowCommands | keyof ReconciliationCommands | keyof PartyCommands> {
  const parties = createPartyRegister(parts.database);
  const books = createEscrowBooks(parts, parties);
  return {
    ...createEscrowHandlers(parts, books, parties),
    ...createReconciliationHandlers(parts, books),
    ...createPartyHandlers(parts, parties),
  };
}

/** Handlers that open, resolve and read orders for callers. */
function createEscrowHandlers(
  { database, secret: idKey, check, provenance }: Parts,
  books: EscrowBooks,
  parties: PartyRegister,
): Handlers<keyof EscrowCommands> {
  const { rows, instructions, history, toEscrow } = books;
  const { findRow, requireRow, requireInstruction } = books;
  const nextNumber = createEscrowSequence(database);
  const selectFiling = prepareMapped(
    database
      .select(storedFilingColumns)
      .from(filing)
      .leftJoin(caller, eq(caller.id, filing.callerId))
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  );

  /** The filing that an order is for, compared with the evidence log; undefined if there is none. */
  async function findFiling(filingNo: string) {
    const row = await selectFiling.get({ filingNo });
    if (row === undefined) {
      await check.absence(filingNo);
      return undefined;
    }
    if (row.erasedAtS === null) return check.filing(row);
    await check.erasure(row);
    return row;
  }

  /** The parties of a caller that have all provider ids that are needed. */
  async function registered(callerId: number, { buyerId, sellerId }: EscrowTerms, needed: PartyMembers) {
    const find = async (role: PartyRole, partyId: string) => {
      const found = await parties.find(callerId, role, partyId);
      const hasAll = found && needed[role].every((member) => Object.hasOwn(found.providerIds, member));
      return hasAll ? found : undefined;
    };
    return { buyer: await find('BUYER', buyerId), seller: await find('SELLER', sellerId) };
  }

  return {
    OpenEscrow: writes(async ({ terms, violations, parties: needed, at, work, owner }) => {
      const { filingNo } = terms;
      const source = await findFiling(filingNo);
      const filedBy = source?.callerId;
      // A platform names its own parties for any filing, so that it cannot learn about those of another platform.
      const callerId = owner ?? filedBy;
      const known = callerId && needed ? await registered(callerId, terms, needed) : undefined;
      const { buyer, seller } = known ?? {};
      rejectViolations([
        ...violations,
        ...(known ? unknownParties(known) : []),
        ...(buyer && seller ? sameParty(buyer.providerIds, seller.providerIds) : []),
      ]);
      const active = await rows.activeOf(filingNo);
      const isErased = source !== undefined && source.erasedAtS !== null;
      const transfers = await provenance.transfersOf(filingNo);
      rejectUnsaleable({ filingNo, filedBy, isErased, active, transfers }, owner);
      const year = yearOf(realTime(at).timestamp);
      const id = await rows.insert({
        ...terms,
        escrowId: nextEscrowId(year, await nextNumber(year), idKey),
        buyerPartyId: buyer?.id ?? null,
        sellerPartyId: seller?.id ?? null,
        callerId: work.callerId,
        timestamp: at.timestamp,
        lookUpAtMs: at.atMs + sendsWithinMs,
      });
      await history.append(id, 'UNPAID', at);
      await instructions.prepare(id, 'FREEZE', work.instructionId, at.atMs);
      return requireInstruction(work.instructionId);
    }),
    PrepareResolution: writes(async ({ resolution, escrowId, at, work, owner }) => {
      const row = await requireRow(escrowId, owner);
      const underWay = await books.resolutionOf(row.id);
      const outcome = planResolution(resolution, resolvable(row, underWay));
      if (outcome.kind === 'CONFLICT') throw stateConflict(outcome.why);
      if (outcome.kind === 'PREPARE') {
        // Before the money moves: a TRANSFER could not be appended to records of which one is missing.
        if (resolution === 'RELEASE') await provenance.requireWhole(row.filingNo);
        await instructions.prepare(row.id, outcome.instruction, work.instructionId, at.atMs);
        await rows.makeDue(row.id, at.atMs + sendsWithinMs);
      }
      return requireInstruction(underWay?.instructionId ?? work.instructionId);
    }),
    GetEscrow: reads(async ({ escrowId, owner }) => {
      const row = await findRow(escrowId, owner);
      return row && toEscrow(row);
    }),
    ListEscrows: reads(async ({ filter, page }) =>
      pageOf(await rows.list(page, selectedBy(filter)), page, toEscrow),
    ),
  };
}

/**
 * Prepares the next sequence of orders in a year, from 1 to `escrowSequenceMax` without gaps. Once all are used, it returns
 * `escrowSequenceMax` + 1 and changes nothing. Runs inside an effect.
 */
function createEscrowSequence(database: Database): (year: number) => Promise<number> {
  const { next } = prepare(database, {
    next: database
      .insert(numberSequence)
      .values({ kind: 'ESCROW', year: sql.placeholder('year'), last: 1 })
      .onConflictDoUpdate({
        target: [numberSequence.kind, numberSequence.year],
        set: { last: sql`${numberSequence.last} + 1` },
        setWhere: lt(numberSequence.last, escrowSequenceMax),
      })
      .returning({ last: numberSequence.last }),
  });
  return async (year) => (await next.get({ year }))?.last ?? escrowSequenceMax + 1;
}

const selectedBy = ({ owner, state, filingNo }: EscrowFilter) => {
  const equals = filingNo === undefined ? eq : equalsWithoutIndex;
  return and(
    filingNo === undefined ? undefined : eq(escrow.filingNo, filingNo),
    owner === undefined ? undefined : equals(escrow.callerId, owner),
    state === undefined ? undefined : equals(escrow.state, state),
  );
};
