import { createHash } from 'node:crypto';

/** All that happened, in order. */
export interface Trace {
  /** Notes what happened to a subject: an order, a session, or the world. */
  note(subject: string, text: string): void;
  /** Two names of one subject. */
  alias(name: string, other: string): void;
  /** A digest of the trace. */
  digest(): string;
  /** The last events of a subject under all its names, and what struck the whole world meanwhile. */
  lastOf(subject: string, count: number): string[];
}

/** The subject of what concerns all. */
export const everybody = 'world';

interface Event {
  readonly atMs: number;
  readonly subject: string;
  readonly text: string;
}

/** Starts with nothing; `nowMs` is noted with each event. */
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
