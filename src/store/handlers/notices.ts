import { and, eq, inArray, sql } from 'drizzle-orm';
import { noticeIsSending } from '../../domain/registration.ts';
import { type Handlers, writes } from '../engine/handlers.ts';
import { registration } from '../engine/schema.ts';
import type { Parts } from './parts.ts';
import { type RegistrationRows, toRegistration } from './registration-rows.ts';

// Literals, so that SQLite can use the partial indexes.
const isDue = sql`${registration.notice} IS NULL`;
const isSending = sql`${registration.notice} = 'SENDING'`;

/** Handlers of the notices to pre-registered addresses. */
export function createNoticeHandlers(
  { database, recordAudit }: Parts,
  table: RegistrationRows,
): Handlers<'ClaimNotice' | 'RecordNotice' | 'MarkBounced'> {
  return {
    ClaimNotice: writes(async ({ by, attempt, nowS, deadBeforeS }) => {
      const sending = await table.first(isSending);
      if (sending !== undefined) {
        if ((sending.noticeAtS ?? 0) > deadBeforeS) return { next: 'BUSY' };
        const dead = { notice: 'UNKNOWN', noticeAtS: nowS, noticeDetail: diedDetail } as const;
        const ended = toRegistration(await table.change(sending.id, dead));
        return { next: 'UNKNOWN', registration: ended, due: await table.count(isDue) };
      }
      const due = await table.first(isDue);
      if (due === undefined) return { next: 'DONE' };
      if (by !== undefined)
        await recordAudit(by, 'access notify', 'notices', { after: { due: await table.count(isDue) } });
      const claim = { notice: 'SENDING', noticeAttempt: attempt, noticeAtS: nowS } as const;
      const claimed = toRegistration(await table.change(due.id, claim));
      return { next: 'SEND', registration: claimed, due: await table.count(isDue) };
    }),
    RecordNotice: writes(async ({ registrationId, attempt, result, detail, nowS }) => {
      const isOwn = and(
        eq(registration.registrationId, registrationId),
        eq(registration.noticeAttempt, attempt),
        inArray(registration.notice, ['SENDING', 'UNKNOWN']),
      );
      const row = await table.first(isOwn);
      if (row === undefined) return table.count(isDue);
      const isRemoved = row.removedAtS !== null;
      if (result !== 'NOT_SENT') {
        // The words of a mail server may name the address.
        const noticeDetail = isRemoved ? null : detail || null;
        await table.change(row.id, { notice: result, noticeAtS: nowS, noticeDetail });
      } else if (isRemoved) {
        // No notice is left to remember.
        await database.delete(registration).where(eq(registration.id, row.id)).run();
      } else {
        const due = { notice: null, noticeAttempt: null, noticeAtS: null, noticeDetail: null };
        await table.change(row.id, due);
      }
      return table.count(isDue);
    }),
    MarkBounced: writes(async ({ by, registrationId, detail }) => {
      const row = await table.require(registrationId);
      const { id, notice } = row;
      if (notice === 'BOUNCED') return toRegistration(row);
      if (notice === 'SENDING') throw noticeIsSending();
      const to = { notice: 'BOUNCED', noticeAtS: by.atS, noticeDetail: detail || null } as const;
      const changed = await table.change(id, to);
      await recordAudit(by, 'access bounced', registrationId, {
        before: { notice },
        after: { notice: 'BOUNCED' },
      });
      return toRegistration(changed);
    }),
  };
}

/** Why a registration is UNKNOWN whose attempt has no result. */
const diedDetail = 'the server stopped before the mail server had answered';
