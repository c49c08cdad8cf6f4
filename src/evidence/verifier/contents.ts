import { forked } from '../formats/failure.ts';
import { instant } from './dating.ts';
import { createKeptRecords } from './erasures.ts';
import { type KeyLifetime, lifetimesAfter } from './key-lifetimes.ts';
import { filingNumber, type Leaf, type LogEventLeaf, type RecordLeaf } from './leaf.ts';

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
export interface ContentsState {
  readonly size: number;
  readonly logEventCount: number;
  readonly transfers: number;
  readonly newestS: number | undefined;
  readonly isBegun: boolean;
  readonly years: ReadonlyMap<number, YearState>;
  readonly skips: readonly Skip[];
  /** The log events, without the later ones of those that may be many. */
  readonly logEvents: readonly LoggedEvent[];
  readonly keys: readonly KeyLifetime[];
  /** By leaf: the time of a record that was not erased, 0 for all others. */
  readonly times: Uint32Array<ArrayBuffer>;
}

/** The filings of a year. */
export interface YearState {
  readonly filings: number;
  /** The last number that was assigned. */
  readonly last: number;
  /** By number: the sequence of the filing's last record, 0 if there is none. May be longer than needed. */
  readonly sequences: Uint16Array;
  /** Numbers that are missing. */
  readonly gaps: readonly Omit<Skip, 'year'>[];
}

/** Skipped numbers of a year: from `after` + 1 to `through`. */
export interface Skip {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** A log event in the report. */
export interface LoggedEvent {
  readonly index: number;
  readonly event: string;
  readonly timeS: number;
  /** JSON. */
  readonly detail: string;
}

/** Years, gaps and log events that are kept at most: no registry makes more. */
const yearsMax = 100;
const gapsMax = 10_000;
const logEventsMax = 10_000;

/** Log events that may be many over the years, and allow no exception from the rules. */
const manyOf: ReadonlySet<string> = new Set(['RECORDS_ERASED', 'KEY_ADDED', 'KEY_RETIRED']);

/** The highest sequence of a record. */
const sequenceMax = 0xffff;

/** The last number of a year. */
const numberMax = 999_999;

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
  let { size, logEventCount, transfers, newestS, isBegun, keys } = from;
  const years = new Map(Array.from(from.years, ([year, state]) => [year, copyOf(state)]));
  const skips = [...from.skips];
  const logEvents = [...from.logEvents];
  const kept = createKeptRecords(from.times);

  const contradiction = (what: string) => forked(`leaf ${size} of the log ${what}`);

  function addTime({ timeS }: Leaf, mayGoBack: boolean): void {
    if (isBegun && newestS !== undefined && timeS < newestS && !mayGoBack)
      throw contradiction(`is from ${instant(timeS)}, earlier than the leaf before it`);
    newestS = timeS;
  }

  function addRecord({ kind, number, sequence, timeS }: RecordLeaf): void {
    const [, yearText, placeText] = filingNumber.exec(number) ?? [];
    const year = yearOf(Number(yearText));
    const place = Number(placeText);
    const before = year.sequences[place] ?? 0;
    if (kind === 'FILING') {
      if (before > 0) throw contradiction(`has the number ${number} for a second filing`);
      addNumber(year, Number(yearText), place, number);
      if (!mayBeYear(Number(yearText), timeS)) {
        throw contradiction(`has the number ${number}, and was filed ${instant(timeS)}, in another year`);
      }
    } else {
      if (before === 0) throw contradiction(`is a ${kind} of ${number}, which was not filed before it`);
      if (sequence !== before + 1 || sequence > sequenceMax) {
        throw contradiction(`is record ${sequence} of ${number}, after record ${before}`);
      }
      transfers += 1;
    }
    year.sequences[place] = sequence;
  }

  function addNumber(year: Year, name: number, place: number, number: string): void {
    const isSkipped = skips.some((skip) => skip.year === name && place > skip.after && place <= skip.through);
    if (place === 0) throw contradiction(`has the number ${number}, and numbers begin with 1`);
    if (isSkipped) throw contradiction(`has the number ${number}, which was skipped`);
    if (place < year.last) throw contradiction(`has the number ${number}, after a higher one`);
    if (place > year.last + 1) {
      if (year.gaps.length === gapsMax)
        throw contradiction(`comes after more than ${gapsMax} gaps of numbers`);
      year.gaps.push({ after: year.last, through: place - 1 });
    }
    year.last = place;
    year.filings += 1;
    if (place >= year.sequences.length) year.sequences = grown(year.sequences, place);
  }

