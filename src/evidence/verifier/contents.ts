import { instant } from './dating.ts';
import { createKeptRecords } from './erasures.ts';
import { VerificationFailure } from './failure.ts';
import { type KeyLifetime, lifetimesAfter } from './key-lifetimes.ts';
import { filingNumber, type Leaf, type LogEventLeaf, type RecordLeaf } from './leaf.ts';

/**
 * Whether the leaves of a log agree with each other, in the order of the log:
 * - The filings of a year have the numbers 1, 2, 3 and so on. Numbers that are missing are told by a leaf NUMBERS_SKIPPED,
 *   before or after; none is given out twice, and none that was said to be left out.
 * - What follows a filing has the sequences 2, 3 and so on, behind it. AuditEntries of the log have 1, 2, 3 and so on.
 * - Times never go back, but for the leaves before LOG_BEGUN, which tells how many they are, and at CLOCK_ACCEPTED.
 * - A filing has a number of the year that its time is in, somewhere on earth.
 * - RECORDS_ERASED erases records that are five years old, each once.
 */

/** How far the leaves of a log were read: all that is needed to go on. Two bytes a number and four a leaf. */
export interface ContentsState {
  readonly size: number;
  readonly acts: number;
  readonly transfers: number;
  readonly newestS: number | undefined;
  /** The first leaf that is older than the one before it, as long as LOG_BEGUN has not come. */
  readonly firstBack: number | undefined;
  readonly isBegun: boolean;
  readonly years: ReadonlyMap<number, YearState>;
  readonly skips: readonly Skip[];
  readonly told: readonly LoggedEvent[];
  readonly keys: readonly KeyLifetime[];
  /** By leaf: the time of a record that is not erased, 0 for all others. */
  readonly times: Uint32Array<ArrayBuffer>;
}

/** The filings of a year. */
export interface YearState {
  readonly filings: number;
  /** The last number that was given out. */
  readonly last: number;
  /** By number: the sequence of the last record of the filing, 0 where there is none. May be longer than needed. */
  readonly sequences: Uint16Array;
  /** Numbers that were passed over. */
  readonly gaps: readonly Omit<Skip, 'year'>[];
}

