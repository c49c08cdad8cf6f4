import { createHash } from 'node:crypto';
import { createRandom } from '../test/support/random.ts';

/** A random generator, determined by its seed. */
export interface Dice {
  /** A number from 0 to below 1. */
  share(): number;
  /** An integer from 0 to below `bound`. */
  below(bound: number): number;
  /** An integer from 1 to `most`. */
  upTo(most: number): number;
  /** True with a probability of 1 in `times`. */
  oneIn(times: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** An independent generator. It depends only on the seed and the name, not on earlier draws. */
  fork(name: string): Dice;
}

const shareSteps = 2 ** 32;

/** Creates the generator of a seed, which may be any text. */
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
