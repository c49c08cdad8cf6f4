import { asc, desc } from 'drizzle-orm';
import { restoredEventsGap } from '../../domain/event.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { DatabaseError, driverError } from '../engine/failure.ts';
import { filing, logCheckpoint } from '../engine/schema.ts';
import type { Database } from '../engine/statement.ts';
import {
  lastRestoration,
  type NewRestoration,
  type NumberGap,
  recordRestoration,
} from '../handlers/restorations.ts';
import { connectToUse } from './line.ts';
import { forHandlers } from './statement.ts';
import { type PostgresOptions, prepareDatabase } from './store.ts';

/** The filings of a restored database, of which it may have none. */
export interface KnownFilings {
  readonly firstYear: number | undefined;
  /** When the newest was filed, Unix seconds. */
  readonly newestS: number | undefined;
}

/** A recorded restoration. */
export interface RecordedRestoration {
  readonly gaps: readonly NumberGap[];
  /** Whether checkpoints of the evidence log were published. */
  readonly isPublished: boolean;
}

/**
 * Records in one transaction that a database was restored, as `recordRestoration` says; `plan` is called with its filings. Throws
 * DatabaseError, also if another process uses the database, or if it was recorded and not served since.
 */
export async function recordRestorationAt(
  { place, ...binding }: Omit<PostgresOptions, 'opening'>,
  plan: (filings: KnownFilings) => NewRestoration,
): Promise<RecordedRestoration> {
  const client = await connectToUse(
    place,
    (session) => prepareDatabase(session, { ...binding, opening: 'EXISTING' }),
    { connection: { isMaintenance: true } },
  );
  try {
    const database = forHandlers(client);
    await client.query('BEGIN');
    const last = await lastRestoration(database);
    // Once more would skip half of the numbers that are left.
    if (last !== undefined && last.servedAtS === undefined)
      throw new DatabaseError(
        'it was recorded already that the database was restored, and it was not served since: run artseal serve.',
      );
    const gaps = await recordRestoration(database, plan(await knownFilings(database)), async () => {
      await client.query(skipEvents);
    });
    const checkpoint = await database.select().from(logCheckpoint).limit(1).get();
    await client.query('COMMIT');
    return { gaps, isPublished: checkpoint !== undefined };
  } catch (error) {
    throw driverError(error);
  } finally {
    await client.end();
  }
}

async function knownFilings(database: Database): Promise<KnownFilings> {
  const { filingNo, filedAtS, id } = filing;
  const first = await database.select({ filingNo }).from(filing).orderBy(asc(filingNo)).limit(1).get();
  const newest = await database.select({ filedAtS }).from(filing).orderBy(desc(id)).limit(1).get();
  return { firstYear: first && yearOfFiling(first.filingNo), newestS: newest?.filedAtS };
}

/** Skips the sequences and positions of events that may have been read since the backup, so that none is used for another event. */
const skipEvents = `INSERT INTO event_floor (caller_id, sequence, position)
  SELECT id, ${restoredEventsGap} + greatest(0,
      (SELECT max(sequence) FROM event WHERE event.caller_id = caller.id),
      (SELECT sequence FROM event_floor WHERE event_floor.caller_id = caller.id)), 0 FROM caller
  UNION ALL SELECT 0, 0, ${restoredEventsGap} + greatest(0,
      (SELECT max(position) FROM event),
      (SELECT position FROM event_floor WHERE caller_id = 0))
  ON CONFLICT (caller_id) DO UPDATE SET sequence = excluded.sequence, position = excluded.position`;
