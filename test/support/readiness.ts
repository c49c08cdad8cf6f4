import { createReadiness, type Readiness } from '../../src/health/readiness.ts';
import { silentLog } from '../../src/lib/log.ts';
import { createManualClock } from './clock.ts';

/** Readiness with one part, whose fault a test sets. */
export interface SwitchedReadiness extends Readiness {
  /** Sets the fault; undefined for none. Watchers are notified at the next check. */
  set(fault: string | undefined): void;
}

export function createSwitchedReadiness(): SwitchedReadiness {
  let fault: string | undefined;
  const part = { name: 'switch', findFault: () => fault };
  const readiness = createReadiness([part], createManualClock(), silentLog);
  return {
    ...readiness,
    set: (now) => {
      fault = now;
    },
  };
}
