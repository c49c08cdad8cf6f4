import type { Event, EventType, NewEvent } from '../../domain/event.ts';

/** An event as its line stores it. The position of the line gives its position. */
export interface LinedEvent extends Omit<Event, 'position'> {
  /** The position of the caller's previous event; 0 for the first. */
  readonly previous: number;
}

/** The optional members of an event, in the order of the line. */
const details = ['filingNo', 'escrowId', 'state', 'keyId', 'month', 'percent', 'webhookId'] as const;

/** Writes an event as space-separated words: five, then `name=value` for each detail. No word contains a space. */
export function lineOf(event: NewEvent, sequence: number, previous: number): string {
  let line = `${event.callerId} ${sequence} ${previous} ${event.type} ${event.atMs}`;
  for (const name of details) if (event[name] !== undefined) line += ` ${name}=${event[name]}`;
  return line;
}

/** Parses a line of `lineOf`. */
export function readLine(line: string): LinedEvent {
  const [callerId, sequence, previous, type, atMs, ...words] = line.split(' ');
  const found = Object.fromEntries(words.map((word) => word.split('=')));
  return {
    ...found,
    ...(found.percent !== undefined && { percent: Number(found.percent) }),
    callerId: Number(callerId),
    sequence: Number(sequence),
    previous: Number(previous),
    type: type as EventType,
    atMs: Number(atMs),
  };
}
