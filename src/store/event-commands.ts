import type { Event } from '../domain/event.ts';

/** Events of a page, at most. */
export const eventPageMax = 100;

/** An event with the name of its caller. */
export interface EventWithCaller extends Event {
  readonly caller: string;
}

/** A page of events, oldest first. */
export interface EventPage {
  readonly events: readonly EventWithCaller[];
  /** The cursor of the next page: the last event of this one, or the newest event if the page is empty. */
  readonly next: number;
}

/** Where a page of events begins. */
export interface EventsFrom {
  /** The cursor before its first event. */
  readonly after: number | undefined;
  /**
   * The earliest time of its first event, Unix milliseconds, if there is no cursor. If the clock was set back, events of that
   * period may be before the page.
   */
  readonly sinceMs?: number | undefined;
}

/** The event feed. Each event is written in the transaction of its change. */
export interface EventCommands {
  /**
   * Returns up to `eventPageMax` events of a caller after a sequence. If `after` is undefined, it begins with the first event
   * since `sinceMs`, or else with the oldest one. Fails with EVENTS_EXPIRED if events after the cursor have expired, and with
   * VALIDATION_FAILED if it is greater than all.
   */
  ReadEvents(command: EventsFrom & { readonly callerId: number }): EventPage;
  /** Returns events of all callers, likewise. `after` and `next` are positions. */
  ReadAllEvents(command: EventsFrom): EventPage;
  /**
   * Writes an event for each FROZEN order whose hold ends within `holdWarningS` of `nowMs`, once per end that the provider
   * reports. Returns their number, `limit` at most.
   */
  WarnOfEndingHolds(command: { readonly nowMs: number; readonly limit: number }): number;
}
