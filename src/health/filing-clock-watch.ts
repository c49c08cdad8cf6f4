import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import { type ClockFault, clockFaultText, findClockFault } from '../domain/filing-clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import { every } from '../lib/timing.ts';
import type { Execute } from '../store/store.ts';

const checkEveryMs = 1_000;

/** Whether the wall clock can date filings. It is not part of readiness, since nothing else depends on it. */
export interface FilingClockWatch {
  /** Seconds by which the clock was set since this watch began or an operator accepted it; negative for back. */
  setByS(): number;
  /** The fault of the clock, at most a second old. */
  fault(): ClockFault | undefined;
  /** Reads now whether an operator accepted the clock. */
  refresh(): Promise<void>;
  stop(): void;
}

/**
 * Checks the clock once a second. Resolves after the first check. Logs an error when filings begin to be rejected, and a line
 * when they are accepted again. A clock that an operator accepts is trusted from then on.
 */
export async function watchFilingClock(
  execute: Execute,
  clock: Clock,
  log: Logger,
): Promise<FilingClockWatch> {
  const lead = () => clock.nowMs() - clock.monotonicMs();
  let trustedLeadMs = lead();
  /** The number of the last acceptance; undefined before the first check. */
  let accepted: number | undefined;
  let fault: ClockFault | undefined;

  const setByS = () => Math.trunc((lead() - trustedLeadMs) / 1_000);

  async function check(): Promise<void> {
    const state = await execute({ kind: 'ReadLogClock' });
    const last = state.accepted?.sequence ?? 0;
    if (accepted !== undefined && last > accepted) trustedLeadMs = lead();
    accepted = last;
    // Read after the store, so that no stored time is newer.
    const nowS = Math.floor(clock.nowMs() / 1_000);
    const { newestS, datedS } = state;
    report(findClockFault({ nowS, newestS, datedS, setByS: setByS() }), nowS);
  }

  function report(found: ClockFault | undefined, nowS: number): void {
    if (found !== undefined && found.kind !== fault?.kind)
      log.error(
        { fault: clockFaultText(found), clock: utcTimestamp(nowS * 1_000) },
        'filings are rejected until the clock is right: correct it, or accept it with artseal clock accept',
      );
    if (found === undefined && fault !== undefined)
      log.info('the clock is right again: filings are accepted');
    fault = found;
  }

  // A store that cannot be read is reported elsewhere.
  const loop = every(
    clock,
    () => checkEveryMs,
    () => check().catch(() => {}),
  );
  await loop.start();
  return {
    setByS,
    fault: () => fault,
    refresh: check,
    stop: () => void loop.stop(),
  };
}
