import { forked } from '../formats/failure.ts';
import { filingNumber, type LogEventLeaf, type RecordLeaf } from './read-leaf.ts';
import { instant } from './seen.ts';

/** The numbers and sequences of filings after some leaves. */
export interface NumbersState {
  readonly transfers: number;
  readonly years: ReadonlyMap<number, YearState>;
  readonly skips: readonly Skip[];
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

/** Years and gaps that are kept at most: no registry makes more. */
const yearsMax = 100;
const gapsMax = 10_000;

/** The highest sequence of a record. */
const sequenceMax = 0xffff;

/** The last number of a year. */
const numberMax = 999_999;

/**
 * Checks the numbers and sequences of filings, leaf by leaf. Continues from a state, which is not changed. `contradiction` makes
 * the failure of the current leaf. All throw VerificationFailure FORKED at a contradiction.
 */
export function createFilingNumbers(from: NumbersState, contradiction: (what: string) => Error) {
  let { transfers } = from;
  const years = copyOfAll(from.years);
  const skips = [...from.skips];

  function add({ kind, number, sequence, timeS }: RecordLeaf): void {
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
    const isSkipped = skips.some((one) => one.year === name && place > one.after && place <= one.through);
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

  /** Adds a log event NUMBERS_SKIPPED. */
  function skip({ detail }: LogEventLeaf): void {
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
    add,
    skip,
    /** Checks that log events skip all missing numbers. */
    finish: (): void => {
      for (const [year, { gaps }] of years) {
        const gap = gaps.find((candidate) => !isExplained(year, candidate, skips));
        if (gap !== undefined) {
          throw forked(
            `the numbers ${gap.after + 1} to ${gap.through} of ${year} are missing, and no leaf says that they were skipped`,
          );
        }
      }
    },
    state: (): NumbersState => ({ transfers, years: copyOfAll(years), skips: [...skips] }),
  };
}

type Year = { -readonly [Name in Exclude<keyof YearState, 'gaps'>]: YearState[Name] } & {
  gaps: Omit<Skip, 'year'>[];
};

function copyOfAll(years: ReadonlyMap<number, YearState>): Map<number, Year> {
  const copy = ({ sequences, gaps, ...year }: YearState) => ({
    ...year,
    sequences: sequences.slice(),
    gaps: [...gaps],
  });
  return new Map(Array.from(years, ([name, year]) => [name, copy(year)]));
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
