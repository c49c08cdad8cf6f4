import { lt, sql } from 'drizzle-orm';
import { notificationRetentionS } from '../reconciliation-commands.ts';
import type { Database } from './connection.ts';
import { providerNotification } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** Expired notifications deleted per new one. */
const sweptPerNotification = 2;

/** Remembers notifications of the provider. The function returns whether a notification is new. It runs inside an effect. */
export function createNotificationMemory(database: Database): (eventId: string, nowMs: number) => boolean {
  const isForgotten = lt(providerNotification.receivedAtS, sql.placeholder('forgottenS'));
  const remember = prepareRaw(
    database,
    database
      .insert(providerNotification)
      .values({ eventId: sql.placeholder('eventId'), receivedAtS: sql.placeholder('receivedAtS') })
      .onConflictDoUpdate({
        target: providerNotification.eventId,
        set: { receivedAtS: sql`excluded.received_at_s` },
        setWhere: isForgotten,
      }),
  );
  const sweep = prepareRaw(
    database,
    database.delete(providerNotification).where(isForgotten).limit(sweptPerNotification),
  );
  return (eventId, nowMs) => {
    const receivedAtS = Math.floor(nowMs / 1000);
    const forgottenS = receivedAtS - notificationRetentionS;
    const isNew = remember.run({ eventId, receivedAtS, forgottenS }) === 1;
    sweep.run({ forgottenS });
    return isNew;
  };
}
