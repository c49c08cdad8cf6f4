import { createHash } from 'node:crypto';

/** The events of a run, in order. */
export interface Trace {
  /** Adds an event of a subject: an order, a session, or the world. */
  note(subject: string, text: string): void;
  /** Makes two names refer to one subject. */
  alias(name: string, other: string): void;
  /** Returns a digest of all events. */
  digest(): string;
  /** Returns the last events of a subject under all its names, including the events of the world since its first one. */
  lastOf(subject: string, count: number): string[];
}

/** The subject of events that concern all subjects. */
export const everybody = 'world';

interface Event {
  readonly atMs: number;
  readonly subject: string;
  readonly text: string;
}

/** Creates an empty trace. `nowMs` returns the time of each event. */
export function createTrace(nowMs: () => number): Trace {
  const events: Event[] = [];
  const names = new Map<string, Set<string>>();
  const sum = createHash('sha256');
  const write = ({ atMs, subject, text }: Event) => `${(atMs / 1000).toFixed(3)} ${subject}: ${text}`;
  const namesOf = (subject: string) => names.get(subject) ?? new Set([subject]);

  return {
    note: (subject, text) => {
      const event = { atMs: nowMs(), subject, text };
      events.push(event);
      sum.update(write(event)).update('\n');
    },
    alias: (name, other) => {
      const all = new Set([...namesOf(name), ...namesOf(other)]);
      for (const each of all) names.set(each, all);
    },
    digest: () => sum.copy().digest('hex'),
    lastOf: (subject, count) => {
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
