import type { Clock } from '../../src/domain/clock.ts';

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  /** Moves both clocks on. */
  advance(ms: number): void;
  /** Sets the wall clock alone, as an operator or NTP would. */
  setWall(nowMs: number): void;
}

/** A clock that starts at an instant, by default the real present so that signatures made now are valid. */
export function createManualClock(startMs: number = Date.now()): ManualClock {
  let wallMs = startMs;
  let monotonicMs = 0;
  return {
    nowMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    advance: (ms) => {
      wallMs += ms;
      monotonicMs += ms;
    },
    setWall: (nowMs) => {
      wallMs = nowMs;
    },
  };
}
