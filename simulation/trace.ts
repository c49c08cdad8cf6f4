import { createHash } from 'node:crypto';

/** The events of a run, in order. */
export type Trace = ReturnType<typeof createTrace>;

/** The subject of events that concern all subjects. */
export const everybody = 'world';

interface Event {
  readonly atMs: number;
  readonly subject: string;
  readonly text: string;
}

/** Creates an empty trace. `nowMs` returns the time of each event. */
export function createTrace(nowMs: () => number) {
  const events: Event[] = [];
  const names = new Map<string, Set<string>>();
  const sum = createHash('sha256');
  const write = ({ atMs, subject, text }: Event) => `${(atMs / 1000).toFixed(3)} ${subject}: ${text}`;
  const namesOf = (subject: string) => names.get(subject) ?? new Set([subject]);

  return {
    /** Adds an event of a subject: an order, a session, or the world. */
    note: (subject: string, text: string) => {
      const event = { atMs: nowMs(), subject, text };
      events.push(event);
      sum.update(write(event)).update('\n');
    },
    /** Makes two names refer to one subject. */
    alias: (name: string, other: string) => {
      const all = new Set([...namesOf(name), ...namesOf(other)]);
      for (const each of all) names.set(each, all);
    },
    /** Returns a digest of all events. */
    digest: () => sum.copy().digest('hex'),
    /** Returns the last events of a subject under all its names, including the events of the world since its first one. */
    lastOf: (subject: string, count: number) => {
      const concerned = namesOf(subject);
      const first = events.findIndex((event) => concerned.has(event.subject));
      return events
        .slice(Math.max(first, 0))
        .filter((event) => concerned.has(event.subject) || event.subject === everybody)
        .slice(-count)
        .map(write);
    },
  };
}

/** Counts events by name. */
export type Tally = ReturnType<typeof createTally>;

/** Creates a tally without counts. */
export function createTally() {
  const counts = new Map<string, number>();
  const of = (name: string) => counts.get(name) ?? 0;
  return {
    count: (name: string) => {
      counts.set(name, of(name) + 1);
    },
    of,
    /** Returns the counts of all names with a prefix, by the rest of the name. */
    under: (prefix: string): Record<string, number> => {
      const found = [...counts].filter(([name]) => name.startsWith(prefix));
      return Object.fromEntries(found.map(([name, count]) => [name.slice(prefix.length), count]).sort());
    },
  };
}
