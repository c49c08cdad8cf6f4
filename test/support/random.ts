/** Random choices that a seed repeats. */
export interface Random {
  readonly seed: number;
  /** 0 to below `bound`. */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
  /** A text of `length` of these characters. */
  text(characters: string, length: number): string;
}

/** Makes random choices from ARTSEAL_TEST_SEED, or from a new seed, which a failure should show. */
export function createRandom(
  seed: number = Number(process.env.ARTSEAL_TEST_SEED ?? Date.now() % 1_000_000_007),
): Random {
  let state = seed >>> 0;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number) => Math.floor(next() * bound);
  return {
    seed,
    below,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    text: (characters, length) => Array.from({ length }, () => characters[below(characters.length)]).join(''),
  };
}
