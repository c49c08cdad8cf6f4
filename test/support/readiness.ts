import pino from 'pino';
import { createReadiness, type Readiness } from '../../src/health/readiness.ts';
import { createManualClock } from './clock.ts';

/** Readiness with one part, which fails when it is told to. */
export interface SwitchedReadiness extends Readiness {
  /** Sets what is wrong; undefined for nothing. Nobody is told before the next check. */
  set(fault: string | undefined): void;
}

export function createSwitchedReadiness(): SwitchedReadiness {
  let fault: string | undefined;
  const part = { name: 'switch', findFault: () => fault };
  const readiness = createReadiness([part], createManualClock(), pino({ level: 'silent' }));
  return {
    ...readiness,
    set: (now) => {
      fault = now;
    },
  };
}
