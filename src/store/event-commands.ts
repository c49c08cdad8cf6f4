import type { Event } from '../domain/event.ts';

/** Events that are read at a time, at most. */
export const eventPageMax = 100;

/** An event with the name of its caller. */
export interface EventWithCaller extends Event {
  readonly caller: string;
}

/** Some events, oldest first. */
export interface EventPage {
  readonly events: readonly EventWithCaller[];
  /** Where to go on: behind the last of them, or, without any, where it began. */
  readonly next: number;
}

/** Events: what happened to what callers have. Each is written in the transaction that it tells of. */
export interface EventCommands {
  /**
   * Events of a caller behind a sequence, `eventPageMax` at most; from the oldest that is kept where `after` is undefined. Refused
   * with EVENTS_EXPIRED where some behind it are gone, and with VALIDATION_FAILED where it is ahead of all.
   */
  ReadEvents: {
    readonly takes: { readonly callerId: number; readonly after: number | undefined };
    readonly gives: EventPage;
  };
  /** The same of all callers; `after` and `next` are positions. */
  ReadAllEvents: {
    readonly takes: { readonly after: number | undefined };
    readonly gives: EventPage;
  };
  /**
   * Writes an event for each FROZEN order whose hold ends within `holdWarningS` of `nowMs`, once for each end that the provider
   * says; how many. `limit` at most.
   */
  TellEndingHolds: {
    readonly takes: { readonly nowMs: number; readonly limit: number };
    readonly gives: number;
  };
}
