import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Execute } from '../store/store.ts';
import { clockDifferenceMaxS } from './credentials.ts';

/** What a registry that was restored from a backup does not know: the requests that the original carried out after it. */
export interface NonceGap {
  /** Unix seconds up to which requests are to be refused by their timestamp; 0 for a registry that was never restored. */
  readonly untilS: () => number;
  /** Until when signed requests are refused for it; undefined if they are taken. */
  findFault(): string | undefined;
  /** Says that this process has the addresses now, so that the original, if it had them, has ended. */
  served(): Promise<void>;
}

/** The last second, Unix, of which requests are refused where a restored registry was first served then. */
export const refusedThroughS = (servedAtS: number): number => servedAtS + clockDifferenceMaxS;

/** Since when signed requests are taken that were refused up to then, RFC 3339. */
export const takenFrom = (untilS: number): string => utcTimestamp((untilS + 1) * 1_000);

/**
 * Finds the gap of a store. It ends as far behind the first time that the store was served as a timestamp may be ahead of the
 * original's clock; until then it goes along with the clock.
 */
export async function findNonceGap(execute: Execute, clock: Clock, log: Logger): Promise<NonceGap> {
  const restored = await execute({ kind: 'FindRestoration' });
  if (restored === undefined) return { untilS: () => 0, findFault: () => undefined, served: async () => {} };
  const nowS = () => Math.floor(clock.nowMs() / 1000);
  let { servedAtS } = restored;
  const untilS = () => refusedThroughS(servedAtS ?? nowS());
  return {
    untilS,
    findFault: () =>
      nowS() > untilS() ? undefined : `signed calls are refused until ${takenFrom(untilS())}`,
    served: async () => {
      servedAtS ??= nowS();
      await execute({ kind: 'RecordServing', atS: servedAtS });
      if (nowS() <= untilS())
        log.warn(
          { until: takenFrom(untilS()) },
          'restored from a backup: signed requests of before are refused until then',
        );
    },
  };
}
