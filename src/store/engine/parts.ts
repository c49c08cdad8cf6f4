import type { Event, NewEvent } from '../../domain/event.ts';
import type { LogEventDetail, LogEventKind, RecordLeaf } from '../../domain/leaf.ts';
import type { CapUse } from '../metric-commands.ts';
import type { Incidents } from './failure.ts';
import type { LogReads } from './log-index.ts';
import type { RecordCheck } from './record-check.ts';
import type { Database } from './statement.ts';

/** The same functions, to be awaited. */
export type Asynchronous<T> = {
  readonly [Name in keyof T]: T[Name] extends (...args: infer Args) => infer Returned
    ? (...args: Args) => Promise<Awaited<Returned>>
    : never;
};

/** The place of a leaf, which its record stores. */
export interface LeafPlace {
  readonly salt: Buffer;
  readonly leafIndex: number;
}

/** The record that a leaf is about. */
export type NewLeaf = Pick<RecordLeaf, 'kind' | 'number' | 'sequence'> & {
  /** Unix seconds. A leaf is never older than the one before it. */
  readonly atS: number;
  /** The bytes of its salt. */
  readonly saltBytes: number;
  /** Makes the commitment of the leaf. */
  readonly commitment: (salt: Buffer) => string;
};

/** The evidence log, inside the transaction of a command. */
export interface Log {
  /** Appends the leaf of a record. The caller stores the result with the record. */
  appendRecord(record: NewLeaf): Promise<LeafPlace>;
  /** Appends a log event. */
  appendLogEvent(kind: LogEventKind, atS: number, detail: LogEventDetail): Promise<void>;
  /** When the newest leaf was made, Unix seconds; undefined if there is none. */
  newestS(): Promise<number | undefined>;
  /** Reads the log. An engine that has to read rows first calls `work` again with them. */
  read<T>(work: (log: LogReads) => T): Promise<T>;
}

/**
 * The time of the newest filing, or the time that an operator accepted since, Unix seconds; undefined if there is neither. Other
 * records are stored with any clock, so their times may be wrong.
 */
export interface TrustedClock {
  read(): number | undefined;
  /** By how many seconds the business clock is ahead of the real one. */
  aheadS(): number;
  /**
   * The time as of which expired rows may be deleted. The business clock's `nowS` may be years wrong, so it is at most the
   * business time at the trusted time, if there is one.
   */
  notAfter(nowS: number): number;
}

/** Collects the events of a transaction, which are written with it. */
export interface Outbox {
  add(event: NewEvent): void;
}

/** Events after a sequence. */
export interface EventsAfter {
  readonly events: readonly Event[];
  /** Whether no event between the sequence and these has expired. */
  readonly isWhole: boolean;
}

/** The events that are kept. */
export interface EventReads {
  /** Returns the first kept events of a caller after a sequence, oldest first: `limit`, or somewhat fewer. */
  after(callerId: number, sequence: number, limit: number): EventsAfter;
  /** The sequence before a caller's first event since a time, Unix milliseconds. */
  before(callerId: number, sinceMs: number): number;
  /** Returns one event; undefined if it has expired or does not exist. */
  at(callerId: number, sequence: number): Event | undefined;
  /** The sequence of a caller's newest event, or the end of a restore's gap; 0 if there is none. */
  newest(callerId: number): number;
  /** The sequence of a caller's oldest kept event; undefined if there is none. */
  oldest(callerId: number): number | undefined;
  /** Returns the first kept events of all callers after a position, oldest first, `limit` at most. */
  afterPosition(position: number, limit: number): readonly Event[];
  /** The position before the first event since a time, Unix milliseconds. */
  positionBefore(sinceMs: number): number;
  /** The position of the newest event of all callers; 0 if there is none. */
  newestPosition(): number;
  /** The position of the oldest kept event; undefined if there is none. */
  oldestPosition(): number | undefined;
  /** Healthy endpoints whose callers have events after their cursors, `limit` at most. */
  lagging(limit: number): readonly { readonly callerId: number; readonly cursor: number }[];
}

/** A filing as far as a list needs it. */
export interface ListedFiling {
  readonly id: number;
  readonly filingNo: string;
  readonly leafIndex: number;
  /** Null unless it was erased. */
  readonly erasedAtS: number | null;
}

/** The filings of callers. */
export interface FilingReads {
  /** How many filings a caller has of a year. */
  count(of: { readonly callerId: number; readonly year: number }): Promise<number>;
  /** The filings of a caller, of one year or of all, optionally after one of them, newest number first. Throws RecordDamaged. */
  newestFirst(owner: number, year: number | undefined, from: number | undefined): AsyncIterable<ListedFiling>;
  /** The platforms that have used the greatest share of their cap on filings of a year, `limit` at most. */
  caps(year: number, limit: number): Promise<readonly CapUse[]>;
}

/** What erasure needs of the database. */
export interface Erasure {
  /** Makes the database overwrite what the transaction erases. */
  begin(): Promise<void>;
  /**
   * The retention period before the earlier of `nowS` and the time of the database, each with `aheadS` added, Unix seconds.
   */
  endOfRetention(nowS: number, aheadS: number): Promise<number>;
}

/** What an engine gives the handlers. */
export interface EngineParts {
  readonly database: Database;
  /** The secret of the deployment. */
  readonly secret: Uint8Array;
  readonly incidents: Incidents;
  readonly log: Log;
  readonly check: Asynchronous<RecordCheck>;
  readonly clock: Asynchronous<TrustedClock>;
  readonly outbox: Outbox;
  readonly events: Asynchronous<EventReads>;
  readonly filings: FilingReads;
  /** How many calls of a caller were counted in a month. */
  readonly countCalls: (of: { readonly callerId: number; readonly month: string }) => Promise<number>;
  readonly erasure: Erasure;
}
