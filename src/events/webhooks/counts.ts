/** Counts by id, from 0. An id whose count is 0 takes no memory. */
export interface Counts {
  of(id: number): number;
  add(id: number, by: number): void;
}

export function createCounts(): Counts {
  const counts = new Map<number, number>();
  const of = (id: number) => counts.get(id) ?? 0;
  return {
    of,
    add: (id, by) => {
      const count = of(id) + by;
      if (count === 0) counts.delete(id);
      else counts.set(id, count);
    },
  };
}
