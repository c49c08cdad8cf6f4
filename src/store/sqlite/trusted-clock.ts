import { desc } from 'drizzle-orm';
import type { Database } from './connection.ts';
import type { EvidenceLog } from './evidence-log.ts';
import { filing, logEvent } from './schema.ts';
import { prepareRaw } from './statement.ts';

/**
 * The time of the newest filing, or the one that an operator accepted since, Unix seconds; undefined if there is neither. It is
 * what is known of the time: other records are taken by whatever clock, so theirs may be wrong.
 */
export interface TrustedClock {
  read(): number | undefined;
  /** The same, or one of up to a day before: not read for each filing that the clock of `nowS`, Unix seconds, is right for. */
  about(nowS: number): number | undefined;
  /**
   * The time as of which what is kept for a while may go, where a clock says `nowS`, which may be wrong by years: none that no filing
   * was dated by yet and no operator accepted, if there was either.
   */
  notAfter(nowS: number): number;
}

const dayS = 86_400;

export function createTrustedClock(database: Database, log: Pick<EvidenceLog, 'acts'>): TrustedClock {
  const selectFiling = prepareRaw<{ filed_at_s: number; leaf_index: number }>(
    database,
    database
      .select({ filedAtS: filing.filedAtS, leafIndex: filing.leafIndex })
      .from(filing)
      .orderBy(desc(filing.id))
      .limit(1),
  );
  const selectLogEvents = prepareRaw<{ kind: string; time_s: number; leaf_index: number }>(
    database,
    database
      .select({ kind: logEvent.kind, timeS: logEvent.timeS, leafIndex: logEvent.leafIndex })
      .from(logEvent)
      .orderBy(desc(logEvent.sequence)),
  );
  let known: { readonly atS: number | undefined; readonly acts: number } | undefined;

  function read(): number | undefined {
    const filed = selectFiling.get({});
    // Few acts are newer than the newest filing, and the others are not read.
    for (const act of selectLogEvents.iterate({})) {
      if (filed !== undefined && act.leaf_index < filed.leaf_index) break;
      if (act.kind === 'CLOCK_ACCEPTED') return act.time_s;
    }
    return filed?.filed_at_s;
  }

  function about(nowS: number): number | undefined {
    const acts = log.acts();
    // What was accepted since is an act.
    const isNear = known?.atS !== undefined && Math.abs(nowS - known.atS) <= dayS;
    if (known?.acts !== acts || !isNear) known = { atS: read(), acts };
    return known.atS;
  }

  return { read, about, notAfter: (nowS) => Math.min(nowS, about(nowS) ?? nowS) };
}
