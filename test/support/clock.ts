import type { Clock } from '../../src/domain/clock.ts';

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  /** Advances both clocks, and calls each callback at the time at which it is due. */
  advance(ms: number): void;
  /**
   * Moves both clocks at once, as if the machine had been suspended: each callback that fell due meanwhile is called once.
   * A day costs a few seconds of CPU with `advance`, since a service has timers that fire each second.
   */
  leap(ms: number): void;
  /** Sets the wall clock alone, as an operator or NTP would. */
  setWall(nowMs: number): void;
  /** Milliseconds until the next callback is due; undefined if none waits. */
  nextDueMs(): number | undefined;
}

interface Timer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** A clock that starts at an instant, by default the real present so that signatures made now are valid. */
export function createManualClock(startMs: number = Date.now()): ManualClock {
  let wallMs = startMs;
  let monotonicMs = 0;
  const timers = new Set<Timer>();

  /** The timer that is due first; of two at the same time, the one that was set first. */
  function nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers) if (next === undefined || timer.dueMs < next.dueMs) next = timer;
    return next;
  }
  function pass(ms: number): void {
    wallMs += ms;
    monotonicMs += ms;
  }

  return {
    nowMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    after: (ms, callback) => {
      const timer = { dueMs: monotonicMs + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance: (ms) => {
      const untilMs = monotonicMs + ms;
      for (let timer = nextTimer(); timer !== undefined && timer.dueMs <= untilMs; timer = nextTimer()) {
        timers.delete(timer);
        pass(Math.max(0, timer.dueMs - monotonicMs));
        timer.callback();
      }
      pass(untilMs - monotonicMs);
    },
    leap: (ms) => {
      pass(ms);
      const due = [...timers].filter(({ dueMs }) => dueMs <= monotonicMs);
      for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) if (timers.delete(timer)) timer.callback();
    },
    setWall: (nowMs) => {
      wallMs = nowMs;
    },
    nextDueMs: () => {
      const timer = nextTimer();
      return timer && Math.max(0, timer.dueMs - monotonicMs);
    },
  };
}
