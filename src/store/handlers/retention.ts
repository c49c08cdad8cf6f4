import { and, desc, eq, inArray, isNull, lte, notExists, type SQL, sql } from 'drizzle-orm';
import { erasedArtwork } from '../../domain/filing.ts';
import { leafRanges, madeUpOriginStart } from '../../domain/leaf.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { oldestFirst, pageOf } from '../engine/paging.ts';
import { caller, escrow, filing, idempotencyKey, logOrigin, provenanceRecord } from '../engine/schema.ts';
import { type Database, named, placeholders, prepare, prepareMapped } from '../engine/statement.ts';
import { storedFilingColumns } from '../engine/stored-filing.ts';
import type { ExpiredFiling, RetentionCommands } from '../operator-commands.ts';
import { idempotencyRetentionS } from '../store.ts';
import type { Parts } from './parts.ts';

/**
 * Leaves that one RECORDS_ERASED lists at most. An index has up to 16 digits, so a list of them is shorter than the 65,535 bytes
 * that a published leaf may have.
 */
const listedMax = 3_000;

/** Handlers of erasure. */
export function createRetentionHandlers(parts: Parts): Handlers<keyof RetentionCommands> {
  const { database, recordAudit, log, clock, check, erasure } = parts;
  const { forgetOutcomes } = prepare(database, {
    forgetOutcomes: database
      .delete(idempotencyKey)
      .where(lte(idempotencyKey.claimedAtS, sql.placeholder('forgottenS'))),
  });
  /**
   * The time before which records may be erased. The triggers use the database's clock, so both clocks have to agree. Both may be
   * wrong by years, so a time counts only once a filing was dated by it or an operator accepted it.
   */
  const endAt = async (nowS: number, aheadS: number) =>
    erasure.endOfRetention(Math.min(nowS, (await clock.read()) ?? nowS), aheadS);
  /** By how much the clock ends retention earlier. Auditors accept that only in a log with a made-up name. */
  async function readAheadS(): Promise<number> {
    const newest = database.select({ name: logOrigin.origin }).from(logOrigin).orderBy(desc(logOrigin.id));
    const isMadeUp = (await newest.limit(1).get())?.name.startsWith(madeUpOriginStart);
    return isMadeUp ? clock.aheadS() : 0;
  }
  const erase = createErasure(database, check);
  const records = () =>
    database
      .select({ records: sql<number>`1 + count(*)` })
      .from(provenanceRecord)
      .where(eq(provenanceRecord.filingNo, filing.filingNo));

  return {
    ListExpired: reads(async ({ nowS, page }) => {
      const beforeS = await endAt(nowS, await readAheadS());
      const filings = database
        .select({ id: filing.id, filingNo: filing.filingNo, records: sql<number>`(${records()})` })
        .from(filing)
        .$dynamic();
      const rows = await oldestFirst(filings, filing.id, page, expiredBy(database, sql`${beforeS}`));
      return { ...(await pageOf(rows, page, ({ id, ...found }) => found)), beforeS };
    }),
    EraseFilings: writes(async ({ by, filingNos }) => {
      await erasure.begin();
      const aheadS = await readAheadS();
      const before = await endAt(by.atS, aheadS);
      // Stored results of idempotency keys contain hashes of filings. Keys that may be used again keep theirs otherwise.
      await forgetOutcomes.run({ forgottenS: Math.max(by.atS - idempotencyRetentionS, before) });
      // The time of the erasure's leaf, which is never before the newest one.
      const erasedAtS = Math.max(by.atS, (await log.newestS()) ?? by.atS);
      const leaves: number[] = [];
      const erasedFilings: ExpiredFiling[] = [];
      for (const filingNo of filingNos) {
        const erased = await erase(filingNo, before, erasedAtS);
        for (const index of erased) leaves.push(index);
        if (erased.length > 0) erasedFilings.push({ filingNo, records: erased.length });
      }
      const [first, last] = [erasedFilings.at(0), erasedFilings.at(-1)];
      if (first === undefined || last === undefined) return [];
      leaves.sort((one, other) => one - other);
      for (let from = 0; from < leaves.length; from += listedMax) {
        const listed = leaves.slice(from, from + listedMax);
        const detail = { records: listed.length, leaves: leafRanges(listed), before };
        const ahead = aheadS > 0 ? { ahead: aheadS } : {};
        await log.appendLogEvent('RECORDS_ERASED', erasedAtS, { ...detail, ...ahead });
      }
      const after = { filings: erasedFilings.length, records: leaves.length };
      await recordAudit(by, 'retention purge', `${first.filingNo} to ${last.filingNo}`, { after });
      return erasedFilings;
    }),
  };
}

/**
 * Returns the function that erases a filing if it has expired, and returns the leaves of its records. It throws RecordDamaged if
 * the filing, its age, or its leaf is not what was recorded: a log event would name the leaf as erased for ever.
 */
function createErasure(database: Database, check: Parts['check']) {
  const expired = expiredBy(database, sql.placeholder('before'));
  const selectExpired = prepareMapped(
    database
      .select(storedFilingColumns)
      .from(filing)
      .leftJoin(caller, eq(caller.id, filing.callerId))
      .where(and(eq(filing.filingNo, sql.placeholder('filingNo')), expired)),
  );
  const { eraseFiling, eraseSalts } = prepare(database, {
    eraseFiling: database
      .update(filing)
      .set({ ...erasedArtwork, hash: '', salt: null, attachments: null, ...placeholders('erasedAtS') })
      .where(and(eq(filing.filingNo, sql.placeholder('filingNo')), expired))
      .returning(named({ leafIndex: filing.leafIndex })),
    eraseSalts: database
      .update(provenanceRecord)
      .set({ salt: null })
      .where(eq(provenanceRecord.filingNo, sql.placeholder('filingNo')))
      .returning(named({ leafIndex: provenanceRecord.leafIndex })),
  });
  return async (filingNo: string, before: number, erasedAtS: number): Promise<readonly number[]> => {
    const row = await selectExpired.get({ filingNo, before });
    if (row === undefined) return [];
    await check.filing(row);
    const erased = await eraseFiling.get({ filingNo, before, erasedAtS });
    if (erased === undefined) return [];
    return [erased, ...(await eraseSalts.all({ filingNo }))].map(({ leafIndex }) => leafIndex);
  };
}

/** Filings that are not erased, whose records are all that old, and that have no open order. */
function expiredBy(database: Database, before: SQL | ReturnType<typeof sql.placeholder>): SQL | undefined {
  const younger = database
    .select({ one: sql`1` })
    .from(provenanceRecord)
    .where(
      and(eq(provenanceRecord.filingNo, filing.filingNo), sql`${provenanceRecord.recordedAtS} > ${before}`),
    );
  const open = database
    .select({ one: sql`1` })
    .from(escrow)
    .where(and(eq(escrow.filingNo, filing.filingNo), inArray(escrow.state, ['UNPAID', 'FROZEN'])));
  return and(isNull(filing.erasedAtS), lte(filing.filedAtS, before), notExists(younger), notExists(open));
}
