/** Counts events by name. */
export interface Tally {
  count(name: string): void;
  of(name: string): number;
  /** Returns the counts of all names with a prefix, by the rest of the name. */
  under(prefix: string): Record<string, number>;
}

/** Creates a tally without counts. */
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
