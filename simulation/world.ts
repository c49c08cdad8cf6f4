import type { ManualClock } from '../test/support/clock.ts';
import type { Dice } from './dice.ts';
import type { Tally, Trace } from './trace.ts';
import type { Witness } from './witness.ts';

/** The state that all parts of a simulation share. */
export interface World {
  readonly clock: ManualClock;
  readonly dice: Dice;
  readonly trace: Trace;
  readonly tally: Tally;
  readonly witness: Witness;
  /** Whether clients send each request that they retry to two instances at once. */
  readonly sendsTwice: boolean;
  /** Returns whether all faults have stopped. */
  isCalm(): boolean;
  /** Ends the simulation with an error. */
  fail(error: unknown): void;
}

/** The deployment settings of the simulated service. */
export const deployment = { environment: 'sandbox', currency: 'CNY' } as const;

/** Resolves after some simulated milliseconds. */
export function sleep({ clock }: Pick<World, 'clock'>, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** Resolves in the next turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
