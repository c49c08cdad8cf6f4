import type { ManualClock } from '../test/support/clock.ts';
import type { Dice } from './dice.ts';
import type { Tally } from './tally.ts';
import type { Trace } from './trace.ts';
import type { Witness } from './witness.ts';

/** What all parts of a simulation share. */
export interface World {
  readonly clock: ManualClock;
  readonly dice: Dice;
  readonly trace: Trace;
  readonly tally: Tally;
  readonly witness: Witness;
  /** Once it is, nothing goes wrong any more. */
  isCalm(): boolean;
  /** Ends the simulation: something is as it must not be. */
  fail(error: unknown): void;
}

/** What the service is deployed as. */
export const deployment = { environment: 'sandbox', currency: 'CNY' } as const;

/** Resolves so many simulated milliseconds later. */
export function sleep({ clock }: Pick<World, 'clock'>, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** Lets everything happen that needs no time. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
