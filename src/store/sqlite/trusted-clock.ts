import { desc } from 'drizzle-orm';
import type { EvidenceLog } from './evidence-log.ts';
import { filing, logEvent } from './schema.ts';
import { type Database, named, prepare } from './statement.ts';

/**
 * The time of the newest filing, or the time that an operator accepted since, Unix seconds; undefined if there is neither. Other
 * records are stored with any clock, so their times may be wrong.
 */
export interface TrustedClock {
  read(): number | undefined;
  /** The same, or a time of up to a day before, so that it is not read for each filing. `nowS` is the clock's, Unix seconds. */
  about(nowS: number): number | undefined;
  /**
   * The time as of which expired rows may be deleted. The clock's `nowS` may be years ahead, so it is at most the trusted time, if
   * there is one.
   */
  notAfter(nowS: number): number;
}

const dayS = 86_400;

export function createTrustedClock(database: Database, log: Pick<EvidenceLog, 'events'>): TrustedClock {
  const { newestFiling, logEvents } = prepare(database, {
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
  let known: { readonly atS: number | undefined; readonly events: number } | undefined;

  function read(): number | undefined {
    const filed = newestFiling.get();
    // Few log events are newer than the newest filing, and the others are not read.
    for (const event of logEvents.iterate()) {
      if (filed !== undefined && event.leafIndex < filed.leafIndex) break;
      if (event.kind === 'CLOCK_ACCEPTED') return event.timeS;
    }
    return filed?.filedAtS;
  }

  function about(nowS: number): number | undefined {
    // An accepted clock is a log event.
    const events = log.events();
    const isNear = known?.atS !== undefined && Math.abs(nowS - known.atS) <= dayS;
    if (known?.events !== events || !isNear) known = { atS: read(), events };
    return known.atS;
  }

  return { read, about, notAfter: (nowS) => Math.min(nowS, about(nowS) ?? nowS) };
}
