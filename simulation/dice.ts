import { createHash } from 'node:crypto';
import { createRandom } from '../test/support/random.ts';

/** Chance that a seed determines. */
export interface Dice {
  /** 0 to below 1. */
  share(): number;
  /** 0 to below `bound`. */
  below(bound: number): number;
  /** 1 to `most`. */
  upTo(most: number): number;
  /** True once in so many times. */
  oneIn(times: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** Dice of their own, the same ones for the same name whatever was thrown with these. */
  fork(name: string): Dice;
}

const shareSteps = 2 ** 32;

/** The dice of a seed, which may be any text. */
export function createDice(seed: string): Dice {
  const random = createRandom(createHash('sha256').update(seed).digest().readUInt32BE());
  const { below, pick } = random;
  return {
    share: () => below(shareSteps) / shareSteps,
    below,
    upTo: (most) => 1 + below(most),
    oneIn: (times) => below(times) === 0,
    pick,
    fork: (name) => createDice(`${seed}/${name}`),
  };
}
