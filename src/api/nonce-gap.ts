import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Execute } from '../store/store.ts';
import { clockDifferenceMaxS } from './authentication.ts';

/** The end of the gap of a restored registry that first served requests at `servedAtS`, both in Unix seconds. */
export const rejectedThroughS = (servedAtS: number): number => servedAtS + clockDifferenceMaxS;

/** When signed requests are accepted again, RFC 3339. */
export const acceptedFrom = (untilS: number): string => utcTimestamp((untilS + 1) * 1_000);

/**
 * The time after a restore in which the registry cannot detect replays: it does not have the nonces that the original used
 * after the backup.
 */
export type NonceGap = Awaited<ReturnType<typeof findNonceGap>>;

/**
 * Finds the gap of a store. It ends `clockDifferenceMaxS` after the restored store first served requests, since the original may
 * have accepted a timestamp that far in the future. Until then it ends that long after now.
 */
export async function findNonceGap(execute: Execute, clock: Clock, log: Logger) {
  const restored = await execute({ kind: 'FindRestoration' });
  if (restored === undefined) return { untilS: () => 0, findFault: () => undefined, served: async () => {} };
  const nowS = () => Math.floor(clock.nowMs() / 1000);
  let { servedAtS } = restored;
  const untilS = () => rejectedThroughS(servedAtS ?? nowS());
  return {
    /** Requests with a timestamp up to this, in Unix seconds, are rejected; 0 if the registry was never restored. */
    untilS,
    /** The readiness fault while the gap lasts. */
    findFault: () =>
      nowS() > untilS() ? undefined : `signed calls are rejected until ${acceptedFrom(untilS())}`,
    /** Records that this process now listens, so that the original, if it had the same addresses, has stopped. */
    served: async () => {
      servedAtS ??= nowS();
      await execute({ kind: 'RecordServing', atS: servedAtS });
      if (nowS() > untilS()) return;
      const until = acceptedFrom(untilS());
      log.warn({ until }, 'restored from a backup: signed requests are rejected until then');
    },
  };
}
