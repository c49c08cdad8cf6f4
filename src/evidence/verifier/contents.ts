import { forked } from '../formats/failure.ts';
import { instant } from './dating.ts';
import { createKeptRecords } from './erasures.ts';
import { createFilingNumbers, type NumbersState } from './filing-numbers.ts';
import { type KeyLifetime, lifetimesAfter } from './key-lifetimes.ts';
import type { Leaf, LogEventLeaf } from './leaf.ts';

/**
 * Checks that the leaves of a log agree with each other, in their order:
 * - The filings of a year have the numbers 1, 2, 3 and so on. A leaf NUMBERS_SKIPPED, anywhere in the log, explains missing
 *   numbers. No number is assigned twice, and no skipped number is assigned.
 * - The later records of a filing have the sequences 2, 3 and so on. Log events have 1, 2, 3 and so on.
 * - Times do not decrease, except before LOG_BEGUN, which states the number of those leaves, and at CLOCK_ACCEPTED.
 * - The number of a filing has the year of its time, in some time zone.
 * - RECORDS_ERASED erases records that are at least five years old, each once.
 */

/** The state after some leaves, from which an audit continues. It takes two bytes per number and four per leaf. */
export interface ContentsState extends NumbersState {
  readonly size: number;
  readonly logEventCount: number;
  readonly newestS: number | undefined;
  readonly isBegun: boolean;
  /** The log events, without later ones of frequent kinds. */
  readonly logEvents: readonly LoggedEvent[];
  readonly keys: readonly KeyLifetime[];
  /** By leaf: the time of a record that was not erased, 0 for all others. */
  readonly times: Uint32Array<ArrayBuffer>;
}

/** A log event in the report. */
export interface LoggedEvent {
  readonly index: number;
  readonly event: string;
  readonly timeS: number;
  /** JSON. */
  readonly detail: string;
}

/** Log events that are kept at most: no registry makes more. */
const logEventsMax = 10_000;

/** Kinds of log events that can be frequent, and allow no exception from the rules. */
const frequent: ReadonlySet<string> = new Set(['RECORDS_ERASED', 'KEY_ADDED', 'KEY_RETIRED']);

/** The state before the first leaf. */
export const noContents: ContentsState = {
  ...{ size: 0, logEventCount: 0, transfers: 0, newestS: undefined, isBegun: false },
  ...{ years: new Map(), skips: [], logEvents: [], keys: [], times: new Uint32Array() },
};

/** Checks the leaves of a log one after another. All throw VerificationFailure FORKED at a contradiction. */
export interface Contents {
  add(leaf: Leaf): void;
  /** Checks what depends on all leaves. */
  finish(): void;
  /** The time of the newest leaf, Unix seconds. No leaf since the last CLOCK_ACCEPTED is later. */
  newestS(): number | undefined;
  state(): ContentsState;
}

/** Continues from a state, which is not changed. */
export function createContents(from: ContentsState): Contents {
  let { size, logEventCount, newestS, isBegun, keys } = from;
  const logEvents = [...from.logEvents];
  const kept = createKeptRecords(from.times);

  const contradiction = (what: string) => forked(`leaf ${size} of the log ${what}`);
  const numbers = createFilingNumbers(from, contradiction);

  function addTime({ timeS }: Leaf, mayGoBack: boolean): void {
    if (isBegun && newestS !== undefined && timeS < newestS && !mayGoBack)
      throw contradiction(`is from ${instant(timeS)}, earlier than the leaf before it`);
    newestS = timeS;
  }

  function addLogEvent(leaf: LogEventLeaf): void {
    const { event, sequence, timeS, detail } = leaf;
    if (sequence !== logEventCount + 1)
      throw contradiction(`is log event ${sequence}, after log event ${logEventCount}`);
    logEventCount = sequence;
    keepLogEvent({ index: size, event, timeS, detail: JSON.stringify(Object.fromEntries(detail)) });
    if (event === 'LOG_BEGUN') begin(leaf);
    if (event === 'NUMBERS_SKIPPED') numbers.skip(leaf);
    const fault = event === 'RECORDS_ERASED' ? kept.erase(leaf) : undefined;
    if (fault !== undefined) throw contradiction(fault);
    keys = lifetimesAfter(keys, leaf, size);
  }

  /** Keeps a log event for the report. Frequent kinds get half of the room; further ones are left out. */
  function keepLogEvent(logEvent: LoggedEvent): void {
    if (frequent.has(logEvent.event) && logEvents.length >= logEventsMax) return;
    if (logEvents.length >= 2 * logEventsMax)
      throw contradiction(`comes after more than ${logEventsMax} log events`);
    logEvents.push(logEvent);
  }

  function begin({ detail }: LogEventLeaf): void {
    if (isBegun) throw contradiction('says a second time that the log was begun');
    if (detail.get('adopted') !== size) {
      throw contradiction(`says that ${detail.get('adopted')} records are from before the log was begun`);
    }
    isBegun = true;
  }

  return {
    add: (leaf) => {
      const isLogEvent = leaf.kind === 'LOG_EVENT';
      addTime(leaf, isLogEvent && (leaf.event === 'CLOCK_ACCEPTED' || leaf.event === 'LOG_BEGUN'));
      if (isLogEvent) addLogEvent(leaf);
      else numbers.add(leaf);
      kept.add(isLogEvent ? undefined : leaf.timeS);
      size += 1;
    },
    finish: () => {
      if (size > 0 && !isBegun) throw forked('no leaf of the log says that it was begun');
      numbers.finish();
    },
    newestS: () => newestS,
    state: () => ({
      ...{ size, logEventCount, newestS, isBegun, logEvents: [...logEvents], keys },
      ...{ ...numbers.state(), times: kept.times() },
    }),
  };
}
