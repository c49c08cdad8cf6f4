import type { Logger } from 'pino';
import type { Clock } from '../domain/clock.ts';
import { type ClockFault, clockFaultText, findClockFault } from '../domain/filing-clock.ts';
import { utcTimestamp } from '../domain/utc.ts';
import type { Execute } from '../store/store.ts';

/** How often the clock is looked at, in milliseconds. */
const lookEveryMs = 1_000;

/** Whether filings can be dated by the wall clock; only they wait for it, so it is no part of readiness. */
export interface FilingClockWatch {
  /** By how much it was set since this watch began, or since an operator accepted it, in whole seconds; negative for back. */
  setByS(): number;
  /** What is wrong with it, as of a second ago at most. */
  fault(): ClockFault | undefined;
  /** Reads at once whether an operator accepted the clock. */
  refresh(): Promise<void>;
  stop(): void;
}

/**
 * Looks at the clock once a second: resolves after the first look. Logs an error when filings come to be refused because of
 * it, and a line when they are taken again. A clock that an operator accepts is right from then on.
 */
export async function watchFilingClock(
  execute: Execute,
  clock: Clock,
  log: Logger,
): Promise<FilingClockWatch> {
  const lead = () => clock.nowMs() - clock.monotonicMs();
  let trustedLeadMs = lead();
  /** The last acceptance that is known; undefined until it was asked for. */
  let accepted: number | undefined;
  let fault: ClockFault | undefined;
  let isStopped = false;
  let cancel = () => {};

  const setByS = () => Math.trunc((lead() - trustedLeadMs) / 1_000);

  async function look(): Promise<void> {
    const told = await execute({ kind: 'ReadLogClock' });
    const last = told.accepted?.sequence ?? 0;
    if (accepted !== undefined && last > accepted) trustedLeadMs = lead();
    accepted = last;
    // Read only now: what was stored meanwhile is not newer.
    const nowS = Math.floor(clock.nowMs() / 1_000);
    const { newestS, datedS } = told;
    notice(findClockFault({ nowS, newestS, datedS, setByS: setByS() }), nowS);
  }

  function notice(found: ClockFault | undefined, nowS: number): void {
    if (found !== undefined && found.kind !== fault?.kind)
      log.error(
        { fault: clockFaultText(found), clock: utcTimestamp(nowS * 1_000) },
        'filings are refused until the clock is right, or until it is accepted: artseal clock accept',
      );
    if (found === undefined && fault !== undefined) log.info('the clock is right again: filings are taken');
    fault = found;
  }

  async function lookRegularly(): Promise<void> {
    // A store that cannot be read says so itself.
    await look().catch(() => {});
    if (!isStopped) cancel = clock.after(lookEveryMs, lookRegularly);
  }

  await lookRegularly();
  return {
    setByS,
    fault: () => fault,
    refresh: look,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