  function yearOf(name: number): Year {
    const known = years.get(name);
    if (known !== undefined) return known;
    if (years.size === yearsMax) throw contradiction(`has a number of another year, after ${yearsMax} years`);
    const year: Year = { filings: 0, last: 0, sequences: new Uint16Array(1024), gaps: [] };
    years.set(name, year);
    return year;
  }

  function addLogEvent(leaf: LogEventLeaf): void {
    const { event, sequence, timeS, detail } = leaf;
    if (sequence !== logEventCount + 1)
      throw contradiction(`is log event ${sequence}, after log event ${logEventCount}`);
    logEventCount = sequence;
    keepLogEvent({ index: size, event, timeS, detail: JSON.stringify(Object.fromEntries(detail)) });
    if (event === 'LOG_BEGUN') begin(leaf);
    if (event === 'NUMBERS_SKIPPED') addSkip(leaf);
    const fault = event === 'RECORDS_ERASED' ? kept.erase(leaf) : undefined;
    if (fault !== undefined) throw contradiction(fault);
    keys = lifetimesAfter(keys, leaf, size);
  }

  /** Keeps a log event for the report. Those that may be many have half of the room; further ones are left out. */
  function keepLogEvent(logEvent: LoggedEvent): void {
    if (manyOf.has(logEvent.event) && logEvents.length >= logEventsMax) return;
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

  function addSkip({ detail }: LogEventLeaf): void {
    const [year, after, through] = ['year', 'after', 'through'].map((name) => detail.get(name));
    if (
      typeof year !== 'number' ||
      typeof after !== 'number' ||
      typeof through !== 'number' ||
      through > numberMax
    ) {
      throw contradiction('does not say which numbers are skipped');
    }
    const given =
      years.get(year)?.sequences.subarray(Math.max(after, 0) + 1, through + 1) ?? new Uint16Array();
    const at = given.findIndex((sequence) => sequence > 0);
    if (at >= 0) throw contradiction(`skips number ${after + 1 + at} of ${year}, which was assigned`);
    skips.push({ year, after, through });
  }

  return {
    add: (leaf) => {
      const isLogEvent = leaf.kind === 'LOG_EVENT';
      addTime(leaf, isLogEvent && (leaf.event === 'CLOCK_ACCEPTED' || leaf.event === 'LOG_BEGUN'));
      if (isLogEvent) addLogEvent(leaf);
      else addRecord(leaf);
      kept.add(isLogEvent ? undefined : leaf.timeS);
      size += 1;
    },
    finish: () => {
      if (size > 0 && !isBegun) throw forked('no leaf of the log says that it was begun');
      for (const [year, { gaps }] of years) {
        const gap = gaps.find((candidate) => !isExplained(year, candidate, skips));
        if (gap !== undefined) {
          throw forked(
            `the numbers ${gap.after + 1} to ${gap.through} of ${year} are missing, and no leaf says that they were skipped`,
          );
        }
      }
    },
    newestS: () => newestS,
    state: () => ({
      ...{ size, logEventCount, transfers, newestS, isBegun, skips: [...skips], logEvents: [...logEvents] },
      ...{ keys, times: kept.times() },
      years: new Map(Array.from(years, ([year, state]) => [year, copyOf(state)])),
    }),
  };
}

type Year = { -readonly [Name in Exclude<keyof YearState, 'gaps'>]: YearState[Name] } & {
  gaps: Omit<Skip, 'year'>[];
};

function copyOf({ filings, last, sequences, gaps }: YearState): Year {
  return { filings, last, sequences: sequences.slice(), gaps: [...gaps] };
}

/** Returns a longer array with room for an index. It doubles, so that growing costs little per number. */
function grown(sequences: Uint16Array, place: number): Uint16Array<ArrayBuffer> {
  const longer = new Uint16Array(Math.min(numberMax + 1, Math.max(2 * sequences.length, place + 1)));
  longer.set(sequences);
  return longer;
}

/** Whether leaves skip all numbers of a gap. */
function isExplained(year: number, { after, through }: Omit<Skip, 'year'>, skips: readonly Skip[]): boolean {
  const own = skips.filter((skip) => skip.year === year).toSorted((one, other) => one.after - other.after);
  let upTo = after;
  for (const skip of own) if (skip.after <= upTo) upTo = Math.max(upTo, skip.through);
  return upTo >= through;
}

/** The offsets of the westernmost and the easternmost zone, in seconds. */
const zonesS = [-12 * 3600, 14 * 3600];

/** Whether a time is in that year in some time zone. */
function mayBeYear(year: number, timeS: number): boolean {
  return zonesS.some((offsetS) => new Date((timeS + offsetS) * 1000).getUTCFullYear() === year);
}
