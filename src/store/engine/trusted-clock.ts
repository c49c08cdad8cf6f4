import type { EvidenceLog } from './evidence-log.ts';
import type { TrustedClock as SharedClock } from './parts.ts';

/** The trusted clock of handlers, and one for filings. */
export interface TrustedClock extends SharedClock {
  /** As `read`, or a time of up to a day before, so that it is not read for each filing. `nowS` is the clock's, Unix seconds. */
  about(nowS: number): number | undefined;
}

const dayS = 86_400;

/** The trusted clock of a log. `read` and `aheadS` read the tables. */
export function createTrustedClock(
  { read, aheadS }: Pick<TrustedClock, 'read' | 'aheadS'>,
  log: Pick<EvidenceLog, 'events'>,
): TrustedClock {
  let known: { readonly atS: number | undefined; readonly events: number } | undefined;

  function about(nowS: number): number | undefined {
    // An accepted clock is a log event.
    const events = log.events();
    const isNear = known?.atS !== undefined && Math.abs(nowS - known.atS) <= dayS;
    if (known?.events !== events || !isNear) known = { atS: read(), events };
    return known.atS;
  }

  function notAfter(nowS: number): number {
    const ahead = aheadS();
    return Math.min(nowS, (about(nowS - ahead) ?? nowS) + ahead);
  }

  return { read, aheadS, about, notAfter };
}
