import type { Event, EventType, NewEvent } from '../../domain/event.ts';

/** An event as its line in the log tells it, but for its position, which its place tells. */
export interface LinedEvent extends Omit<Event, 'position'> {
  /** The position of the event of the same caller before it; 0 for the first. */
  readonly previous: number;
}

/** What an event tells beside its type and time, in the order of the lines. */
const details = ['filingNo', 'escrowId', 'state', 'keyId', 'month', 'percent', 'webhookId'] as const;

/** Writes an event: five words, and behind them one for each detail that it has. None has a space. */
export function lineOf(event: NewEvent, sequence: number, previous: number): string {
  let line = `${event.callerId} ${sequence} ${previous} ${event.type} ${event.atMs}`;
  for (const name of details) if (event[name] !== undefined) line += ` ${name}=${event[name]}`;
  return line;
}

/** Reads what `lineOf` wrote. */
export function readLine(line: string): LinedEvent {
  const [callerId, sequence, previous, type, atMs, ...words] = line.split(' ');
  const told = Object.fromEntries(words.map((word) => word.split('=')));
  return {
    ...told,
    ...(told.percent !== undefined && { percent: Number(told.percent) }),
    callerId: Number(callerId),
    sequence: Number(sequence),
    previous: Number(previous),
    type: type as EventType,
    atMs: Number(atMs),
  };
}
