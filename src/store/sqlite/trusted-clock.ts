import { desc } from 'drizzle-orm';
import type { EvidenceLog } from '../engine/evidence-log.ts';
import { deployment, filing, logEvent } from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import * as shared from '../engine/trusted-clock.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The trusted clock of a database. */
export function createTrustedClock(
  database: SqliteDatabase,
  log: Pick<EvidenceLog, 'events'>,
): shared.TrustedClock {
  const { newestFiling, logEvents, ahead } = prepare(database, {
    ahead: database.select(named({ clockAheadS: deployment.clockAheadS })).from(deployment),
    newestFiling: database
      .select(named({ filedAtS: filing.filedAtS, leafIndex: filing.leafIndex }))
      .from(filing)
      .orderBy(desc(filing.id))
      .limit(1),
    logEvents: database
      .select(named({ kind: logEvent.kind, timeS: logEvent.timeS, leafIndex: logEvent.leafIndex }))
      .from(logEvent)
      .orderBy(desc(logEvent.sequence)),
  });

  function read(): number | undefined {
    const filed = newestFiling.get();
    // Few log events are newer than the newest filing, and the others are not read.
    for (const event of logEvents.iterate()) {
      if (filed !== undefined && event.leafIndex < filed.leafIndex) break;
      if (event.kind === 'CLOCK_ACCEPTED') return event.timeS;
    }
    return filed?.filedAtS;
  }

  return shared.createTrustedClock({ read, aheadS: () => ahead.get()?.clockAheadS ?? 0 }, log);
}
