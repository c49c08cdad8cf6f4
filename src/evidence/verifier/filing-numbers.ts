import { forked } from '../formats/failure.ts';
import { filingNumber, type LogEventLeaf, type RecordLeaf } from './record.ts';
import { instant } from './seen.ts';

/** The numbers and sequences of filings after some leaves. */
export interface NumbersState {
  transfers: number;
  readonly years: Map<number, Year>;
  readonly skips: Skip[];
}

/** The filings of a year. */
interface Year {
  filings: number;
  /** The last number that was assigned. */
  last: number;
  /** By number: the sequence of the filing's last record, undefined if there is none. */
  readonly sequences: number[];
  /** Numbers that are missing. */
  readonly gaps: Omit<Skip, 'year'>[];
}

/** Skipped numbers of a year: from `after` + 1 to `through`. */
interface Skip {
  readonly year: number;
  readonly after: number;
  readonly through: number;
}

/** Gaps that are kept at most: no registry makes more. */
const gapsMax = 10_000;

/** The last number of a year. */
const numberMax = 999_999;

/**
 * Checks the numbers and sequences of filings, leaf by leaf, and adds them to a state. `contradiction` makes the failure of
 * the current leaf. All throw VerificationFailure FORKED at a contradiction.
 */
export function createFilingNumbers(state: NumbersState, contradiction: (what: string) => Error) {
  const { years, skips } = state;

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
      if (sequence !== before + 1)
        throw contradiction(`is record ${sequence} of ${number}, after record ${before}`);
      state.transfers += 1;
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
  }

  function yearOf(name: number): Year {
    const known = years.get(name);
    if (known !== undefined) return known;
    const year: Year = { filings: 0, last: 0, sequences: [], gaps: [] };
    years.set(name, year);
    return year;
  }

  /** Adds a log event NUMBERS_SKIPPED. */
  function skip({ detail }: LogEventLeaf): void {
    const [year, after, through] = ['year', 'after', 'through'].map((name) => detail.get(name));
    const areNumbers = typeof year === 'number' && typeof after === 'number' && typeof through === 'number';
    if (!areNumbers || through > numberMax) throw contradiction('does not say which numbers are skipped');
    const { last = 0, sequences = [] } = years.get(year) ?? {};
    for (let number = Math.max(after, 0) + 1; number <= Math.min(through, last); number += 1)
      if (sequences[number]) throw contradiction(`skips number ${number} of ${year}, which was assigned`);
    skips.push({ year, after, through });
  }

  return {
    add,
    skip,
    /** Checks that log events skip all missing numbers. */
    finish: (): void => {
      for (const [year, { gaps }] of years) {
        const gap = gaps.find((candidate) => !isExplained(year, candidate, skips));
        if (gap === undefined) continue;
        throw forked(
          `the numbers ${gap.after + 1} to ${gap.through} of ${year} are missing, and no leaf says that they were skipped`,
        );
      }
    },
  };
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
