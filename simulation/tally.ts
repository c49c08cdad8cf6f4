/** Counts what happened, by its name. */
export interface Tally {
  count(name: string): void;
  of(name: string): number;
  /** All names that begin so, without the beginning, and their counts. */
  under(prefix: string): Record<string, number>;
}

/** Counts from nothing. */
export function createTally(): Tally {
  const counts = new Map<string, number>();
  const of = (name: string) => counts.get(name) ?? 0;
  return {
    count: (name) => {
      counts.set(name, of(name) + 1);
    },
    of,
    under: (prefix) => {
      const found = [...counts].filter(([name]) => name.startsWith(prefix));
      return Object.fromEntries(found.map(([name, count]) => [name.slice(prefix.length), count]).sort());
    },
  };
}
