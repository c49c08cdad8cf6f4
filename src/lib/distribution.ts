/** How often values fell between bounds, and what they come to together; it only grows. */
export interface DistributionData {
  /** Upper bounds, inclusive, ascending. */
  readonly bounds: readonly number[];
  /** How many values fell up to each bound and above the one before; behind the last, how many are above them all. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/**
 * Counts values by their size. It is made for the path of every call: a value costs some ten nanoseconds, which is a small
 * part of what a library of metrics takes to find its labels.
 */
export interface Distribution {
  add(value: number): void;
  /** Does work and adds the seconds that it took; those of work that throws are not added. */
  time<T>(work: () => T): T;
  /** A copy of what was counted so far. */
  data(): DistributionData;
}

/** A distribution over these bounds, which ascend. */
export function createDistribution(bounds: readonly number[]): Distribution {
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
    time: (work) => {
      const startedMs = performance.now();
      const result = work();
      add((performance.now() - startedMs) / 1_000);
      return result;
    },
    data: () => ({ bounds, counts: counts.slice(), sum }),
  };
}

/** Bounds of how long something takes that waits for a disk or another machine, in seconds. */
export const durationBoundsS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