/** Numbers of a year that are left out: those behind `after`, up to `through`. */
export interface Skip {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** An act that an auditor is to hear of. */
export interface LoggedEvent {
  readonly index: number;
  readonly act: string;
  readonly timeS: number;
  readonly detail: string;
}

/** The most years, gaps and acts that are kept: a log that has more is none of this registry. */
const yearsMax = 100;
const gapsMax = 10_000;
const toldMax = 10_000;

/** AuditEntries that may be many over the years, and take nothing back that the log says otherwise. */
const manyOf: ReadonlySet<string> = new Set(['RECORDS_ERASED', 'KEY_ADDED', 'KEY_RETIRED']);

/** The highest sequence of a record that can be counted. */
const sequenceMax = 0xffff;

/** The last number of a year. */
const numberMax = 999_999;

/** The state before the first leaf. */
export const noContents: ContentsState = {
  ...{ size: 0, acts: 0, transfers: 0, newestS: undefined, firstBack: undefined, isBegun: false },
  ...{ years: new Map(), skips: [], told: [], keys: [], times: new Uint32Array() },
};

/** Reads the leaves of a log one after another. All throw VerificationFailure FORKED where they disagree. */
export interface Contents {
  add(leaf: Leaf): void;
  /** Looks at what can only be said once all leaves are read. */
  finish(): void;
  /** The time of the newest leaf, Unix seconds: no leaf since the last CLOCK_ACCEPTED is dated after it. */
  newestS(): number | undefined;
  state(): ContentsState;
}

/** Goes on from a state, which stays as it is. */
export function createContents(from: ContentsState): Contents {
  let { size, acts, transfers, newestS, firstBack, isBegun, keys } = from;
  const years = new Map(Array.from(from.years, ([year, state]) => [year, copyOf(state)]));
  const skips = [...from.skips];
  const told = [...from.told];
  const kept = createKeptRecords(from.times);

  const contradiction = (what: string) =>
    new VerificationFailure('FORKED', `leaf ${size} of the log ${what}`);

  function addTime({ timeS }: Leaf, mayGoBack: boolean): void {
    if (newestS !== undefined && timeS < newestS && !mayGoBack) {
      if (isBegun) throw contradiction(`is from ${instant(timeS)}, which is before the leaf in front of it`);
      firstBack ??= size;
    }
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
        throw contradiction(`is record ${sequence} of ${number}, behind record ${before}`);
      }
      transfers += 1;
    }
    year.sequences[place] = sequence;
  }

  function addNumber(year: Year, name: number, place: number, number: string): void {
    const isSkipped = skips.some((skip) => skip.year === name && place > skip.after && place <= skip.through);
    if (place === 0) throw contradiction(`has the number ${number}, and numbers begin with 1`);
    if (isSkipped) throw contradiction(`has the number ${number}, which was said to be left out`);
    if (place < year.last) throw contradiction(`has the number ${number}, behind a higher one`);
    if (place > year.last + 1) {
      if (year.gaps.length === gapsMax) throw contradiction(`is behind more than ${gapsMax} gaps of numbers`);
      year.gaps.push({ after: year.last, through: place - 1 });
    }
    year.last = place;
    year.filings += 1;
    if (place >= year.sequences.length) year.sequences = grown(year.sequences, place);
  }

  function yearOf(name: number): Year {
    const known = years.get(name);
    if (known !== undefined) return known;
    if (years.size === yearsMax) throw contradiction(`is of more than ${yearsMax} years`);
    const year: Year = { filings: 0, last: 0, sequences: new Uint16Array(1024), gaps: [] };
    years.set(name, year);
    return year;
  }

  function addLogEvent(leaf: LogEventLeaf): void {
    const { act, sequence, timeS, detail } = leaf;
    if (sequence !== acts + 1) throw contradiction(`is act ${sequence} of the log, behind act ${acts}`);
    acts = sequence;
    tell({ index: size, act, timeS, detail: JSON.stringify(Object.fromEntries(detail)) });
    if (act === 'LOG_BEGUN') begin(leaf);
    if (act === 'NUMBERS_SKIPPED') addSkip(leaf);
    const fault = act === 'RECORDS_ERASED' ? kept.erase(leaf) : undefined;
    if (fault !== undefined) throw contradiction(fault);
    keys = lifetimesAfter(keys, leaf, size);
  }

  /** Keeps an act to be told. Of those that allow nothing a log may have any number; the first of them stand for all. */
  function tell(act: LoggedEvent): void {
    const isOneOfMany = manyOf.has(act.act);
    if (isOneOfMany && told.length >= toldMax) return;
    if (told.length >= 2 * toldMax) throw contradiction(`is behind more than ${toldMax} acts`);
    told.push(act);
  }

  function begin({ detail }: LogEventLeaf): void {
    if (isBegun) throw contradiction('says that the log was begun, a second time');
    if (detail.get('adopted') !== size) {
      throw contradiction(`says that ${detail.get('adopted')} records are from before the log was begun`);
    }
    isBegun = true;
    firstBack = undefined;
  }

  function addSkip({ detail }: LogEventLeaf): void {
    const [year, after, through] = ['year', 'after', 'through'].map((name) => detail.get(name));
    if (
      typeof year !== 'number' ||
      typeof after !== 'number' ||
      typeof through !== 'number' ||
      through > numberMax
    ) {
      throw contradiction('does not say which numbers are left out');
    }
    const given =
      years.get(year)?.sequences.subarray(Math.max(after, 0) + 1, through + 1) ?? new Uint16Array();
    const at = given.findIndex((sequence) => sequence > 0);
    if (at >= 0)
      throw contradiction(`says that number ${after + 1 + at} of ${year} is left out, which was given out`);
    skips.push({ year, after, through });
  }

  return {
    add: (leaf) => {
      const isLogEvent = leaf.kind === 'ACT';
      // Leaves before LOG_BEGUN are in whatever order of times; it and an accepted clock are what later ones are held against.
      addTime(leaf, isLogEvent && (leaf.act === 'CLOCK_ACCEPTED' || leaf.act === 'LOG_BEGUN'));
      if (isLogEvent) addLogEvent(leaf);
      else addRecord(leaf);
      kept.add(isLogEvent ? undefined : leaf.timeS);
      size += 1;
    },
    finish: () => {
      if (size > 0 && !isBegun)
        throw contradiction('is behind the last one, and none says that the log was begun');
      for (const [year, { gaps }] of years) {
        const gap = gaps.find((candidate) => !isExplained(year, candidate, skips));
        if (gap !== undefined) {
          throw new VerificationFailure(
            'FORKED',
            `the numbers ${gap.after + 1} to ${gap.through} of ${year} are missing, and no leaf says that they are left out`,
          );
        }
      }
    },
    newestS: () => newestS,
    state: () => ({
      ...{ size, acts, transfers, newestS, firstBack, isBegun, skips: [...skips], told: [...told] },
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

/** An array that has that place as well; twice as long as before, so that growing costs little a number. */
function grown(sequences: Uint16Array, place: number): Uint16Array<ArrayBuffer> {
  const longer = new Uint16Array(Math.min(numberMax + 1, Math.max(2 * sequences.length, place + 1)));
  longer.set(sequences);
  return longer;
}

/** Whether all numbers of a gap are said to be left out, by one leaf or several. */
function isExplained(year: number, { after, through }: Omit<Skip, 'year'>, skips: readonly Skip[]): boolean {
  const own = skips.filter((skip) => skip.year === year).toSorted((one, other) => one.after - other.after);
  let upTo = after;
  for (const skip of own) if (skip.after <= upTo) upTo = Math.max(upTo, skip.through);
  return upTo >= through;
}

/** The offsets of the westernmost and the easternmost zone, in seconds. */
const zonesS = [-12 * 3600, 14 * 3600];

/** Whether a moment is in that year in some time zone. */
function mayBeYear(year: number, timeS: number): boolean {
  return zonesS.some((offsetS) => new Date((timeS + offsetS) * 1000).getUTCFullYear() === year);
}
