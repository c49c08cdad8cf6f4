import { restoredEventsGap } from '../../domain/event.ts';
import { driverError } from '../engine/failure.ts';
import { type NewRestoration, type NumberGap, recordRestoration } from '../handlers/restorations.ts';
import { everybody } from './outbox.ts';
import { forHandlers, type SqliteDatabase } from './statement.ts';

/** Records in one transaction that a database was restored, as `recordRestoration` says. */
export async function recordRestorationIn(
  database: SqliteDatabase,
  restored: NewRestoration,
): Promise<readonly NumberGap[]> {
  const { $client: client } = database;
  client.exec('BEGIN IMMEDIATE');
  try {
    const gaps = await recordRestoration(forHandlers(database), restored, async () => skipEvents(database));
    client.exec('COMMIT');
    return gaps;
  } catch (error) {
    if (client.inTransaction) client.exec('ROLLBACK');
    throw driverError(error);
  }
}

const addHead = 'INSERT OR IGNORE INTO event_head (caller_id, sequence, position)';

/** Skips the sequences of events that may have been read since the backup, so that none is used for another event. */
function skipEvents({ $client: client }: SqliteDatabase): void {
  // Callers that were added after the backup are not known here. All known ones continue after the gap.
  client.exec(`${addHead} SELECT id, 0, 0 FROM caller`);
  client.prepare(`${addHead} VALUES (?, 0, 0)`).run(everybody);
  client.prepare('UPDATE event_head SET sequence = sequence + ?').run(restoredEventsGap);
  client
    .prepare('UPDATE event_head SET position = position + ? WHERE caller_id = ?')
    .run(restoredEventsGap, everybody);
}
