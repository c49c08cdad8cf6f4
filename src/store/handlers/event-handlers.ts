import { and, asc, eq, gt, isNull, lte, ne, or, sql } from 'drizzle-orm';
import { type Event, eventsAhead, eventsExpired, holdWarningS } from '../../domain/event.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { caller, escrow } from '../engine/schema.ts';
import { type Database, prepare } from '../engine/statement.ts';
import { type EventCommands, type EventPage, type EventWithCaller, eventPageMax } from '../event-commands.ts';
import type { Parts } from './parts.ts';

/** Handlers that read the feed, and the one that warns of ending holds. */
export function createEventHandlers({ database, events, outbox }: Parts): Handlers<keyof EventCommands> {
  const withCallers = createNaming(database);

  const pageOf = async (found: readonly Event[], end: number): Promise<EventPage> => ({
    events: await withCallers(found),
    next: end,
  });

  return {
    ReadEvents: reads(async ({ callerId, after, sinceMs }) => {
      const newest = await events.newest(callerId);
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const start = after ?? (sinceMs === undefined ? 0 : await events.before(callerId, sinceMs));
      const { events: found, isWhole } = await events.after(callerId, start, eventPageMax);
      if (after !== undefined && !isWhole) throw eventsExpired(await events.oldest(callerId));
      return pageOf(found, found.at(-1)?.sequence ?? newest);
    }),
    ReadAllEvents: reads(async ({ after, sinceMs }) => {
      const newest = await events.newestPosition();
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const oldest = await events.oldestPosition();
      if (after !== undefined && after + 1 < (oldest ?? newest + 1)) throw eventsExpired(oldest);
      const start = after ?? (sinceMs === undefined ? 0 : await events.positionBefore(sinceMs));
      const found = await events.afterPosition(start, eventPageMax);
      return pageOf(found, found.at(-1)?.position ?? newest);
    }),
    WarnOfEndingHolds: writes(async ({ nowMs, limit }) => {
      const nowS = Math.floor(nowMs / 1_000);
      const ending = await database
        .select()
        .from(escrow)
        .where(
          and(
            sql`${escrow.state} = 'FROZEN'`,
            gt(escrow.holdExpiresAtS, nowS),
            lte(escrow.holdExpiresAtS, nowS + holdWarningS),
            or(isNull(escrow.notifiedHoldEndS), ne(escrow.notifiedHoldEndS, escrow.holdExpiresAtS)),
          ),
        )
        .orderBy(asc(escrow.holdExpiresAtS), asc(escrow.id))
        .limit(limit)
        .all();
      for (const { id, callerId, escrowId, filingNo, state, holdExpiresAtS } of ending) {
        await database
          .update(escrow)
          .set({ notifiedHoldEndS: holdExpiresAtS })
          .where(eq(escrow.id, id))
          .run();
        outbox.add({ type: 'escrow.hold_expiring', callerId, atMs: nowMs, filingNo, escrowId, state });
      }
      return ending.length;
    }),
  };
}

/** Returns the function that adds the names of the callers to events. */
function createNaming(database: Database) {
  const { selectName } = prepare(database, {
    selectName: database
      .select({ name: caller.name })
      .from(caller)
      .where(eq(caller.id, sql.placeholder('callerId'))),
  });

  return async function withCallers(found: readonly Event[]): Promise<EventWithCaller[]> {
    /** By id. Most events of a page have few callers. */
    const names = new Map<number, string>();
    const events: EventWithCaller[] = [];
    for (const event of found) {
      const { callerId } = event;
      const name = names.get(callerId) ?? (await selectName.get({ callerId }))?.name ?? '';
      names.set(callerId, name);
      events.push({ ...event, caller: name });
    }
    return events;
  };
}
