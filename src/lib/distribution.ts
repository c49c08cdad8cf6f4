/** A histogram: the number of values between bounds, and their sum. */
export interface DistributionData {
  /** Upper bounds, inclusive, ascending. */
  readonly bounds: readonly number[];
  /** The number of values up to each bound and above the one before; the last count is of those above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** See `createDistribution`. */
export type Distribution = ReturnType<typeof createDistribution>;

/** Counts values by their size, over ascending bounds. Adding one takes some ten nanoseconds: every call adds to several. */
export function createDistribution(bounds: readonly number[]) {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  let sum = 0;

  function add(value: number): void {
    let place = 0;
    while (place < bounds.length && value > (bounds[place] as number)) place += 1;
    counts[place] = (counts[place] as number) + 1;
    sum += value;
  }

  return {
    add,
    /** Runs `work` and adds the seconds that it took, unless it throws. */
    time: <T>(work: () => T): T => {
      const startedMs = performance.now();
      const result = work();
      add((performance.now() - startedMs) / 1_000);
      return result;
    },
    /** The same for work that has to be awaited. */
    timed: async <T>(work: () => Promise<T>): Promise<T> => {
      const startedMs = performance.now();
      const result = await work();
      add((performance.now() - startedMs) / 1_000);
      return result;
    },
    /** Returns a copy of the counts. */
    data: (): DistributionData => ({ bounds, counts: counts.slice(), sum }),
  };
}

/** Returns the number of values. */
export function countOf({ counts }: DistributionData): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Bounds in seconds for work that waits for a disk or another machine. */
export const durationBoundsS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
